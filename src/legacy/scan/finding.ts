// What the scanner reports: a call of the 2.4.x API, where it is, and how certain that is.
import type { Found } from '../find.ts'

/**
 * - certain: the path is one that only 2.4.x has, or goes to the same base address as one, and its method is in sight.
 * - likely: the method, or the service, is inferred.
 * - possible: other services have the path, too, and the file names Orka.
 */
export type Confidence = 'certain' | 'likely' | 'possible'

export interface Finding extends Found {
  readonly file: string
  readonly line: number
  readonly column: number
  /** The source text. */
  readonly text: string
  readonly confidence: Confidence
  /** Number of requests, in a log. */
  readonly count?: number
}

export interface ScanOptions {
  /** Address of the 2.4.x service. Calls to other literal addresses are skipped. */
  readonly baseUrl?: string | undefined
}

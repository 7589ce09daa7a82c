// What the scanner reports.
import type { MappedCall } from '../find.ts'

/**
 * - certain: only 2.4.x has the path, or the path has the same base address as such a path; and its method is known.
 * - likely: the method is inferred, or the path may only be mentioned.
 * - possible: other services have the path too, and the file mentions Orka.
 */
export type Confidence = 'certain' | 'likely' | 'possible'

export interface Finding extends MappedCall {
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

// What the scan finds: a legacy call, where it stands, and how sure that is.
import type { Found } from '../find.ts'
import type { Match } from './match.ts'

/**
 * certain: path, method and service are plain. likely: one of them is concluded, such as a method that is not in sight.
 * possible: a path that other services have, too, in a file that is about this one.
 */
export type Confidence = 'certain' | 'likely' | 'possible'

export interface Finding extends Found {
  readonly file: string
  readonly line: number
  readonly column: number
  /** As it stands there. */
  readonly text: string
  readonly confidence: Confidence
  /** In a log: how often. */
  readonly count?: number
}

export interface ScanOptions {
  /** Where 2.4.x answers: calls that surely go elsewhere are left out, and generic paths need no other evidence. */
  readonly baseUrl?: string | undefined
}

/** The address of a legacy call in a file, before it is classified. */
export interface Candidate {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly text: string
  readonly match: Match
  readonly method: string | undefined
  /** Whether it is seen to be requested, or only written down. */
  readonly isRequest: boolean
  /** The statement names the product. */
  readonly mentionsProduct: boolean
  /** Who is asked, where the text has no address: `@conn.get("token")` → `conn`. */
  readonly receiver: string
}

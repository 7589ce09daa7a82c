// What the scan finds: a legacy call, and where it stands.
import type { Found } from './find.ts'

export interface Finding extends Found {
  readonly line: number
  readonly column: number
  /** As it stands there. */
  readonly text: string
  /** In a log: how often. */
  readonly count?: number
}

export interface ScanOptions {
  /** Where 2.4.x answers: calls that surely go elsewhere are left out, and generic paths need no other evidence. */
  readonly baseUrl?: string | undefined
}

/** Paths that other services have too: they need evidence that it is this one. */
export const isGeneric = ({ call: { path } }: Found): boolean =>
  /^\/(?:token|users|logs|version|health-check)\b/.test(path)

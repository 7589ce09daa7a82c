// Finds the row of a legacy call by its path: as sent, or as written in a program, where parts may be variables.
import { legacyRows } from './map.ts'
import type { LegacyCall, LegacyRow } from './row.ts'

export interface MappedCall {
  readonly row: LegacyRow
  readonly call: LegacyCall
}

/** Marks a part of a path that is only known when the program runs. */
export const unknownPart = '\0'

interface IndexedCall extends MappedCall {
  readonly parts: readonly string[]
}

/** Ignores a query: docs/spec.md R50 lists `/version/?all=true` as a separate path, but servers route it as `/version/`. */
const partsOf = (path: string): string[] => (path.split('?')[0] ?? '').split('/').filter((part) => part !== '')

export const legacyCalls: readonly MappedCall[] = legacyRows.flatMap((row) =>
  [...row.calls, ...row.variants].map((call) => ({ row, call })),
)

const indexed: readonly IndexedCall[] = legacyCalls.map((mapped) => ({ ...mapped, parts: partsOf(mapped.call.path) }))
const isParameter = (part: string): boolean => part.startsWith('{')

const keyOf = (parts: readonly string[]): string => `${parts.length} ${parts[0]}`
const byLength = Map.groupBy(indexed, ({ parts }) => keyOf(parts))

/** The calls with this path, or else those whose parameters fit it. Ignores a trailing slash. */
export function callsAt(path: string): readonly MappedCall[] {
  const asWritten = path.includes('?') ? indexed.filter(({ call }) => call.path === path) : []
  if (asWritten.length > 0) return asWritten
  const parts = partsOf(path)
  const candidates = byLength.get(keyOf(parts)) ?? []
  const fits = candidates.filter(({ parts: theirs }) =>
    theirs.every((part, index) => {
      const actual = parts[index] ?? ''
      return part === actual || isParameter(part) || actual.includes(unknownPart)
    }),
  )
  const exact = fits.filter(({ parts: theirs }) => theirs.every((part, index) => part === parts[index]))
  return exact.length > 0 ? exact : fits
}

/** Returns the call of a logged request; undefined for another method, which 2.4.x refused. */
export const callTo = (method: string, path: string): MappedCall | undefined =>
  callsAt(path).find(({ call }) => call.method === method)

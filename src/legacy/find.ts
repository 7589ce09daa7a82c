// Which row a legacy call belongs to: by method and path as they are sent, or as they stand in a program, where parts of
// the path are only known when it runs.
import { legacyRows } from './map.ts'
import type { LegacyCall, LegacyRow } from './row.ts'

export interface Found {
  readonly row: LegacyRow
  readonly call: LegacyCall
}

/** A part of a path that is only known when the program runs. */
export const unknownPart = '\0'

interface Known extends Found {
  readonly parts: readonly string[]
}

const partsOf = (path: string): string[] => path.split('/').slice(1)
/** docs/spec.md R50 lists `/version/?all=true` as a separate path; a server routes it as `/version/`. */
const withoutQuery = (path: string): string => path.split('?')[0] ?? ''

export const legacyCalls: readonly Found[] = legacyRows.flatMap((row) =>
  [...row.calls, ...row.variants].map((call) => ({ row, call })),
)

const known: readonly Known[] = legacyCalls.map((found) => ({
  ...found,
  parts: partsOf(withoutQuery(found.call.path)).filter((part) => part !== ''),
}))
const isParameter = (part: string): boolean => part.startsWith('{')

const byLength = new Map<string, Known[]>()
for (const each of known) {
  const key = `${each.parts.length} ${each.parts[0]}`
  byLength.set(key, [...(byLength.get(key) ?? []), each])
}

/** All calls that a path can be, those without parameters first. A trailing slash makes no difference. */
export function callsAt(path: string): readonly Found[] {
  const asWritten = path.includes('?') ? known.filter(({ call }) => call.path === path) : []
  if (asWritten.length > 0) return asWritten
  const parts = partsOf(withoutQuery(path)).filter((part) => part !== '')
  const candidates = byLength.get(`${parts.length} ${parts[0]}`) ?? []
  const fits = candidates.filter(({ parts: theirs }) =>
    theirs.every((part, index) => {
      const given = parts[index] ?? ''
      return part === given || isParameter(part) || given.includes(unknownPart)
    }),
  )
  const exact = fits.filter(({ parts: theirs }) => theirs.every((part, index) => part === parts[index]))
  return exact.length > 0 ? exact : fits
}

/** A request that was made: with another method than the path has it was refused then, and is no call to migrate. */
export const callTo = (method: string, path: string): Found | undefined =>
  callsAt(path).find(({ call }) => call.method === method)

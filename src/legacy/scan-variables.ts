// A whole address in a variable is one call, however often it shows: where it is used, if that can be seen, or else where
// it is assigned.
import { isCallAt, type Place } from './scan-method.ts'
import { assignedIn, namesIn } from './scan-text.ts'

interface Shown extends Place {
  readonly path: string
  readonly text: string
}

/** `own` are the hits in the lines as they stand, `all` those with variables in place of their names. */
export function withoutRepeats<H extends Shown>(
  lines: readonly string[],
  own: readonly Shown[],
  all: readonly H[],
): H[] {
  const ownKeys = new Set(own.map(keyOf))
  const lineOf = ({ line }: Place): string => lines[line - 1] ?? ''
  const assigned = own.flatMap((hit) =>
    assignedIn(lineOf(hit))
      .filter(([, value]) => value.includes(hit.text))
      .map(([name]) => ({ hit, name })),
  )
  const wholes = new Set(assigned.map(({ hit, name }) => `${name} ${hit.path}`))
  const used = all
    .filter((hit) => !ownKeys.has(keyOf(hit)))
    .flatMap((hit) =>
      namesIn(lineOf(hit))
        .filter((name) => wholes.has(`${name} ${hit.path}`))
        .map((name) => ({ hit, name })),
    )
  const dropped = new Set<string>()
  const placesOf = Map.groupBy(assigned, ({ name }) => name)
  for (const [name, group] of Map.groupBy(used, (use) => use.name)) {
    const places = (placesOf.get(name) ?? []).map(({ hit }) => hit)
    const uses = group.map(({ hit }) => hit)
    const calls = new Set(uses.filter((use) => isCallAt(lines, use)))
    // Of a variable with several values in turn it is not known which one a use has.
    const isSeen = places.length === 1 && calls.size > 0
    const repeats = isSeen ? [...places, ...uses.filter((use) => !calls.has(use))] : uses
    for (const hit of repeats) dropped.add(keyOf(hit))
  }
  return all.filter((hit) => !dropped.has(keyOf(hit)))
}

const keyOf = ({ line, path }: Shown): string => `${line} ${path}`

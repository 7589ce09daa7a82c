// The lines of a program as far as they matter: without comments, and with variables that hold a piece of a legacy path
// in place of their names.

const openers: Readonly<Record<string, RegExp | undefined>> = {
  shell: /(?:^|\s)#/g,
  hash: /(?:^|\s)#(?!\{)/g,
  slash: /(?<!:)\/\//g,
}

/** Comments go, lines stay: a finding has its line. */
export function withoutComments(kind: string, text: string): string[] {
  const opener = openers[kind]
  let isInBlock = false
  return text.split(/\r?\n/).map((line) => {
    if (line.length > longestLine) return ''
    let rest = line
    if (kind === 'slash') [rest, isInBlock] = withoutBlocks(line, isInBlock)
    if (!opener) return rest
    for (const match of rest.matchAll(opener)) if (!isInQuotes(rest, match.index)) return rest.slice(0, match.index)
    return rest
  })
}

/** A bundle that somebody checked in, not a program to migrate. */
const longestLine = 20_000

function withoutBlocks(line: string, isInside: boolean): [string, boolean] {
  let inside = isInside
  let kept = ''
  for (let at = 0; at < line.length; ) {
    const mark = line.indexOf(inside ? '*/' : '/*', at)
    const end = mark === -1 ? line.length : mark
    kept += inside ? ' '.repeat(end - at) : line.slice(at, end)
    if (mark === -1) break
    if (!inside && isInQuotes(line, mark)) {
      kept += line.slice(mark, mark + 2)
      at = mark + 2
      continue
    }
    kept += '  '
    inside = !inside
    at = mark + 2
  }
  return [kept, inside]
}

/** An odd number of one kind of quotes before it. Apostrophes of prose mislead it, to the side of finding more. */
function isInQuotes(line: string, at: number): boolean {
  let open = ''
  for (let index = 0; index < at; index++) {
    const character = line[index] as string
    if (character === '\\') index++
    else if (open === character) open = ''
    else if (open === '' && (character === '"' || character === "'" || character === '`')) open = character
  }
  return open !== ''
}

const assignment =
  /(?:^|[\s;({,])(?:export\s+|const\s+|let\s+|var\s+|final\s+|String\s+|self\.|this\.|@)*\$?([A-Za-z_]\w*)\s*(?::=|\+=|=|:)\s*[frbu]?(["'`]?)([^"'`\s;]+)\2/g

/** Names that a line gives a text to, with it. */
export const assignedIn = (line: string): [name: string, value: string][] =>
  [...line.matchAll(assignment)].map(([, name = '', , value = '']) => [name, value])

/** Name → the text that it was given, the last one where there are several. */
export function assignments(lines: readonly string[]): Map<string, string> {
  const values = new Map<string, string>()
  for (const line of lines) {
    if (!/https?:\/\/|resources/.test(line)) continue
    for (const [name, value] of assignedIn(line)) if (/^https?:\/\/|resources/.test(value)) values.set(name, value)
  }
  return values
}

const reference = /\$\{(\w+)\}|\$(\w+)|#\{@?(\w+)\}|\{(?:self\.|this\.)?(\w+)\}|\b(\w+)\s*\+\s*["'`]/g

/** Variables that a line uses. */
export const namesIn = (line: string): string[] =>
  [...line.matchAll(reference)].map((match) => match.slice(1, 6).find((name) => name !== undefined) ?? '')

/** Only variables that carry a piece of a path: the address of the service stays a name, by which it is known. */
export function expand(line: string, values: ReadonlyMap<string, string>): string {
  return line.replace(reference, (whole, ...names: (string | undefined)[]) => {
    const name = names.slice(0, 5).find((each) => each !== undefined) ?? ''
    const value = values.get(name)
    if (value === undefined || !/\/?resources(?:\/|$)/.test(value)) return whole
    // name + "…: the quote that follows goes on with the path.
    return names[4] === undefined ? value : `"${value}`
  })
}

// Finds fields that occur twice in the text of an object, of which JSON.parse silently takes the last.
import { parseJson } from '../../../api/json.ts'
import { space, stringEnd } from '../../http/json-limits.ts'

const maxReported = 20

/** Returns paths such as `spec.cpu`. Text that is not JSON has no duplicates; its parser refuses it. */
export function duplicateFields(text: string): readonly string[] {
  const found: string[] = []
  const open: { readonly names: Set<string> | undefined; name: string; index: number }[] = []
  for (let at = 0; at < text.length && found.length < maxReported; at++) {
    if (text.charCodeAt(at) <= space) continue
    const char = text[at]
    const top = open[open.length - 1]
    if (char === '"') {
      const end = stringEnd(text, at)
      if (top?.names && nextChar(text, end + 1) === ':') {
        const name = nameIn(text.slice(at, end + 1))
        top.name = name
        if (top.names.has(name)) found.push(pathOf(open))
        top.names.add(name)
      }
      at = end
    } else if (char === '{') open.push({ names: new Set(), name: '', index: 0 })
    else if (char === '[') open.push({ names: undefined, name: '', index: 0 })
    else if (char === '}' || char === ']') open.pop()
    else if (char === ',' && top) top.index++
  }
  return [...new Set(found)]
}

function nextChar(text: string, start: number): string {
  let at = start
  while (at < text.length && ' \t\r\n'.includes(text[at] as string)) at++
  return text[at] ?? ''
}

const nameIn = (quoted: string): string =>
  quoted.includes('\\') ? String(parseJson(quoted) ?? quoted) : quoted.slice(1, -1)

const pathOf = (open: readonly { readonly names: unknown; readonly name: string; readonly index: number }[]): string =>
  open
    .map(({ names, name, index }, depth) => (names ? `${depth === 0 ? '' : '.'}${name}` : `[${index}]`))
    .join('')
    .slice(0, 200)

// Reads YAML by its lines, as far as that tells which text belongs to which key, and which keys belong together. No
// anchors, no documents: a text is a text.

export interface Entry {
  readonly key: string
  readonly value: string
  /** Line of the key, and of the value where that begins on another one. */
  readonly line: number
  readonly valueLine: number
  readonly indent: number
  /** Entries with the same one are of one mapping. */
  readonly group: number
  /** The entry that this one is under, by its index; -1 for none. */
  readonly parent: number
  readonly isBlock: boolean
}

const longestLine = 20_000

export function entriesOf(text: string): Entry[] {
  const lines = text.split('\n')
  const entries: Entry[] = []
  const open: { indent: number; group: number; entry: number }[] = []
  let groups = 0
  for (let index = 0; index < lines.length; index++) {
    const line = (lines[index] as string).trimEnd()
    if (line.length > longestLine) continue
    const indent = indentOf(line)
    let rest = line.slice(indent)
    if (rest === '' || rest.startsWith('#') || rest === '---') continue
    let column = indent
    // `- - key: value`: each dash begins a mapping of its own.
    const dashes = /^(?:- +|-$)+/.exec(rest)?.[0] ?? ''
    while (open.length > 0 && (open.at(-1)?.indent ?? 0) > (dashes === '' ? column : column + dashes.length - 1))
      open.pop()
    if (dashes !== '') {
      while (open.length > 0 && (open.at(-1)?.indent ?? 0) > column) open.pop()
      column += dashes.length
      rest = rest.slice(dashes.length)
    }
    const [key, first] = keyIn(rest)
    const last = open.at(-1)
    const isSibling = last !== undefined && last.indent === column && dashes === ''
    const group = isSibling ? last.group : ++groups
    const parent = isSibling ? (open.at(-2)?.entry ?? -1) : (last?.entry ?? -1)
    // Under its key, or under the key that the list belongs to.
    const edge = key === '' ? indent : column
    const body = bodyOf(lines, index, edge, first)
    entries.push({
      key,
      value: body.text,
      line: index + 1,
      valueLine: body.line,
      indent: column,
      group,
      parent,
      isBlock: body.isBlock,
    })
    if (isSibling) last.entry = entries.length - 1
    else open.push({ indent: column, group, entry: entries.length - 1 })
    index = body.end
  }
  return entries
}

const indentOf = (line: string): number => /^ */.exec(line)?.[0].length ?? 0

/** A key and what follows it; no key: all of it is a value. */
function keyIn(text: string): [key: string, rest: string] {
  const quote = text[0] === '"' || text[0] === "'" ? text[0] : undefined
  const from = quote === undefined ? 0 : text.indexOf(quote, 1) + 1
  if (quote !== undefined && (from === 0 || text[from] !== ':')) return ['', text]
  if (/^[[{|>&*!%@`]/.test(text) && !text.startsWith('{{')) return ['', text]
  for (let at = text.indexOf(':', from); at !== -1; at = text.indexOf(':', at + 1)) {
    if (at + 1 < text.length && text[at + 1] !== ' ') continue
    const key = text.slice(quote === undefined ? 0 : 1, quote === undefined ? at : from - 1)
    // A command that has a colon is no key.
    return /["'$]|\s.*\s.*\s/.test(key.slice(0, 200)) || key.length > 200
      ? ['', text]
      : [key.trim(), text.slice(at + 1).trim()]
  }
  return ['', text]
}

interface Body {
  readonly text: string
  readonly line: number
  /** Index of its last line. */
  readonly end: number
  readonly isBlock: boolean
}

/** A value with the lines that go on with it, each on its line: where it is folded, as lines that a shell continues. */
function bodyOf(lines: readonly string[], index: number, edge: number, first: string): Body {
  const isBlock = /^[|>][+-]?\d?[+-]?(?:\s+#.*)?$/.test(first)
  if (first === '' || first.startsWith('#')) return { text: '', line: index + 1, end: index, isBlock: false }
  let end = index
  for (let at = index + 1; at < lines.length; at++) {
    const line = lines[at] as string
    const isBlank = line.trim() === ''
    if (!isBlank && indentOf(line) <= edge) break
    if (!isBlank) end = at
  }
  const more = lines.slice(index + 1, end + 1).map((line) => (line.length > longestLine ? '' : line))
  if (isBlock) return { text: more.join(first.startsWith('>') ? ' \\\n' : '\n'), line: index + 2, end, isBlock }
  const text = [first, ...more].join(' \\\n')
  return { text: unquoted(withoutComment(text)), line: index + 1, end, isBlock }
}

/** A comment has no quotes, or it is taken for text. */
function withoutComment(text: string): string {
  const from = Math.max(0, text.lastIndexOf('"'), text.lastIndexOf("'"), text.lastIndexOf('\n'))
  const at = text.slice(from).search(/\s#/)
  return at === -1 ? text : text.slice(0, from + at).trimEnd()
}

function unquoted(text: string): string {
  const quote = text[0]
  if ((quote !== '"' && quote !== "'") || text.length < 2 || text.at(-1) !== quote) return text
  const inner = text.slice(1, -1)
  return quote === "'" ? inner.replaceAll("''", "'") : inner.replaceAll(/\\(["\\/])/g, '$1')
}

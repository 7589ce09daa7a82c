// Reads JSON with the places of its values, and to a bounded depth: what is scanned may have been made to harm.

export interface JsonValue {
  readonly at: number
  readonly text?: string
  readonly members?: ReadonlyMap<string, JsonValue>
  /** Places of the members' keys. */
  readonly keys?: ReadonlyMap<string, number>
  readonly items?: readonly JsonValue[]
}

const maxDepth = 200
const blank = /[\s\uFEFF]*/y
const string = /"[^"\\]*(?:\\.[^"\\]*)*"/y
const scalar = /[\w.+-]+/y

/** Undefined: it is no JSON, or deeper than anybody writes. */
export function readJson(text: string): JsonValue | undefined {
  let at = 0
  const skip = (): void => {
    blank.lastIndex = at
    at += blank.exec(text)?.[0].length ?? 0
  }
  const take = (form: RegExp): string => {
    form.lastIndex = at
    const found = form.exec(text)?.[0]
    if (found === undefined) throw new SyntaxError()
    at += found.length
    return found
  }
  const read = (depth: number): JsonValue => {
    skip()
    const start = at
    const character = text[at]
    if (depth > maxDepth) throw new SyntaxError()
    if (character === '"') return { at: start, text: JSON.parse(take(string)) }
    if (character !== '{' && character !== '[') {
      take(scalar)
      return { at: start }
    }
    const close = character === '{' ? '}' : ']'
    const [members, keys, items] = [new Map<string, JsonValue>(), new Map<string, number>(), [] as JsonValue[]]
    at += 1
    for (skip(); text[at] !== close; skip()) {
      if (character === '{') {
        const place = at
        const key: string = JSON.parse(take(string))
        skip()
        take(/:/y)
        members.set(key, read(depth + 1))
        keys.set(key, place)
      } else items.push(read(depth + 1))
      skip()
      if (text[at] !== close) take(/,/y)
    }
    at += 1
    return character === '{' ? { at: start, members, keys } : { at: start, items }
  }
  try {
    return read(0)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

// Parses labelSelector and fieldSelector of lists and watches into a test. Labels: `a=b`, `a==b`, `a!=b`, `a in (b,c)`,
// `a notin (b,c)`, `a`, `!a`. Fields: `a=b`, `a==b`, `a!=b`, `a.b=c`.

export type Item = Readonly<Record<string, unknown>>
export type Test = (item: Item) => boolean
export type ParsedSelector =
  | { readonly ok: true; readonly test: Test }
  | { readonly ok: false; readonly problem: string }

type Values = (item: Item) => string | undefined

interface Condition {
  readonly key: string
  readonly operator: Operator
  readonly wanted: readonly string[]
}

type Operator = '=' | '!=' | 'in' | 'notin' | 'exists' | 'missing'

const tests: Readonly<Record<Operator, (value: Values, wanted: readonly string[]) => Test>> = {
  '=':
    (get, [want]) =>
    (item) =>
      get(item) === want,
  '!=':
    (get, [want]) =>
    (item) =>
      get(item) !== want,
  in: (get, wanted) => (item) => wanted.includes(get(item) ?? '\0'),
  notin: (get, wanted) => (item) => !wanted.includes(get(item) ?? '\0'),
  exists: (get) => (item) => get(item) !== undefined,
  missing: (get) => (item) => get(item) === undefined,
}
const allOperators = Object.keys(tests) as readonly Operator[]
const equality: readonly Operator[] = ['=', '!=']

/** The limit, because a condition is tested on every item. */
const maxSelectorLength = 4_096

export function parseLabelSelector(text: string): ParsedSelector {
  return parse(text, allOperators, (name) => (item) => asText(own(item.labels, name)))
}

/** Names that clients of Kubernetes-like services use. */
const otherNames: ReadonlyMap<string, string> = new Map([['status.node', 'node']])

/** The part of a schema that tells which fields exist. */
export interface SelectableFields {
  readonly type?: unknown
  readonly enum?: unknown
  readonly properties?: Readonly<Record<string, SelectableFields>>
}

function hasField({ type, properties, enum: values }: SelectableFields, [name, ...rest]: readonly string[]): boolean {
  if (name === undefined) return true
  if (properties) return Object.hasOwn(properties, name) && hasField(properties[name] as SelectableFields, rest)
  // Maps, lists and unions may contain any field.
  return (type === undefined && values === undefined) || type === 'object' || type === 'array'
}

/** `item` is the schema of the items. A selector on an unknown field is an error, not an empty list. */
export function parseFieldSelector(text: string, item: SelectableFields): ParsedSelector {
  return parse(text, equality, (requested) => {
    const name = otherNames.get(requested) ?? requested
    const path = name.split('.')
    if (!hasField(item, path))
      return `Unknown field "${name}": use one of ${Object.keys(item.properties ?? {}).join(', ')}`
    return (item) => asText(path.reduce<unknown>(own, item))
  })
}

function parse(text: string, allowed: readonly Operator[], read: (name: string) => Values | string): ParsedSelector {
  if (text.length > maxSelectorLength)
    return { ok: false, problem: `The selector is too long: use at most ${maxSelectorLength} characters` }
  const found: Test[] = []
  for (let at = nextTerm(text, 0); at < text.length; ) {
    const { condition, end } = conditionAt(text, at)
    if (!condition || !allowed.includes(condition.operator)) {
      const term = text.slice(at, Math.max(end, indexOrEnd(text, ',', at))).trim()
      return { ok: false, problem: `Invalid condition "${term}": use for example name=value` }
    }
    const values = read(condition.key)
    if (typeof values === 'string') return { ok: false, problem: values }
    found.push(tests[condition.operator](values, condition.wanted))
    at = nextTerm(text, end)
  }
  return { ok: true, test: (item) => found.every((test) => test(item)) }
}

/** Reads one condition in linear time. Without a valid condition, `end` is how far it was understood. */
function conditionAt(text: string, start: number): { readonly condition?: Condition; readonly end: number } {
  const isNegated = text[start] === '!'
  const keyStart = isNegated ? skipBlanks(text, start + 1) : start
  const keyEnd = skipWhile(text, keyStart, keyForm)
  const key = text.slice(keyStart, keyEnd)
  const at = skipBlanks(text, keyEnd)
  if (!/^[A-Za-z0-9]/.test(key)) return { end: at }
  if (at === text.length || text[at] === ',')
    return { condition: { key, operator: isNegated ? 'missing' : 'exists', wanted: [] }, end: at }
  if (isNegated) return { end: at }
  if (text[at] === '=' || text.startsWith('!=', at)) {
    const operator = text[at] === '=' ? '=' : '!='
    const end = indexOrEnd(text, ',', at)
    const value = text.slice(at + (operator === '=' && text[at + 1] !== '=' ? 1 : 2), end).trim()
    return /[!=]/.test(value) ? { end } : { condition: { key, operator, wanted: [value] }, end }
  }
  const operator = (['in', 'notin'] as const).find((word) => text.startsWith(word, at))
  const open = skipBlanks(text, at + (operator?.length ?? 0))
  const close = indexOrEnd(text, ')', open)
  const end = skipBlanks(text, close + 1)
  const values = text.slice(open + 1, close)
  const isList = at > keyEnd && text[open] === '(' && close < text.length && !values.includes('(')
  if (!operator || !isList || (end < text.length && text[end] !== ',')) return { end }
  return { condition: { key, operator, wanted: values.split(',').map((value) => value.trim()) }, end }
}

const keyForm = /[A-Za-z0-9_./-]/
const blank = /\s/
const blankOrComma = /[\s,]/

function skipWhile(text: string, at: number, form: RegExp): number {
  let end = at
  while (end < text.length && form.test(text[end] as string)) end++
  return end
}

const skipBlanks = (text: string, at: number): number => skipWhile(text, at, blank)
const nextTerm = (text: string, at: number): number => skipWhile(text, at, blankOrComma)

function indexOrEnd(text: string, what: string, from: number): number {
  const found = text.indexOf(what, from)
  return found === -1 ? text.length : found
}

const own = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Item)[name] : undefined

const asText = (value: unknown): string | undefined =>
  value === undefined || value === null || typeof value === 'object' ? undefined : String(value)

// labelSelector and fieldSelector of lists and watches: text to a test on an item.
// Labels: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`. Fields: `a=b`, `a==b`, `a!=b`, `a.b=c`.

export type Item = Readonly<Record<string, unknown>>
export type Test = (item: Item) => boolean
export type Parsed = { readonly ok: true; readonly test: Test } | { readonly ok: false; readonly problem: string }

type Values = (item: Item) => string | undefined
interface Shape {
  readonly form: RegExp
  readonly make: (value: Values, wanted: readonly string[]) => Test
}

const key = '(?<key>[A-Za-z0-9][A-Za-z0-9_./-]*)'
const equals: readonly Shape[] = [
  {
    form: new RegExp(`^${key}\\s*==?\\s*(?<values>[^!=]*)$`),
    make:
      (get, [want = '']) =>
      (item) =>
        get(item) === want,
  },
  {
    form: new RegExp(`^${key}\\s*!=\\s*(?<values>[^!=]*)$`),
    make:
      (get, [want = '']) =>
      (item) =>
        get(item) !== want,
  },
]
const sets: readonly Shape[] = [
  {
    form: new RegExp(`^${key}\\s+in\\s*\\((?<values>[^()]*)\\)$`),
    make: (get, wanted) => (item) => wanted.includes(get(item) ?? '\0'),
  },
  {
    form: new RegExp(`^${key}\\s+notin\\s*\\((?<values>[^()]*)\\)$`),
    make: (get, wanted) => (item) => !wanted.includes(get(item) ?? '\0'),
  },
  { form: new RegExp(`^${key}$`), make: (get) => (item) => get(item) !== undefined },
  { form: new RegExp(`^!\\s*${key}$`), make: (get) => (item) => get(item) === undefined },
]

export function parseLabelSelector(text: string): Parsed {
  return parse(text, [...equals, ...sets], (name) => (item) => asText((item.labels as Item | undefined)?.[name]))
}

/** As clients of Kubernetes-like services write it. */
const otherNames: Readonly<Record<string, string>> = { 'status.node': 'node' }

/** As much of a schema as tells which fields there are. */
export interface Fields {
  readonly type?: unknown
  readonly enum?: unknown
  readonly properties?: Readonly<Record<string, Fields>>
}

function hasField({ type, properties, enum: values }: Fields, [name, ...rest]: readonly string[]): boolean {
  if (name === undefined) return true
  if (properties) return Object.hasOwn(properties, name) && hasField(properties[name] as Fields, rest)
  // A map, a list, or one of several shapes: which names are in there, only an item tells.
  return (type === undefined && values === undefined) || type === 'object' || type === 'array'
}

/** `item` is what items are: a selector on a field that they do not have is a mistake, not an empty list. */
export function parseFieldSelector(text: string, item: Fields): Parsed {
  return parse(text, equals, (asked) => {
    const name = otherNames[asked] ?? asked
    const path = name.split('.')
    if (!hasField(item, path))
      return `Unknown field "${name}": use one of ${Object.keys(item.properties ?? {}).join(', ')}`
    return (item) => asText(path.reduce<unknown>((value, step) => (value as Item | undefined)?.[step], item))
  })
}

function parse(text: string, shapes: readonly Shape[], read: (name: string) => Values | string): Parsed {
  const tests: Test[] = []
  for (const term of splitTerms(text)) {
    const shape = shapes.find((candidate) => candidate.form.test(term))
    const groups = shape?.form.exec(term)?.groups
    if (!shape || !groups) return { ok: false, problem: `Invalid condition "${term}": use for example name=value` }
    const values = read(groups.key as string)
    if (typeof values === 'string') return { ok: false, problem: values }
    tests.push(
      shape.make(
        values,
        (groups.values ?? '').split(',').map((value) => value.trim()),
      ),
    )
  }
  return { ok: true, test: (item) => tests.every((test) => test(item)) }
}

/** At commas, but not at those inside parentheses. */
const splitTerms = (text: string): string[] =>
  text
    .split(/,(?![^(]*\))/)
    .map((term) => term.trim())
    .filter((term) => term !== '')

const asText = (value: unknown): string | undefined =>
  value === undefined || value === null || typeof value === 'object' ? undefined : String(value)

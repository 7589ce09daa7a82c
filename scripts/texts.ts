// `npm run texts [SURFACE…]`: every sentence that people read, a table per surface, to review them at once. The house
// rules on wording read the same tables (test/check/texts.test.ts).
import fs from 'node:fs'
import path from 'node:path'
import { parseAst } from 'vite'
import { root } from './sources.ts'

interface Text {
  readonly surface: Surface
  /** Values that are put in stand as `{}`. */
  readonly text: string
  readonly place: string
  /** Stands by itself, as the message or the hint of a refusal: begins like a sentence. */
  readonly isMessage: boolean
}

/** First match wins; what is written to a log is told by the call. */
const surfaces = {
  console: /^console\//,
  'command line': /^src\/(cli|operator|host|bin|control-plane)\//,
  api: /^src\/api\//,
  errors: /^src\//,
} as const
type Surface = keyof typeof surfaces | 'log'

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

const isNode = (value: unknown): value is Node => typeof (value as Node | null)?.type === 'string'
const logCalls = new Set(['debug', 'info', 'warn', 'error', 'fatal'])

/** Two words of letters with a space between: names, keys and formats are not sentences. */
const isSentence = (text: string): boolean => /[A-Za-z]{2,}[,;:.]? [a-z(]*[A-Za-z]{2,}/.test(text)
/** Programs of other languages that are kept in strings. */
const isProgram = (text: string): boolean =>
  /^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|PRAGMA|BEGIN|#!|<\?xml|<!)|=>|\bfunction\b|[{;]\s*$/.test(text)

function textOf(node: Node): string | undefined {
  if (node.type === 'Literal' && typeof node.value === 'string') return node.value
  if (node.type === 'JSXText') return String(node.value).replace(/\s+/g, ' ').trim()
  if (node.type !== 'TemplateLiteral') return undefined
  return (node.quasis as { value: { cooked: string } }[]).map(({ value }) => value.cooked).join('{}')
}

function isLogCall({ type, callee }: Node): boolean {
  if (type !== 'CallExpression' || !isNode(callee) || callee.type !== 'MemberExpression') return false
  const [object, property] = [callee.object as Node, callee.property as Node]
  return /^log$/i.test(String(object.name ?? (object.property as Node | undefined)?.name)) && logCalls.has(String(property.name)) // biome-ignore format: one line
}

/** Class or helper → which of its arguments people read by themselves: the message, the hint. */
const refusals: Readonly<Record<string, readonly number[]>> = {
  AgentSettingsError: [0],
  ApiError: [1],
  ConnectionError: [2, 3],
  Failure: [0, 1],
  Interrupted: [0, 1],
  KeyringError: [0],
  LocalUsersError: [0, 1],
  LockedError: [0],
  OperatorError: [0, 1],
  StoreError: [1],
  TimedOut: [0, 1],
  UsageError: [0, 1],
  badRequest: [1],
  invalid: [2],
}
type Refusals = typeof refusals

const childrenOf = (node: Node): readonly Node[] => Object.values(node).flat().filter(isNode)

function everyNode(node: Node, found: Node[] = []): readonly Node[] {
  found.push(node)
  for (const child of childrenOf(node)) everyNode(child, found)
  return found
}

/** The parts of a node that are the message or the hint of a refusal. */
function messagesIn({ type, callee, arguments: given, key, value }: Node, known: Refusals): readonly Node[] {
  if (type === 'Property') return /^(hint|next)$/.test(nameOf(key)) ? beginningsOf(value) : []
  const positions = type === 'NewExpression' || type === 'CallExpression' ? known[nameOf(callee)] : undefined
  return positions?.flatMap((index) => beginningsOf((given as Node[])[index])) ?? []
}

/** Empty for what has none, such as a pattern. */
const nameOf = (node: unknown): string => {
  const name = (node as Node | undefined)?.name
  return typeof name === 'string' ? name : ''
}

/** Those of a file, also by way of its constants, and of its functions that hand on what they are given. */
function messagesOf(program: Node): ReadonlySet<Node> {
  const nodes = everyNode(program)
  const helpers: Record<string, readonly number[]> = {}
  const constants = new Map<string, readonly Node[]>()
  for (const { type, id, init } of nodes)
    if (type === 'VariableDeclarator' && nameOf(id) !== '')
      constants.set(nameOf(id), [...(constants.get(nameOf(id)) ?? []), ...beginningsOf(init)])
  const resolved = (message: Node): readonly Node[] => [message, ...(constants.get(nameOf(message)) ?? [])]
  const direct = nodes.flatMap((node) => messagesIn(node, refusals))
  for (const node of nodes) {
    const { id, init } = node
    const made = isNode(init) && init.type === 'ArrowFunctionExpression' ? init : node
    if (nameOf(id) === '' || !Array.isArray(made.params)) continue
    const inside = direct.filter(({ start }) => start >= made.start && start < made.end)
    const passed = new Set(inside.flatMap(resolved).map(nameOf))
    const positions = [...made.params.keys()].filter((index) => passed.has(nameOf((made.params as Node[])[index])))
    if (positions.length > 0) helpers[nameOf(id)] = positions
  }
  const known = { ...helpers, ...refusals }
  return new Set(nodes.flatMap((node) => messagesIn(node, known)).flatMap(resolved))
}

/** Texts that a value may begin with: the branches of a choice, the first part of a sum. */
function beginningsOf(node: unknown): readonly Node[] {
  if (!isNode(node)) return []
  const { type, consequent, alternate, left, right, operator, expression, quasis, expressions } = node
  if (type === 'ConditionalExpression') return [consequent, alternate].flatMap(beginningsOf)
  if (type === 'LogicalExpression') return [...(operator === '&&' ? [] : beginningsOf(left)), ...beginningsOf(right)]
  if (type === 'BinaryExpression') return beginningsOf(left)
  if (type === 'ParenthesizedExpression' || type === 'TSAsExpression') return beginningsOf(expression)
  if (type !== 'TemplateLiteral') return [node]
  const [first] = quasis as { value: { cooked: string } }[]
  return first?.value.cooked === '' ? [node, ...beginningsOf((expressions as Node[])[0])] : [node]
}

interface Sentence {
  readonly text: string
  readonly start: number
  readonly isLog: boolean
  readonly isMessage: boolean
}

/** Attributes whose values are never shown, and those whose values are shown even if they are one word. */
const unread = new Set(['className', 'class', 'style', 'd', 'viewBox', 'href', 'path', 'command', 'example', 'key'])
const read = /^(label|title|text|hint|placeholder|what|word|aria-label|alt)$/

function* sentencesOf(node: Node, isLog: boolean, messages: ReadonlySet<Node>, isLabel = false): Generator<Sentence> {
  if (
    /^(Import|ExportAll|TS)/.test(node.type) &&
    node.type !== 'TSAsExpression' &&
    node.type !== 'TSSatisfiesExpression'
  )
    return
  if (node.type === 'JSXAttribute' && unread.has(nameOf(node.name))) return
  // How a column looks is a list of classes.
  if (node.type === 'Property' && nameOf(node.key) === 'look') return
  const text = textOf(node)
  const isMessage = messages.has(node)
  const isWhole = isMessage || isLabel || node.type === 'JSXText'
  if (text !== undefined && (isWhole ? /[A-Za-z]{2}/.test(text) : isSentence(text)) && !isProgram(text))
    yield { text, start: node.start, isLog, isMessage }
  const logs = isLog || isLogCall(node)
  const labels = node.type === 'JSXAttribute' && read.test(nameOf(node.name))
  for (const child of childrenOf(node)) yield* sentencesOf(child, logs, messages, labels)
}

export function allTexts(): Text[] {
  const files = fs
    .globSync(['src/**/*.ts', 'console/**/*.{ts,tsx}'], { cwd: root })
    .filter((file) => !/\.test\.|\.d\.ts$/.test(file))
  return files.sort().flatMap((file) => textsOf(file, fs.readFileSync(path.join(root, file), 'utf8')))
}

export function textsOf(file: string, source: string): Text[] {
  const surface = (Object.keys(surfaces) as (keyof typeof surfaces)[]).find((name) => surfaces[name].test(file))
  const program = parseAst(source, { lang: file.endsWith('x') ? 'tsx' : 'ts' }) as unknown as Node
  return [...sentencesOf(program, false, messagesOf(program))].map(({ text, start, isLog, isMessage }) => ({
    surface: isLog ? 'log' : (surface ?? 'errors'),
    text,
    isMessage,
    place: `${file}:${source.slice(0, start).split('\n').length}`,
  }))
}

if (import.meta.main) {
  const chosen = process.argv.slice(2)
  for (const { surface, text, place } of allTexts())
    if (chosen.length === 0 || chosen.includes(surface))
      console.log(`${surface}\t${text.replaceAll('\n', '⏎')}\t${place}`)
}

// `npm run texts [SURFACE…]`: every sentence that people read, a table per surface, to review them at once. The house rules
// on wording read the same tables (test/check/texts.test.ts).
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

const refusals = new Set(['ApiError', 'Failure', 'UsageError', 'StoreError'])

/** The children of a node that are messages or hints of a refusal. */
function messagesIn({ type, callee, arguments: given, key, value }: Node): readonly unknown[] {
  if (type === 'NewExpression' && refusals.has(String((callee as Node).name))) return given as Node[]
  return type === 'Property' && (key as Node).name === 'hint' ? [value] : []
}

interface Sentence {
  readonly text: string
  readonly start: number
  readonly isLog: boolean
  readonly isMessage: boolean
}

function* sentencesOf(node: Node, isLog: boolean, isMessage: boolean): Generator<Sentence> {
  if (
    /^(Import|ExportAll|TS)/.test(node.type) &&
    node.type !== 'TSAsExpression' &&
    node.type !== 'TSSatisfiesExpression'
  )
    return
  if (node.type === 'JSXAttribute' && /^(className|class|style|d)$/.test(String((node.name as Node).name))) return
  const text = textOf(node)
  if (text !== undefined && isSentence(text) && !isProgram(text)) yield { text, start: node.start, isLog, isMessage }
  const logs = isLog || isLogCall(node)
  const messages = messagesIn(node)
  for (const value of Object.values(node))
    for (const child of Array.isArray(value) ? value : [value])
      if (isNode(child)) yield* sentencesOf(child, logs, messages.includes(child))
}

export function allTexts(): Text[] {
  const files = fs
    .globSync(['src/**/*.ts', 'console/**/*.{ts,tsx}'], { cwd: root })
    .filter((file) => !/\.test\.|\.d\.ts$/.test(file))
  return files.sort().flatMap((file) => {
    const source = fs.readFileSync(path.join(root, file), 'utf8')
    const surface = (Object.keys(surfaces) as (keyof typeof surfaces)[]).find((name) => surfaces[name].test(file))
    const program = parseAst(source, { lang: file.endsWith('x') ? 'tsx' : 'ts' }) as unknown as Node
    return [...sentencesOf(program, false, false)].map(({ text, start, isLog, isMessage }) => ({
      surface: isLog ? 'log' : (surface ?? 'errors'),
      text,
      isMessage,
      place: `${file}:${source.slice(0, start).split('\n').length}`,
    }))
  })
}

if (import.meta.main) {
  const chosen = process.argv.slice(2)
  for (const { surface, text, place } of allTexts())
    if (chosen.length === 0 || chosen.includes(surface))
      console.log(`${surface}\t${text.replaceAll('\n', '⏎')}\t${place}`)
}

// The regular expressions of the product, from its syntax tree: literals, and files that use `new RegExp`.
import fs from 'node:fs'
import path from 'node:path'
import { parseAst } from 'vite'

const root = path.resolve(import.meta.dirname, '../../..')

export interface Found {
  readonly place: string
  readonly expression: RegExp
}

interface Node {
  readonly type: string
  readonly start: number
  readonly [key: string]: unknown
}

function visit(value: unknown, take: (node: Node) => void): void {
  if (typeof value !== 'object' || value === null) return
  if (typeof (value as Node).type === 'string') take(value as Node)
  for (const each of Object.values(value)) visit(each, take)
}

export function readSource(file: string, text: string): { literals: Found[]; makesOthers: boolean } {
  const literals: Found[] = []
  let makesOthers = false
  visit(parseAst(text, { lang: file.endsWith('x') ? 'tsx' : 'ts' }), ({ type, start, regex, callee }) => {
    const { pattern, flags } = (regex ?? {}) as { pattern?: string; flags?: string }
    const line = (): number => text.slice(0, start).split('\n').length
    if (type === 'Literal' && pattern !== undefined)
      literals.push({ place: `${file}:${line()}`, expression: new RegExp(pattern, flags) })
    if ((type === 'NewExpression' || type === 'CallExpression') && (callee as { name?: string }).name === 'RegExp')
      makesOthers = true
  })
  return { literals, makesOthers }
}

export const productSources = (): ({ readonly file: string } & ReturnType<typeof readSource>)[] =>
  ['src', 'console', 'packages']
    .flatMap((folder) => fs.globSync(`${folder}/**/*.{ts,tsx}`, { cwd: root }))
    .filter((file) => !file.includes('.test.'))
    .map((file) => ({ file, ...readSource(file, fs.readFileSync(path.join(root, file), 'utf8')) }))

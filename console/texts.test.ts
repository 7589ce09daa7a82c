// Every text of the console is in a table (`texts.ts`), where all of them are reviewed at once: none is in a page.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { parseSync } from 'vite'

const root = import.meta.dirname
const sources = fs
  .readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.tsx?$/.test(file) && !/texts\.ts$|\.test\.ts$|\.d\.ts$/.test(file))
  // Commands and requests are the same in every language.
  .filter((file) => !file.startsWith(`teach${path.sep}`))

/** Attributes whose values nobody reads. */
const unread = new Set(['className', 'd', 'viewBox', 'href', 'path', 'command', 'example', 'key'])
const hasWord = (text: string): boolean => /[A-Za-z]{2}/.test(text)
const isPhrase = (text: string): boolean => /[A-Za-z]{2} [A-Za-z]/.test(text)

interface Node {
  readonly type: string
  readonly [key: string]: unknown
}
const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value

const push = (found: string[], text: string): string[] => {
  found.push(text)
  return found
}

/** Texts of one file that people would read: between tags, in an attribute, or of two words and more. */
function textsIn(node: Node, found: string[] = []): string[] {
  // How a column looks is a list of classes.
  if (node.type === 'Property' && (node.key as { name?: string }).name === 'look') return found
  if (node.type === 'ImportDeclaration' || node.type === 'ImportExpression') return found
  if (node.type === 'JSXAttribute') {
    const { name, value } = node as unknown as { name: { name: string }; value: Node | null }
    if (unread.has(name.name)) return found
    const isLabel = /^(label|title|text|hint|placeholder|what|word|aria-label|alt)$/.test(name.name)
    if (isLabel && value?.type === 'Literal' && hasWord(String(value.value))) return push(found, String(value.value))
  }
  if (node.type === 'JSXText' && hasWord(String(node.value))) found.push(String(node.value).trim())
  const { value } = node as { value?: unknown }
  const literal =
    node.type === 'Literal' ? value : node.type === 'TemplateElement' ? (value as { raw: string }).raw : ''
  if (typeof literal === 'string' && isPhrase(literal)) found.push(literal)
  for (const child of Object.values(node).flat()) if (isNode(child)) textsIn(child, found)
  return found
}

const textsOf = (name: string, code: string): string[] =>
  textsIn(parseSync(name, code).program as unknown as Node).filter((text) => !/^svc3 /.test(text))

describe('the texts of the console', () => {
  it('the texts of the console are in tables, none in a page', () => {
    const stray = sources.flatMap((file) =>
      textsOf(file, fs.readFileSync(path.join(root, file), 'utf8')).map((text) => `${file}: ${text}`),
    )
    assert.deepEqual(stray, [])
  })

  it('the search for stray texts finds them between tags, in attributes and in strings', () => {
    const code = "export const A = () => <p className='big bold' title='Name'>Delete it{'VM now deleted'}</p>"
    assert.deepEqual(textsOf('a.tsx', code), ['Name', 'Delete it', 'VM now deleted'])
  })
})

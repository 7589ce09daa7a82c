// Pages are short and reachable, links lead to files and headings, cited requirements are in docs/spec.md, and the newest
// entry of the changelog has the version of the program.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { it } from 'node:test'

const root = path.resolve(import.meta.dirname, '../..')
const files = fs.globSync(['*.md', '{src,console,test,scripts,bench,packages}/**/*.{ts,tsx}', 'docs/**/*.md'], {
  cwd: root,
  exclude: ['**/node_modules'],
})

const pages = files.filter((file) => file.endsWith('.md'))

const read = (file: string): string => fs.readFileSync(path.join(root, file), 'utf8')

it('every link of a page leads to a file', () => {
  const broken = pages.flatMap((file) =>
    [...read(file).matchAll(/\]\(([^)#\s:]+)(#[^)]*)?\)/g)]
      .filter(([, target = '']) => !fs.existsSync(path.join(root, path.dirname(file), target)))
      .map(([, target]) => `${file}: ${target}`),
  )
  assert.deepEqual(broken, [])
})

/** As GitHub derives it. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-')

it('every link into a page leads to a heading of it', () => {
  const anchors = (file: string): Set<string> => {
    const text = read(file).replaceAll(/^```.*?^```$/gms, '')
    const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading))
    return new Set([...headings, ...[...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id)])
  }
  const broken = pages.flatMap((file) =>
    [...read(file).matchAll(/\]\(([^)#\s:]*)#([^)\s]+)\)/g)]
      .filter(([, target = '']) => target === '' || target.endsWith('.md'))
      .filter(([, target = '', anchor = '']) => {
        const page = target === '' ? file : path.join(path.dirname(file), target)
        return !anchors(page).has(anchor)
      })
      .map(([, target, anchor]) => `${file}: ${target}#${anchor}`),
  )
  assert.deepEqual(broken, [])
})

it('README.md has at most 150 lines, a page of docs 300', () => {
  const isGenerated = (file: string): boolean => /^docs\/reference\/(cli\/|orka-2\.4\.md)/.test(file)
  const tooLong = pages
    .filter((file) => (file === 'README.md' || file.startsWith('docs/')) && !isGenerated(file))
    .map((file) => ({ file, lines: read(file).split('\n').length - 1 }))
    .filter(({ file, lines }) => lines > (file === 'README.md' ? 150 : 300))
  assert.deepEqual(tooLong, [])
})

it('every page of docs is reached from docs/README.md', () => {
  const found = new Set<string>()
  const follow = (file: string): void => {
    if (found.has(file)) return
    found.add(file)
    for (const [, target = ''] of read(file).matchAll(/\]\(([^)#\s:]+\.md)(?:#[^)]*)?\)/g)) {
      const page = path.join(path.dirname(file), target)
      if (page.startsWith('docs/')) follow(page)
    }
  }
  follow('docs/README.md')
  assert.deepEqual(
    pages.filter((file) => file.startsWith('docs/') && !found.has(file)),
    [],
  )
})

it('every decision is in the index of docs/decisions', () => {
  const index = read('docs/decisions/README.md')
  const decisions = fs.readdirSync(path.join(root, 'docs/decisions')).filter((name) => name !== 'README.md')
  assert.deepEqual(
    decisions.filter((name) => !index.includes(`(${name})`)),
    [],
  )
})

it('every requirement that is cited is in docs/spec.md, each number once', () => {
  const numbers = [...read('docs/spec.md').matchAll(/\*\*(R\d+)\*\*/g)].map(([, number]) => number)
  assert.equal(new Set(numbers).size, numbers.length)
  const cited = files.flatMap((file) => read(file).match(/spec\.md(\]\([^)]*\))? R\d+(–R\d+)?/g) ?? [])
  assert.ok(cited.length > 20)
  const unknown = cited.flatMap((text) => text.match(/R\d+/g) ?? []).filter((number) => !numbers.includes(number))
  assert.deepEqual(unknown, [])
})

it('the version of the program is the newest in CHANGELOG.md', () => {
  const [, newest] = /^## (\S+) - /m.exec(read('CHANGELOG.md')) ?? []
  assert.equal(JSON.parse(read('package.json')).version, newest)
})

// House rules that can be checked: imports as in rooms.ts, no cycles, and the shape of files.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { rooms as table } from './rooms.ts'

const root = path.resolve(import.meta.dirname, '../..')

interface Room {
  readonly id: string
  /** Room → the files that may import it (its doors); empty means all. `server/` stands for all rooms of the server. */
  readonly mayImport: Allowed
  /** The same for packages. */
  readonly packages: Allowed
}
type Allowed = ReadonlyMap<string, readonly string[]>

const filesBelow = (folder: string): string[] =>
  fs.readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => path.join(folder, file))
const everything = ['src', 'console', 'packages'].flatMap(filesBelow)
const sources = everything
  .filter((file) => /\.tsx?$/.test(file))
  .map((file) => ({ file, text: fs.readFileSync(path.join(root, file), 'utf8') }))
const production = sources.filter(({ file }) => !file.includes('.test.'))

/** `src/server/gate` has the id `server/gate`. */
const idOf = (folder: string): string => folder.replace(/^src\//, '')
const folderOf = (id: string): string => (/^(console|packages)/.test(id) ? id : `src/${id}`)

/** Parses `api, store/etcd (open.ts)`. */
function allowedIn(list: string): Allowed {
  return new Map(
    list
      .split(/, (?![^(]*\))/)
      .filter((entry) => entry !== '')
      .map((entry): [string, string[]] => {
        const [, name = '', files = ''] = /^(\S+)(?: \(([^)]*)\))?$/.exec(entry) ?? []
        return [name, files.split(', ').filter((file) => file !== '')]
      }),
  )
}

const rooms = new Map(
  Object.entries(table).map(([id, { imports, packages = '' }]): [string, Room] => [
    id,
    { id, mayImport: allowedIn(imports), packages: allowedIn(packages) },
  ]),
)

function roomOf(file: string): Room | undefined {
  for (let folder = path.dirname(file); folder !== '.'; folder = path.dirname(folder)) {
    const room = rooms.get(idOf(folder))
    if (room) return room
  }
  return undefined
}

const importForm =
  /(?:^|\n)\s*(?:import|export)\s[^'"\n]*?from\s*['"]([^'"]+)['"]|(?:^|\n)import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]|getBuiltinModule\(\s*['"]([^'"]+)['"]/g
const multiline = /(?:import|export)\s+(?:type\s+)?\{[^}]*\}\s*from\s*['"]([^'"]+)['"]/g
function importsOf(text: string): string[] {
  const found = [...text.matchAll(importForm), ...text.matchAll(multiline)]
  return [...new Set(found.map((match) => match.slice(1).find((name) => name !== undefined) ?? ''))].filter(
    (name) => name !== '',
  )
}

const covers = (entry: string, id: string): boolean =>
  entry.endsWith('/') ? id === entry.slice(0, -1) || id.startsWith(entry) : id === entry

function violation(file: string, imported: string): string | undefined {
  const room = roomOf(file)
  if (!room) return `${file} is in no room`
  const inside = path.relative(folderOf(room.id), file)
  const isDoor = (files: readonly string[] | undefined): boolean =>
    files !== undefined && (files.length === 0 || files.includes(inside))
  if (imported.startsWith('.') && !imported.endsWith('package.json')) {
    const target = path.join(path.dirname(file), imported)
    if (!/\.tsx?$/.test(target)) return undefined
    const other = roomOf(target)
    if (other && other.id === room.id) return undefined
    const isAllowed = other && [...room.mayImport].some(([entry, files]) => covers(entry, other.id) && isDoor(files))
    return isAllowed ? undefined : `${file} imports ${target}: ${room.id} may not import ${other?.id ?? 'that'}`
  }
  const name = imported.startsWith('.') ? 'package.json' : packageOf(imported)
  const isFree = name.startsWith('node:') && name !== 'node:sqlite' && !room.id.startsWith('console')
  return isFree || isDoor(room.packages.get(name)) ? undefined : `${file} imports the package ${name}`
}

const packageOf = (imported: string): string =>
  imported
    .split('/')
    .slice(0, imported.startsWith('@') ? 2 : 1)
    .join('/')

/** Strongly connected components, by Tarjan's algorithm. */
function cyclesOf(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>()
  const low = new Map<string, number>()
  const stack: string[] = []
  const found: string[][] = []
  const visit = (node: string): void => {
    order.set(node, order.size)
    low.set(node, order.get(node) ?? 0)
    stack.push(node)
    for (const next of graph.get(node) ?? []) {
      if (!order.has(next)) visit(next)
      if (stack.includes(next)) low.set(node, Math.min(low.get(node) ?? 0, low.get(next) ?? 0))
    }
    if (low.get(node) !== order.get(node)) return
    const group = stack.splice(stack.indexOf(node))
    if (group.length > 1 || graph.get(node)?.includes(node)) found.push(group.sort())
  }
  for (const node of graph.keys()) if (!order.has(node)) visit(node)
  return found
}

describe('rooms', () => {
  it('imports of every form are read', () => {
    const text =
      "import a from './a.ts'\nimport {\n  b,\n} from './b.ts'\nexport { c } from './c.ts'\nawait import('./d.ts')\nimport './e.ts'\nimport type { F } from '../f.ts'\n"
    assert.deepEqual(importsOf(text).sort(), ['../f.ts', './a.ts', './b.ts', './c.ts', './d.ts', './e.ts'])
  })

  it('an entry of the table names a room and its doors', () => {
    assert.deepEqual(
      allowedIn('server/http, api/, rules (c.ts), store (a.ts, b.ts)'),
      new Map([
        ['server/http', []],
        ['api/', []],
        ['rules', ['c.ts']],
        ['store', ['a.ts', 'b.ts']],
      ]),
    )
    assert.deepEqual(allowedIn(''), new Map())
  })

  it('every room has a README that states its purpose, and every README in the source is of a room', () => {
    const purposes = everything
      .filter((file) => path.basename(file) === 'README.md')
      .map((file): [string, string] => [
        idOf(path.dirname(file)),
        /^# [^\n]*\n\n([^\n]+)/.exec(fs.readFileSync(path.join(root, file), 'utf8'))?.[1] ?? '',
      ])
    assert.deepEqual(
      purposes.filter(([, purpose]) => purpose === ''),
      [],
    )
    assert.deepEqual(purposes.map(([id]) => id).sort(), [...rooms.keys()].sort())
  })

  it('an import that the table does not allow is refused', () => {
    assert.match(violation('src/api/vms/x.ts', '../../server/app.ts') ?? '', /api may not import server/)
    assert.match(
      violation('src/server/gate/x.ts', '../routes/index.ts') ?? '',
      /server\/gate may not import server\/routes/,
    )
    assert.match(violation('src/rules/x.ts', 'fastify') ?? '', /imports the package fastify/)
    assert.match(violation('src/store/view.ts', 'node:sqlite') ?? '', /node:sqlite/)
    assert.match(violation('console/pages/vms/x.tsx', '../../../src/server/app.ts') ?? '', /may not import server/)
    assert.match(violation('console/pages/vms/x.tsx', 'node:fs') ?? '', /imports the package node:fs/)
    assert.match(violation('src/elsewhere/x.ts', './y.ts') ?? '', /in no room/)
  })

  it('every source file imports only what the table allows its room', () => {
    assert.ok(production.length > 500)
    const found = production.flatMap(({ file, text }) => importsOf(text).map((name) => violation(file, name)))
    assert.deepEqual(
      found.filter((problem) => problem !== undefined),
      [],
    )
  })

  it('the table allows nothing that a room does not import', () => {
    const stale: string[] = []
    for (const room of rooms.values()) {
      const own = production.filter(({ file }) => roomOf(file)?.id === room.id)
      const imported = own.flatMap(({ file, text }) =>
        importsOf(text).map((name) => (name.startsWith('.') ? (roomOf(path.join(path.dirname(file), name))?.id ?? '') : packageOf(name))),
      ) // biome-ignore format: one line
      for (const entry of room.mayImport.keys())
        if (!imported.some((id) => covers(entry, id))) stale.push(`${room.id}: ${entry}`)
      for (const name of room.packages.keys())
        if (name !== 'package.json' && !imported.includes(name)) stale.push(`${room.id}: the package ${name}`)
    }
    assert.deepEqual(stale, [])
  })

  it('rooms depend one way, apart from doors', () => {
    const ids = [...rooms.keys()]
    const graph = new Map(
      [...rooms.values()].map(({ id, mayImport }) => [
        id,
        ids.filter(
          (other) =>
            other !== id && [...mayImport].some(([entry, doors]) => covers(entry, other) && doors.length === 0),
        ),
      ]),
    )
    assert.deepEqual(cyclesOf(graph), [])
  })

  it('a cycle of imports is found', () => {
    assert.deepEqual(cyclesOf(new Map([['a', ['b']], ['b', ['c']], ['c', ['b']], ['d', ['a']]])), [['b', 'c']]) // biome-ignore format: a graph
  })

  it('files do not import each other in circles, types counted', () => {
    const graph = new Map(
      production.map(({ file, text }) => [
        file,
        importsOf(text).filter((name) => name.startsWith('.')).map((name) => path.join(path.dirname(file), name)),
      ]),
    ) // biome-ignore format: a graph
    assert.deepEqual(cyclesOf(graph), [])
  })

  it('no folder holds more than 25 source files', () => {
    const perFolder = new Map<string, number>()
    for (const { file } of production) perFolder.set(path.dirname(file), (perFolder.get(path.dirname(file)) ?? 0) + 1)
    assert.deepEqual(
      [...perFolder].filter(([, count]) => count > 25),
      [],
    )
  })
})

describe('files', () => {
  it('every source file opens by saying what it is for', () => {
    assert.deepEqual(
      sources.filter(({ text }) => !text.startsWith('// ')).map(({ file }) => file),
      [],
    )
  })

  it('no source file has a name that says nothing', () => {
    const empty = /(^|\/)(utils?|helpers?|common|manager|base|misc)(\.tsx?|\/)/
    assert.deepEqual(
      sources.filter(({ file }) => empty.test(file)).map(({ file }) => file),
      [],
    )
  })

  it('no source file has a default export or hides from the type checker', () => {
    const bad = /^export default|@ts-ignore|@ts-nocheck/m
    assert.deepEqual(
      production.filter(({ text }) => bad.test(text)).map(({ file }) => file),
      [],
    )
  })
})

// The house rules that a machine can hold: who may import whom, which packages live where, how files look.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'

const root = path.resolve(import.meta.dirname, '../..')
const src = path.join(root, 'src')

/** Folder → the folders of ours that it may import, and third-party packages with the files that may import them. */
interface Rule {
  readonly ours: readonly string[]
  readonly packages: Readonly<Record<string, string | RegExp>>
}
const everywhere = /./
const rules: Readonly<Record<string, Rule>> = {
  api: { ours: [], packages: { typebox: everywhere } },
  rules: { ours: ['api'], packages: {} },
  legacy: { ours: ['api'], packages: {} },
  platform: { ours: [], packages: { pino: 'log.ts' } },
  store: { ours: ['api', 'platform'], packages: { 'node:sqlite': 'sqlite/sqlite-thread.ts' } },
  auth: {
    ours: ['api', 'rules', 'store', 'platform'],
    packages: { jose: everywhere, 'oidc-provider': /^provider\/(provider|issuer|login-adapter)\.ts$/ },
  },
  client: { ours: ['api', 'rules'], packages: { ws: 'tunnel.ts' } },
  images: { ours: ['api', 'rules', 'platform'], packages: { typebox: 'format/format.ts' } },
  oci: { ours: ['api', 'rules', 'images', 'platform'], packages: {} },
  drivers: { ours: ['api', 'platform'], packages: {} },
  agent: {
    ours: ['api', 'rules', 'client', 'drivers', 'images', 'oci', 'platform'],
    packages: { ssh2: /^vms\/grow/, typebox: everywhere },
  },
  server: {
    ours: ['api', 'rules', 'store', 'auth', 'oci', 'images', 'legacy', 'platform'],
    packages: {
      fastify: everywhere,
      '@fastify/multipart': 'transfer/multipart.ts',
      selfsigned: 'tls/self-signed.ts',
      '@peculiar/x509': 'nodes/certificates.ts',
      ajv: /^(http\/validate|settings)\.ts$/,
      'fast-json-stringify': 'http/render.ts',
      'prom-client': 'http/metrics.ts',
      ssh2: 'nodes/terminals.ts',
      typebox: everywhere,
      ws: 'transfer/upgrades.ts',
    },
  },
  host: { ours: ['platform'], packages: {} },
  controllers: { ours: ['api', 'rules', 'store', 'platform'], packages: {} },
  cli: {
    ours: ['api', 'rules', 'client', 'legacy', 'platform', 'operator'],
    packages: { 'openid-client': 'connect/oidc.ts', yaml: 'output/output.ts' },
  },
  'control-plane': {
    ours: [
      'api', 'rules', 'platform', 'store', 'auth', 'server', 'controllers', 'cli', 'images', 'oci', 'operator', 'bin', 'client', 'agent', 'drivers',
    ], // biome-ignore format: a list to read
    packages: {},
  },
  operator: {
    ours: [
      'api', 'rules', 'platform', 'store', 'auth', 'server', 'cli', 'images', 'oci', 'control-plane', 'client', 'agent', 'drivers', 'host',
    ], // biome-ignore format: a list to read
    packages: {},
  },
  bin: { ours: ['cli', 'control-plane'], packages: {} },
}

/** The console is a client of its own: what it may have of ours, and the packages that only it has. */
const consoleRule: Rule = {
  ours: ['src/api', 'src/rules', 'src/client', 'src/legacy'],
  packages: {
    react: everywhere,
    'react-dom': /^(main\.tsx|ui\/menu\.tsx|ui\/visible-rows\.ts)$/,
    wouter: everywhere,
    '@tanstack/react-query': everywhere,
    '@novnc/novnc': /^(pages\/vms\/screen\.tsx|novnc\.d\.ts)$/,
    '@xterm/xterm': 'pages/vms/terminal.tsx',
    '@xterm/addon-fit': 'pages/vms/terminal.tsx',
    uplot: 'pages/service/charts.tsx',
  },
}
const consoleFolder = path.join(root, 'console')
const consoleFiles = fs
  .readdirSync(consoleFolder, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.tsx?$/.test(file))
  .map((file) => ({ file, text: fs.readFileSync(path.join(consoleFolder, file), 'utf8') }))
const consoleProduction = consoleFiles.filter(({ file }) => !file.endsWith('.test.ts'))

function consoleViolation(file: string, imported: string): string | undefined {
  if (imported.startsWith('.')) {
    const target = path.relative(root, path.resolve(consoleFolder, path.dirname(file), imported))
    const isAllowed = ['console', ...consoleRule.ours].some((folder) => target.startsWith(`${folder}/`))
    return isAllowed ? undefined : `console/${file} imports ${target}`
  }
  const name = imported.startsWith('@') ? imported.split('/').slice(0, 2).join('/') : (imported.split('/')[0] ?? '')
  const where = consoleRule.packages[name]
  const isAllowed = typeof where === 'string' ? file === where : where?.test(file)
  return isAllowed ? undefined : `console/${file} imports the package ${name}`
}

const files = fs
  .readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => ({ file, text: fs.readFileSync(path.join(src, file), 'utf8') }))
const production = files.filter(({ file }) => !file.endsWith('.test.ts'))

const importForm =
  /(?:^|\n)\s*(?:import|export)\s[^'"\n]*?from\s*['"]([^'"]+)['"]|(?:^|\n)import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]|getBuiltinModule\(\s*['"]([^'"]+)['"]/g
const multiline = /(?:import|export)\s+(?:type\s+)?\{[^}]*\}\s*from\s*['"]([^'"]+)['"]/g
function importsOf(text: string): string[] {
  const found = [...text.matchAll(importForm), ...text.matchAll(multiline)]
  return [...new Set(found.map((match) => match.slice(1).find((name) => name !== undefined) ?? ''))].filter(
    (name) => name !== '',
  )
}

function violation(file: string, imported: string): string | undefined {
  const [folder = ''] = file.split('/')
  const rule = rules[folder]
  if (!rule) return `${file}: the folder ${folder} has no import rule`
  if (imported.startsWith('.')) {
    const target = path.relative(src, path.resolve(src, path.dirname(file), imported))
    if (target.startsWith('../packages/')) return folder === 'agent' ? undefined : `${file} imports ${target}`
    if (target === '../package.json')
      return folder === 'control-plane' || folder === 'cli' ? undefined : `${file} reads package.json`
    const [other = ''] = target.split('/')
    return other === folder || rule.ours.includes(other)
      ? undefined
      : `${file} imports ${target}: ${folder} may not import ${other}`
  }
  const name = imported.startsWith('@') ? imported.split('/').slice(0, 2).join('/') : (imported.split('/')[0] ?? '')
  const isRestricted = name === 'node:sqlite'
  if (name.startsWith('node:') && !isRestricted) return undefined
  const where = rule.packages[name]
  const inside = file.slice(folder.length + 1)
  const isAllowed = typeof where === 'string' ? inside === where : where?.test(inside)
  return isAllowed ? undefined : `${file} imports the package ${name}`
}

describe('the import rule', () => {
  it('reads imports of every form', () => {
    const text =
      "import a from './a.ts'\nimport {\n  b,\n} from './b.ts'\nexport { c } from './c.ts'\nawait import('./d.ts')\nimport './e.ts'\nimport type { F } from '../f.ts'\n"
    assert.deepEqual(importsOf(text).sort(), ['../f.ts', './a.ts', './b.ts', './c.ts', './d.ts', './e.ts'])
  })

  it('sees what it must refuse', () => {
    assert.match(violation('api/x.ts', '../server/app.ts') ?? '', /api may not import server/)
    assert.match(violation('cli/x.ts', '../server/app.ts') ?? '', /cli may not import server/)
    assert.match(violation('rules/x.ts', 'fastify') ?? '', /imports the package fastify/)
    assert.match(violation('store/view.ts', 'node:sqlite') ?? '', /node:sqlite/)
    assert.match(violation('helpers/x.ts', './y.ts') ?? '', /no import rule/)
  })

  it('holds in every file', () => {
    assert.ok(production.length > 40)
    const found = production.flatMap(({ file, text }) => importsOf(text).map((name) => violation(file, name)))
    assert.deepEqual(
      found.filter((problem) => problem !== undefined),
      [],
    )
  })
})

describe('the console', () => {
  it('imports the API, the rules, the client and the legacy table of ours, and nothing that runs on a server', () => {
    assert.match(consoleViolation('pages/x.tsx', '../../src/server/app.ts') ?? '', /imports src\/server/)
    assert.match(consoleViolation('pages/x.tsx', 'node:fs') ?? '', /imports the package node:fs/)
    assert.ok(consoleProduction.length > 40)
    const found = consoleProduction.flatMap(({ file, text }) =>
      importsOf(text).map((name) => consoleViolation(file, name)),
    )
    assert.deepEqual(
      found.filter((problem) => problem !== undefined),
      [],
    )
  })

  it('the console writes no English text into its components, only into tables of texts', () => {
    const written = />\s*[^<>{}()=]*[A-Za-z]{2,}[^<>{}()=]*<\/|(?:label|title|text|hint|placeholder)="[^"]*[A-Za-z]/
    assert.match('<b>Some text</b>', written)
    assert.deepEqual(
      consoleFiles.filter(({ file, text }) => file.endsWith('.tsx') && written.test(text)).map(({ file }) => file),
      [],
    )
  })
})

describe('files', () => {
  it('open by saying what they are for', () => {
    assert.deepEqual(
      [...files, ...consoleFiles].filter(({ text }) => !text.startsWith('// ')).map(({ file }) => file),
      [],
    )
  })

  it('no folder holds more than 25 source files', () => {
    const perFolder = new Map<string, number>()
    for (const { file } of [...production, ...consoleProduction.map(({ file }) => ({ file: `console/${file}` }))])
      perFolder.set(path.dirname(file), (perFolder.get(path.dirname(file)) ?? 0) + 1)
    assert.deepEqual(
      [...perFolder].filter(([, count]) => count > 25),
      [],
    )
  })

  it('have names that say what is in them', () => {
    const empty = /(^|\/)(utils?|helpers?|common|manager|base|misc)(\.tsx?|\/)/
    assert.deepEqual(
      [...files, ...consoleFiles].filter(({ file }) => empty.test(file)).map(({ file }) => file),
      [],
    )
  })

  it('have no default exports and nothing ignored by the type checker', () => {
    const bad = /^export default|@ts-ignore|@ts-nocheck/m
    assert.deepEqual(
      [...production, ...consoleProduction].filter(({ text }) => bad.test(text)).map(({ file }) => file),
      [],
    )
  })
})

// A release is made again by anybody: two builds in different folders give the same tarball, byte for byte, with what of others
// is in it (sbom.cdx.json, third-party-licenses.txt).
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { exec } from '../../src/platform/exec.ts'

const timeoutMs = 600_000
const root = path.resolve(import.meta.dirname, '../..')
/** What is made here, and what is not ours to pack. */
const left = new Set(['.git', '.node', 'dist', 'node_modules'])

interface Component {
  readonly 'bom-ref': string
  readonly hashes: readonly unknown[]
  readonly licenses: readonly { readonly license: { readonly id: string } }[]
}

/** A copy of this checkout, built and packed. */
async function packIn(folder: string): Promise<string> {
  await fs.mkdir(folder, { recursive: true })
  for (const name of await fs.readdir(root))
    if (!left.has(name) && !/^dist\./.test(name))
      await fs.cp(path.join(root, name), path.join(folder, name), { recursive: true })
  // Links where the file system has them; a link to the whole folder would be seen through.
  const modules = [path.join(root, 'node_modules'), path.join(folder, 'node_modules')] as const
  await exec('cp', ['-al', ...modules], { timeoutMs }).catch(async () => {
    await fs.rm(modules[1], { recursive: true, force: true })
    await exec('cp', ['-a', ...modules], { timeoutMs })
  })
  await exec(process.execPath, ['scripts/build.ts'], { cwd: folder, timeoutMs })
  const packed = await exec('npm', ['pack', '--ignore-scripts', '--loglevel=error'], { cwd: folder, timeoutMs })
  return path.join(folder, packed.stdout.trim().split('\n').at(-1) ?? '')
}

test('two builds in different folders give the same tarball, which says what of others is in it', {
  timeout: 2 * timeoutMs,
}, async () => {
  await using cleanup = new AsyncDisposableStack()
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-reproducible-'))
  cleanup.defer(() => fs.rm(home, { recursive: true, force: true }))
  const folders = ['one', 'another/and deeper']
  const sums: string[] = []
  for (const name of folders)
    sums.push(
      createHash('sha256')
        .update(await fs.readFile(await packIn(path.join(home, name))))
        .digest('hex'),
    )
  assert.equal(sums[0], sums[1])

  const dist = path.join(home, 'one/dist')
  const { components } = JSON.parse(await fs.readFile(path.join(dist, 'sbom.cdx.json'), 'utf8')) as {
    components: Component[]
  }
  const names = components.map((component) => component['bom-ref'])
  for (const bundled of ['fastify@', 'oidc-provider@', 'react-dom@', 'swagger-ui-dist@', 'ws@'])
    assert.ok(
      names.some((name) => name.startsWith(bundled)),
      `${bundled} is shipped`,
    )
  for (const tool of ['typescript@', 'vite@', 'esbuild@', 'playwright-core@'])
    assert.ok(!names.some((name) => name.startsWith(tool)), `${tool} is not shipped`)
  const licences = new Set(components.flatMap((each) => each.licenses.map(({ license }) => license.id)))
  const allowed = [
    '0BSD',
    'Apache-2.0',
    'BSD-2-Clause',
    'BSD-3-Clause',
    'ISC',
    'MIT',
    'MPL-2.0',
    'OFL-1.1',
    'Unlicense',
  ]
  assert.deepEqual(
    [...licences].filter((licence) => !allowed.includes(licence)),
    [],
  )
  // That licence asks for the source of its files, unchanged here: the package that the bill of materials names.
  const shared = components.filter((each) => each.licenses.some(({ license }) => license.id === 'MPL-2.0'))
  assert.deepEqual(
    shared.map((each) => each['bom-ref'].replace(/(?<=.)@.*/, '')),
    ['@novnc/novnc'],
  )
  assert.ok(components.every(({ hashes }) => hashes.length > 0))
  const texts = await fs.readFile(path.join(dist, 'third-party-licenses.txt'), 'utf8')
  for (const name of names) assert.ok(texts.includes(`${name}: `), name)
})

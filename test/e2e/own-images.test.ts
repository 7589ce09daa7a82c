// Images and ISOs of one's own on real guests: what was uploaded is what runs, byte for byte, fetched by the node once.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { buildTiny, tinyFolder } from '../../src/images/tiny/build.ts'
import { bootDisc } from '../support/boot-disc.ts'
import { type DevServer, makeFolder, svc3 as run, startDev } from '../support/dev-server.ts'
import { eventually } from '../support/eventually.ts'
import { openGuest, tinyCache } from '../support/guest.ts'

let dev: DevServer
let data: string
let disk: string

before(async () => {
  data = await makeFolder()
  await buildTiny({ architecture: 'arm64', folder: tinyCache, signal: AbortSignal.timeout(390_000) })
  disk = path.join(tinyFolder(tinyCache, 'arm64'), 'disk.raw')
  dev = await startDev(data)
})
after(async () => {
  await run(['vm', 'delete', 'own', 'installing'], { env: { SVC3_DATA: data } })
  await dev.kill('SIGTERM')
  await fs.rm(data, { recursive: true, force: true })
})

const ok = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await run(args, { env: { SVC3_DATA: data }, timeoutMs: 300_000 })
  assert.equal(code, 0, `svc3 ${args.join(' ')}: ${stderr}${stdout}`)
  return stdout
}
async function hashOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of createReadStream(file, { highWaterMark: 2 ** 20 })) hash.update(piece)
  return hash.digest('hex')
}
/** Where the node keeps what has this digest. */
const onNode = (digest: unknown): string => path.join(data, 'images', String(digest).replace(':', '-'), 'disk.raw')
const shown = async (kind: string, name: string) =>
  (await dev.call('GET', `/api/v1/namespaces/svc-default/${kind}/${name}`)).body

describe('an uploaded image', () => {
  it('boots by its own firmware on exactly the bytes that were uploaded, and takes a login', async () => {
    await ok('image', 'upload', disk, '--name', 'own-arm64', '--type', 'arm64')
    await ok('vm', 'deploy', 'own', '-i', 'own-arm64', '-c', '2', '-m', '0.5')
    using inside = await openGuest((await shown('vms', 'own')) as never, {}, 300_000)
    assert.match(await inside.run('uname -m'), /aarch64/)
    const { checksum } = await shown('images', 'own-arm64')
    assert.equal(await hashOf(onNode(checksum)), await hashOf(disk))
    // By the next word of the node about itself.
    await eventually(async () => {
      const nodes = JSON.parse(await ok('node', 'list', '-o', 'json')) as { images: string[] }[]
      assert.ok(
        nodes.some(({ images }) => images.includes('own-arm64')),
        JSON.stringify(nodes),
      )
    })
  })
})

describe('an uploaded ISO', () => {
  it('boots a VM whose disk is empty, from the bytes that were uploaded', async () => {
    const file = path.join(data, 'boot.iso')
    await fs.writeFile(file, bootDisc('booted from the disc'))
    await ok('iso', 'upload', file)
    await ok('image', 'generate', 'empty', '1G')
    await ok('vm', 'deploy', 'installing', '-i', 'empty', '-c', '1', '-m', '0.3', '--iso', 'boot.iso')
    await eventually(async () => assert.match(await ok('vm', 'logs', 'installing'), /booted from the disc/), 300_000)
    assert.equal(await hashOf(onNode((await shown('isos', 'boot.iso')).checksum)), await hashOf(file))
  })
})

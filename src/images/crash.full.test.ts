// Kills, full disks and memory while disks become images and images disks.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { openContentFolder } from './content/store.ts'
import { removeUnfinished } from './content/temporary-files.ts'
import type { Manifest } from './format/format.ts'
import { packDisk } from './pack/chunks.ts'
import { putManifest } from './pack/stored-manifests.ts'

const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-crash-'))
after(() => fs.rm(root, { recursive: true, force: true }))
const mib = 2 ** 20
const sizeBytes = 48 * mib
const disk = Buffer.alloc(sizeBytes)
let digest = ''

before(async () => {
  for (let at = 0; at < 40 * mib; at += 8) disk.writeUInt32LE(Math.imul(at, 2_654_435_761) >>> 0, at)
  await fs.writeFile(path.join(root, 'disk.raw'), disk)
  const store = await openContentFolder(path.join(root, 'store'))
  const layers = [await packDisk(path.join(root, 'disk.raw'), store)]
  const boot = { kind: 'firmware' } satisfies Manifest['boot']
  digest = await putManifest(store, {
    formatVersion: 1,
    architecture: 'arm64',
    virtualSizeBytes: sizeBytes,
    boot,
    layers,
  })
})

/** Runs code in a child process, with the modules that it needs. */
function start(code: string, env: Record<string, string> = {}, wrap: readonly string[] = []) {
  const module = (name: string) => JSON.stringify(path.join(import.meta.dirname, name))
  const text = `import fs from 'node:fs/promises'
    import { openContentFolder } from ${module('content/store.ts')}
    import { packDisk } from ${module('pack/chunks.ts')}
    import { restoreDisk } from ${module('pack/restore.ts')}
    import { readManifest } from ${module('pack/stored-manifests.ts')}
    const root = ${JSON.stringify(root)}
    const store = await openContentFolder(root + '/store')
    const manifest = await readManifest(store, ${JSON.stringify(digest)})
    console.log('ready')
    ${code}`
  const [program = '', ...args] = [...wrap, process.execPath, '--input-type=module', '-e', text]
  const child = spawn(program, args, {
    env: { ...process.env, SVC3_TEST: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => output.push(data))
  const ended = once(child, 'close') as Promise<[number | null, string | null]>
  return { child, ready: once(child.stdout, 'data'), end: ended.then(([code, signal]) => ({ code, signal, output: Buffer.concat(output).toString() })) } // biome-ignore format: a result
}

describe('a restore that is killed', () => {
  it('a restore that is killed leaves no disk, and nothing that is not cleared away', async () => {
    const folder = await fs.mkdtemp(path.join(root, 'r'))
    const code = `await restoreDisk(manifest, store, ${JSON.stringify(path.join(folder, 'disk.raw'))})`
    const { signal } = await start(code, { SVC3_FAILPOINT: 'images.restore.write' }).end
    assert.equal(signal, 'SIGKILL')
    assert.match((await fs.readdir(folder)).join(), /^\.unfinished-[^,]*$/)
    await removeUnfinished(folder)
    assert.deepEqual(await fs.readdir(folder), [])
  })

  it('a restore that is killed at any moment leaves the whole disk or none', async () => {
    const folder = await fs.mkdtemp(path.join(root, 'm'))
    const target = path.join(folder, 'disk.raw')
    for (let delayMs = 0; delayMs < 240; delayMs += 60) {
      await fs.rm(target, { force: true })
      const { child, ready, end } = start(`await restoreDisk(manifest, store, ${JSON.stringify(target)})`)
      await ready
      await new Promise((resolve) => setTimeout(resolve, delayMs)) // The moment is the point of this test.
      child.kill('SIGKILL')
      await end
      const made = await fs.readFile(target).catch(() => undefined)
      if (made) assert.ok(made.equals(disk))
      await removeUnfinished(folder)
      assert.deepEqual(await fs.readdir(folder), made ? ['disk.raw'] : [])
    }
  })
})

describe('a restore to a full disk', () => {
  it('a restore to a full disk reports it and leaves no file', async () => {
    const folder = await fs.mkdtemp(path.join(root, 'f'))
    const code = `
      const error = await restoreDisk(manifest, store, ${JSON.stringify(path.join(folder, 'disk.raw'))}).catch((error) => error)
      console.log(JSON.stringify({ name: error.name, left: await fs.readdir(${JSON.stringify(folder)}) }))`
    const mount = ['sh', '-c', 'mount -t tmpfs -o size=20m tmpfs "$0" && exec "$@"', folder]
    const own = process.getuid?.() === 0 ? ['--mount'] : ['--user', '--map-root-user', '--mount']
    const { output } = await start(code, {}, ['unshare', ...own, ...mount]).end
    assert.deepEqual(JSON.parse(output.replace('ready\n', '')), { name: 'DiskFullError', left: [] })
  })
})

describe('memory', () => {
  it('memory does not grow with the disk', async () => {
    const code = `
      const used = async (virtual, count) => {
        const file = root + '/sparse.raw'
        await fs.writeFile(file, '')
        const handle = await fs.open(file, 'r+')
        await handle.truncate(virtual)
        for (let at = 0; at < count; at += 1) {
          const data = Buffer.alloc(1 << 20)
          for (let i = 0; i < data.length; i += 64) data.writeUInt32LE(Math.imul(i + at * 77, 2654435761) >>> 0, i)
          await handle.write(data, 0, data.length, Math.floor(virtual / count / 4096) * 4096 * at)
        }
        await handle.close()
        const { chunks } = await packDisk(file, store)
        return { maxMib: Math.round(process.resourceUsage().maxRSS / 1024), bytes: chunks.reduce((sum, { rawBytes }) => sum + rawBytes, 0) }
      }
      const small = await used(256 * 2 ** 20, 64)
      console.log(JSON.stringify({ small, large: await used(4 * 2 ** 30, 320) }))`
    const { output } = await start(code).end
    const { small, large } = JSON.parse(output.replace('ready\n', '')) as Record<
      'small' | 'large',
      { maxMib: number; bytes: number }
    >
    assert.ok(large.bytes > 4.9 * small.bytes)
    assert.ok(large.maxMib < small.maxMib + 96, `${small.maxMib} MiB, then ${large.maxMib} MiB`)
    assert.ok(large.maxMib < 400, `${large.maxMib} MiB`)
  })
})

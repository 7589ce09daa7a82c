// A restore that is killed at every step: no server starts on a part of the data, the backup stays as it was, and the same
// command makes the target whole.
import assert from 'node:assert/strict'
import { hash, randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, it } from 'node:test'
import { openStore } from '../../src/store/open.ts'
import type { Json } from '../../src/store/store.ts'
import { isPortable } from '../../src/store/store-state.ts'
import { filesIn, makeFolder, type Ran, startDev, svc3 } from '../support/processes/dev-server.ts'

let work: string
before(async () => {
  work = await makeFolder()
})
after(() => fs.rm(work, { recursive: true, force: true }))

const inWork = (name: string): string => path.join(work, name)
const server = (words: readonly string[], env: Record<string, string> = {}): Promise<Ran> =>
  svc3(['server', ...words], { env, timeoutMs: 120_000 })

async function recordsOf(folder: string): Promise<Map<string, Json>> {
  const store = await openStore(`sqlite:${folder}`)
  try {
    const { entries } = await store.list('')
    // The restore adds an era to the record of the cluster.
    const others = entries.filter((entry) => isPortable(entry) && !entry.key.startsWith('/cluster/'))
    return new Map(others.map(({ key, value }) => [key, value]))
  } finally {
    await store.close()
  }
}

const contentsOf = async (folder: string): Promise<string[]> =>
  (await filesIn(path.join(folder, 'content'))).filter((name) => !/tmp|part|held|lock/.test(name)).sort()

it('a restore that is killed at any step is refused by servers, and the same command completes it', {
  timeout: 590_000,
}, async () => {
  const [data, backup] = [inWork('data'), inWork('all.tar')]
  await fs.mkdir(data)
  {
    await using dev = await startDev(data, { args: ['--driver', 'simulated', '--nodes', 'arm64=1,amd64=0'] })
    await fs.writeFile(inWork('disk.raw'), randomBytes(3 * 2 ** 20))
    const env = { SVC3_API_URL: dev.apiUrl, SVC3_TOKEN: dev.token }
    const uploaded = await svc3(['image', 'upload', inWork('disk.raw'), '--name', 'mine', '--type', 'arm64'], { env })
    assert.equal(uploaded.code, 0, uploaded.stderr)
    await dev.kill('SIGTERM')
  }
  const made = await server(['backup', backup, '--data', data])
  assert.equal(made.code, 0, made.stderr)
  const before = hash('sha256', await fs.readFile(backup))

  const target = inWork('target')
  for (const point of ['images.put.write', 'images.put.rename', 'store.fill']) {
    const cut = await server(['restore', backup, '--data', target], { SVC3_TEST: '1', SVC3_FAILPOINT: point })
    assert.notEqual(cut.code, 0, point)
    await fs.copyFile(path.join(data, 'master.key'), path.join(target, 'master.key'))
    const started = await server(['--data', target, '--listen', '127.0.0.1:0', '--plain-http'])
    assert.notEqual(started.code, 0, point)
    assert.match(started.stderr, /is not complete/, point)
  }
  const again = await server(['restore', backup, '--data', target])
  assert.equal(again.code, 0, again.stderr)
  assert.equal(hash('sha256', await fs.readFile(backup)), before)
  assert.deepEqual(await recordsOf(target), await recordsOf(data))
  const contents = await contentsOf(target)
  assert.ok(contents.length > 0)
  assert.deepEqual(contents, await contentsOf(data))
})

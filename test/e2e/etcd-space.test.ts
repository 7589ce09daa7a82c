// etcd at its quota, met by a server: what callers and probes are told, and the very commands of docs/operate/etcd.md
// that lead out of it.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { it } from 'node:test'
import { promisify } from 'node:util'
import { openStore } from '../../src/store/open.ts'
import { isFault } from '../../src/store/store.ts'
import { root } from '../support/processes/dev-server.ts'
import { adminToken, ask, startShared } from '../support/processes/shared-servers.ts'
import { eventually } from '../support/tools/eventually.ts'

/** The block of the page that works without etcd's own tool. */
function wayOut(): string {
  const page = fs.readFileSync(path.join(root, 'docs/operate/etcd.md'), 'utf8')
  const section = page.slice(page.indexOf('## etcd is out of space'))
  const blocks = [...section.matchAll(/```sh\n(.*?)```/gs)].map(([, text = '']) => text)
  const found = blocks.find((text) => text.includes('/v3/maintenance/defragment'))
  assert.ok(found, 'the page has the commands')
  return found
}

it('a store without space is told as such, read on, and mended by the commands of docs/operate/etcd.md', async () => {
  await using shared = await startShared({ args: ['--quota-backend-bytes=4000000'] })
  const plane = await shared.start()
  const token = await adminToken(plane)
  const store = await openStore(shared.storeAddress)
  try {
    const padding = 'x'.repeat(200_000)
    let entry = await store.create('/other/a', padding)
    for (let n = 0; n < 200; n++)
      try {
        entry = await store.update('/other/a', padding, entry.rev)
      } catch (error) {
        assert.ok(isFault(error, 'Unavailable'), String(error))
        break
      }
    const create = (name: string): Promise<Response> => ask(plane, 'POST', '/namespaces', { token, body: { name } })
    let tries = 0
    await eventually(async () => {
      const refused = await create(`svc-full-${tries++}`)
      assert.equal(refused.status, 503)
      assert.ok(Number(refused.headers.get('retry-after')) > 0)
      assert.match(await refused.text(), /The store is full; nothing was changed/)
    })
    assert.equal((await ask(plane, 'GET', '/namespaces', { token })).status, 200)
    const ready = await fetch(`${plane.localUrl}/readyz`)
    assert.equal(ready.status, 200, 'a load balancer goes on sending reads')
    assert.match(
      await ready.text(),
      /ready for reading; changes are refused: .*used up its quota of space.*alarm disarm/,
    )
    // A compaction that this process started may still run; anything else is for the operator.
    const env = { ...process.env, MEMBERS: shared.etcd.urls.join(' '), CURL_OPTIONS: '' }
    const { stderr } = await promisify(execFile)('sh', ['-eu', '-c', wayOut()], { env, timeout: 60_000 })
    assert.equal(stderr, '')
    const isReady = async () =>
      assert.match(await (await fetch(`${plane.localUrl}/readyz`)).text(), /"message":"ready"/)
    await eventually(isReady, 30_000)
    const made = await create('svc-space')
    assert.equal(made.status, 201, await made.text())
  } finally {
    await store.close()
  }
})

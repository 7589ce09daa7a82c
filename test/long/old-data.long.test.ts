// Data that an earlier svc3 wrote (3.0.0-alpha.1, of before there were backups and several servers): this one starts on
// them, shows all of it, opens its secrets, takes its VMs over, and moves them to etcd. test/fixtures/data-of-format-1.tar.gz
// is what that program left after it was stopped; later formats get files of their own beside it.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { it } from 'node:test'
import { exec } from '../../src/platform/exec.ts'
import { type DevServer, filesIn, makeFolder, program, root, startDev, svc3 } from '../support/processes/dev-server.ts'
import { startEtcd } from '../support/processes/etcd.ts'
import { eventually } from '../support/tools/eventually.ts'

const ofDefault = '/api/v1/namespaces/svc-default'
const ofIos = '/api/v1/namespaces/svc-ios'

/** Names of what a list shows. */
async function namesIn(server: DevServer, url: string, field = 'name'): Promise<unknown[]> {
  const { status, body } = await server.call('GET', url)
  assert.equal(status, 200, url)
  return (body.items as Record<string, unknown>[]).map((item) => item[field])
}

async function checkRecords(server: DevServer): Promise<void> {
  assert.deepEqual(await namesIn(server, '/api/v1/namespaces'), ['svc-default', 'svc-ios'])
  assert.deepEqual(await namesIn(server, `${ofIos}/serviceaccounts`), ['robot'])
  // Its password is opened to be shown as good.
  assert.deepEqual(await namesIn(server, `${ofIos}/secrets/registrycredentials`, 'server'), ['https://ghcr.io'])
  assert.deepEqual(await namesIn(server, `${ofDefault}/vmconfigs`), ['build'])
  assert.ok((await namesIn(server, `${ofDefault}/images`)).includes('blank'))
  assert.deepEqual(await namesIn(server, `${ofDefault}/vms`), ['kept', 'stopped'])
  assert.ok((await namesIn(server, `${ofDefault}/events`)).length > 5)
}

it('data of an earlier program is read, and goes on', { timeout: 600_000 }, async () => {
  const folder = await makeFolder()
  await using cleanup = new AsyncDisposableStack()
  cleanup.defer(() => fs.rm(folder, { recursive: true, force: true }))
  await exec('tar', ['-xzf', path.join(root, 'test/fixtures/data-of-format-1.tar.gz'), '-C', folder])
  // Agents know where their VMs are.
  for (const name of await filesIn(folder)) {
    if (!name.endsWith('svc3.json')) continue
    const file = path.join(folder, name)
    await fs.writeFile(file, (await fs.readFile(file, 'utf8')).replaceAll('/var/lib/svc3', folder))
  }
  const dev = await startDev(folder, { args: ['--driver', 'simulated', '--nodes', 'arm64=0,amd64=1'] })
  cleanup.use(dev)
  await checkRecords(dev)
  await eventually(async () => {
    assert.deepEqual(await namesIn(dev, `${ofDefault}/nodes`, 'phase'), ['READY'])
    assert.deepEqual(await namesIn(dev, `${ofDefault}/vms`, 'powerState'), ['running', 'stopped'])
  }, 60_000)
  const made = await dev.call('POST', `${ofDefault}/vms`, { name: 'new', image: 'blank', cpu: 1, memory: 1 })
  assert.equal(made.status, 201)
  for (const name of ['new', 'stopped'])
    assert.equal((await dev.call('DELETE', `${ofDefault}/vms/${name}`)).status, 200)
  const again = await dev.call('POST', `${ofDefault}/vms`, { name: 'stopped', image: 'blank', cpu: 1, memory: 1 })
  assert.equal(again.status, 201)
  await dev.kill('SIGTERM')

  await using etcd = await startEtcd()
  const store = `etcd://${new URL(etcd.urls[0] ?? '').host}/old`
  const moved = await svc3(['server', 'migrate-store', folder, store])
  assert.equal(moved.code, 0, moved.stderr)
  const args = ['--plain-http', '--store', store]
  const server = cleanup.use(await startDev(folder, { command: [program, 'server'], args }))
  const { stdout } = await svc3(['server', 'users', 'list', '--data', folder])
  assert.match(stdout, /admin@localhost/)
  await checkRecords({ ...server, call: callAs(server.apiUrl, dev.token) })
})

/** By a token of the service before it was moved: its keys have come along. */
const callAs =
  (apiUrl: string, token: string): DevServer['call'] =>
  async (method, url) => {
    const response = await fetch(apiUrl + url, { method, headers: { authorization: `Bearer ${token}` } })
    return { status: response.status, body: (await response.json()) as { [key: string]: unknown } }
  }

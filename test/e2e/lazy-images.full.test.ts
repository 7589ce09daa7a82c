// VMs that run before their image has arrived, with a real server, a real agent and real guests: what a guest reads is what was
// saved, while the image comes and whoever is killed meanwhile; then the VM is on the node's own copy, and nothing is left over.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Vm } from '../../src/api/vms/vms.ts'
import { openGuest, type SshPlace, seedTiny } from '../support/guests/guest.ts'
import { type DevServer, filesIn, makeFolder, program, startDev, svc3 } from '../support/processes/dev-server.ts'
import { type SlowLink, startSlowLink } from '../support/stand-ins/slow-link.ts'
import { isAllTested } from '../support/tools/all-tested.ts'
import { eventually } from '../support/tools/eventually.ts'

const vms = '/api/v1/namespaces/svc-default/vms'
const mib = 2 ** 20
/** Of random bytes in the image: what is not compressed away, and has to come. */
const dataMib = 160
let folder: string
let server: DevServer
let link: SlowLink
let listen = '127.0.0.1:0'
let sums = ''
const agents = new Map<string, ChildProcess>()

async function startServer(): Promise<void> {
  server = await startDev(path.join(folder, 'server'), { listen, args: ['--nodes', 'amd64=0,arm64=0'] })
  listen = new URL(server.apiUrl).host
}

const dataOf = (name: string): string => path.join(folder, name)

async function startAgent(name: string, apiUrl?: string): Promise<void> {
  const { stdout } = await svc3(['node', 'join-token'], { env: { SVC3_DATA: path.join(folder, 'server') } })
  const words = ['agent', '--name', name, '--architecture', 'amd64', '--data', dataOf(name)]
  const first = apiUrl === undefined ? [] : ['--api-url', apiUrl, '--join-token-stdin']
  const child = spawn(program, [...words, ...first], { stdio: ['pipe', 'ignore', 'inherit'] })
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(apiUrl === undefined ? '' : stdout.trim())
  agents.set(name, child)
  await eventually(async () => {
    const { body } = await server.call('GET', '/api/v1/namespaces/svc-default/nodes')
    const found = (body.items as { name: string; phase: string }[]).find((node) => node.name === name)
    assert.equal(found?.phase, 'READY')
  }, 60_000)
}

async function kill(name: string, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  const child = agents.get(name)
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill(signal)
  await ended
}

const show = async (name: string): Promise<Vm> => (await server.call('GET', `${vms}/${name}`)).body as never

const imageReady = (vm: Vm) => vm.conditions.find(({ type }) => type === 'ImageReady')

async function deploy(name: string): Promise<SshPlace> {
  const shape = { image: 'big', name, cpu: 1, memory: 0.3, cold: true, node: 'empty', imageStart: 'lazy' }
  const { status, body } = await server.call('POST', vms, shape)
  assert.equal(status, 201, String(body.message))
  return body as never
}

/** The node forgets the image: no VM has it. */
async function emptyNode(): Promise<void> {
  await kill('empty')
  await fs.rm(path.join(dataOf('empty'), 'images'), { recursive: true, force: true })
  await startAgent('empty')
}

before(
  async () => {
    folder = await makeFolder()
    await seedTiny(path.join(dataOf('maker'), 'images'), ['amd64'])
    await startServer()
    const { hostname, port } = new URL(server.apiUrl)
    link = await startSlowLink({ host: hostname, port: Number(port) }, Infinity)
    await startAgent('maker', server.apiUrl)
    const made = await server.call('POST', vms, { image: 'tiny-amd64', name: 'made', cpu: 1, memory: 0.3 })
    assert.equal(made.status, 201, String(made.body.message))
    using guest = await openGuest(made.body as never, { user: 'root' })
    for (let at = 0; at < 4; at++)
      await guest.run(`dd if=/dev/urandom of=/data${at} bs=1M count=${dataMib / 4} 2>/dev/null; sync`, 240_000)
    sums = await guest.run('sha256sum /data0 /data1 /data2 /data3', 120_000)
    const saved = await server.call('POST', `${vms}/made/save`, { imageName: 'big' })
    assert.equal(saved.status, 202, String(saved.body.message))
    await eventually(async () => {
      const { body } = await server.call('GET', '/api/v1/namespaces/svc-default/images/big')
      assert.equal(body.state, 'Ready')
    }, 240_000)
    await server.call('DELETE', `${vms}/made`)
    await kill('maker', 'SIGTERM')
    await startAgent('empty', server.apiUrl.replace(/:\d+$/, `:${link.port}`))
  },
  { timeout: 600_000 },
)

after(async () => {
  for (const vm of ['one', 'two', 'three']) await server.call('DELETE', `${vms}/${vm}`).catch(() => undefined)
  for (const name of agents.keys()) await kill(name)
  await link[Symbol.asyncDispose]()
  await server.kill('SIGTERM')
  await fs.rm(folder, { recursive: true, force: true })
})

describe('a VM that runs before its image has arrived', { timeout: 1_800_000 }, () => {
  it('a VM that runs before its image has arrived reads what was saved, shares the fetch, and moves to the copy', async () => {
    link.bytesPerSecond = 12 * mib
    const before = link.bytes
    const one = await deploy('one')
    const byThen = link.bytes - before
    assert.ok(byThen < (dataMib * mib) / 2, `${byThen} bytes had come`)
    const { stdout } = await svc3(['vm', 'list'], { env: { SVC3_DATA: path.join(folder, 'server') } })
    assert.match(stdout, /one/)
    using guest = await openGuest(one, { user: 'root' })
    const boot = await guest.run('cat /proc/sys/kernel/random/boot_id')
    await eventually(async () =>
      assert.match(imageReady(await show('one'))?.message ?? '', /^image \d+ %, .* of .*\/s$/),
    )
    const two = await deploy('two')
    using other = await openGuest(two, { user: 'root' })
    assert.equal(await guest.run('sha256sum /data0 /data1 /data2 /data3', 240_000), sums)
    link.bytesPerSecond = Infinity
    await eventually(async () => {
      for (const name of ['one', 'two']) assert.equal(imageReady(await show(name))?.status, 'True', name)
    }, 240_000)
    // Each chunk once: memory, kernel and initrd are among them.
    const kept = path.join(dataOf('empty'), 'images/content/blobs')
    const sizes = (await filesIn(kept)).map(async (name) => (await fs.stat(path.join(kept, name))).size)
    const imageBytes = (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0)
    const came = link.bytes - before
    assert.ok(came < 1.15 * imageBytes, `${came} bytes came for two VMs of an image of ${imageBytes}`)
    assert.equal(
      await other.run('echo 3 >/proc/sys/vm/drop_caches; sha256sum /data0 /data1 /data2 /data3', 240_000),
      sums,
    )
    assert.equal(await guest.run('cat /proc/sys/kernel/random/boot_id'), boot)
  })

  it('a VM that runs before its image has arrived is saved without waiting for the rest', async () => {
    for (const name of ['one', 'two']) await server.call('DELETE', `${vms}/${name}`)
    await emptyNode()
    link.bytesPerSecond = 4 * mib
    const one = await deploy('one')
    using guest = await openGuest(one, { user: 'root' })
    await guest.run('echo changed >/data0; sync')
    const saved = await server.call('POST', `${vms}/one/save`, { imageName: 'changed' })
    assert.equal(saved.status, 202, String(saved.body.message))
    await eventually(async () => {
      const { body } = await server.call('GET', '/api/v1/namespaces/svc-default/images/changed')
      assert.equal(body.state, 'Ready', JSON.stringify(body))
    }, 240_000)
    assert.equal(imageReady(await show('one'))?.status, 'False')
  })

  it('a VM that runs before its image has arrived is deleted in the middle and leaves nothing', async () => {
    assert.equal(imageReady(await show('one'))?.status, 'False')
    const { status } = await server.call('DELETE', `${vms}/one`)
    assert.equal(status, 200)
    await eventually(async () => {
      const names = await fs.readdir(path.join(dataOf('empty'), 'images'))
      assert.deepEqual(
        names.filter((name) => name.startsWith('.') || name.startsWith('sha256-')),
        [],
      )
    })
    const at = link.bytes
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    assert.ok(link.bytes - at < 2 * mib, 'nothing is fetched for nobody')
  })

  it('a VM that runs before its image has arrived reads what was saved, whoever is killed meanwhile', async () => {
    await emptyNode()
    link.bytesPerSecond = 10 * mib
    const three = await deploy('three')
    using guest = await openGuest(three, { user: 'root' })
    const boot = await guest.run('cat /proc/sys/kernel/random/boot_id')
    const reading = guest.run('sha256sum /data3 /data1 /data0 /data2 | sort -k2', 600_000)
    for (let round = 0; round < (isAllTested ? 10 : 3); round++) {
      await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 1_500))
      if (round % 2 === 0) {
        await kill('empty')
        await startAgent('empty')
      } else {
        await server.kill('SIGKILL')
        await startServer()
      }
    }
    link.bytesPerSecond = Infinity
    assert.equal(await reading, sums)
    await eventually(async () => assert.equal(imageReady(await show('three'))?.status, 'True'), 240_000)
    assert.equal(
      await guest.run('echo 3 >/proc/sys/vm/drop_caches; sha256sum /data0 /data1 /data2 /data3', 240_000),
      sums,
    )
    assert.equal(await guest.run('cat /proc/sys/kernel/random/boot_id'), boot)
  })
})

// The whole service (server and nodes in one process) is killed with -9 at every step of what it does to a real QEMU.
// After the next start every VM has its desired state, with one process on its disk, and a deletion leaves nothing.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type DevServer, makeFolder, startDev } from '../support/processes/dev-server.ts'
import { hasWritten, qemusIn } from '../support/processes/qemus.ts'
import { quickImage, uploadQuick } from '../support/rigs/quick-images.ts'
import { eventually } from '../support/tools/eventually.ts'

const vms = '/api/v1/namespaces/svc-default/vms'
/** A guest that is up at once: it is the service that is looked at, and the process that it has to do with. */
const image = quickImage('amd64')
let data: string
/** Names the point at which the service is to die. */
let fatal: string
let dev: DevServer

before(async () => {
  data = await makeFolder()
  fatal = `${data}.failpoint`
  dev = await start()
  await uploadQuick(data, 'amd64')
})
after(async () => {
  await dev.kill('SIGTERM')
  await fs.rm(data, { recursive: true, force: true })
  await fs.rm(fatal, { force: true })
})

const start = (): Promise<DevServer> =>
  startDev(data, { args: ['--nodes', 'amd64=1'], env: { SVC3_TEST: '1', SVC3_FAILPOINT: `@${fatal}` } })

/** Those of the nodes of this test. */
const qemus = (): number[] => qemusIn(data)

const show = async (name: string) => (await dev.call('GET', `${vms}/${name}`)) as { status: number; body: Shown }
interface Row {
  readonly point: string
  readonly request: () => Promise<unknown>
  readonly power: string
  readonly qemus: number
}
interface Shown {
  readonly powerState?: string
  readonly status?: string
  readonly diskGb?: number
  readonly operation?: unknown
}

async function until(test: () => Promise<boolean>, what: string, timeoutMs = 120_000): Promise<void> {
  const endMs = performance.now() + timeoutMs
  while (!(await test())) {
    assert.ok(performance.now() < endMs, `${what} takes too long`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** The service is to die at a point: what it is asked is cut off there. */
async function cutOff(point: string, request: () => Promise<unknown>): Promise<void> {
  await fs.writeFile(fatal, point)
  const [ended] = await Promise.all([Promise.race([dev.ended, timeout(120_000)]), request().catch(() => undefined)])
  assert.notEqual(ended, 'late', `the service never came to ${point}`)
  await fs.rm(fatal)
  dev = await start()
}

const timeout = (milliseconds: number): Promise<'late'> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds, 'late').unref())

const deploy = (name: string) => dev.call('POST', vms, { image, name, cpu: 1, memory: 0.25 })
const exec = (command: string) => () => dev.call('POST', `${vms}/demo/exec`, { command })

const isWhole = async (power: string, count: number): Promise<void> => {
  await until(async () => {
    const { body } = await show('demo')
    return body.powerState === power && body.operation === undefined
  }, `demo becoming ${power}`)
  assert.equal(qemus().length, count)
}

describe('a service that is killed while it deploys', () => {
  const points = [
    'agent.deploy.create',
    'agent.deploy.start',
    'qemu-recorded',
    'qemu-spawned',
    'qemu-answers',
    'agent.deploy.done',
  ]
  for (const point of points) {
    it(`a VM comes up, once, though the service is killed at ${point} while it deploys`, async () => {
      await cutOff(point, () => deploy('demo'))
      await isWhole('running', 1)
      assert.equal((await dev.call('DELETE', `${vms}/demo`)).status, 200)
      assert.equal(qemus().length, 0)
    })
  }
})

describe('a service that is killed while it works on a VM', () => {
  const resize = (size: number) => () => dev.call('POST', `${vms}/demo/resize`, { size })
  const rows: readonly Row[] = [
    { point: 'agent.stop.stop', request: exec('stop'), power: 'stopped', qemus: 0 },
    { point: 'agent.start.start', request: exec('start'), power: 'running', qemus: 1 },
    { point: 'qemu-ending', request: exec('stop'), power: 'stopped', qemus: 0 },
    { point: 'qemu-spawned', request: exec('start'), power: 'running', qemus: 1 },
    { point: 'agent.suspend.done', request: exec('suspend'), power: 'suspended', qemus: 1 },
    { point: 'agent.resume.resume', request: exec('resume'), power: 'running', qemus: 1 },
    { point: 'agent.revert.revert', request: exec('revert'), power: 'running', qemus: 1 },
    { point: 'agent.revert.start', request: exec('revert'), power: 'running', qemus: 1 },
    { point: 'agent.resize.grow', request: resize(2), power: 'running', qemus: 1 },
    { point: 'agent.resize.start', request: resize(3), power: 'running', qemus: 1 },
  ]
  before(async () => {
    assert.equal((await deploy('demo')).status, 201)
  })
  /** A guest that still boots ignores the power button, so the stop waits for the whole grace period. */
  const hasBooted = (): Promise<void> =>
    eventually(() => {
      const [pid] = qemus()
      assert.ok(pid !== undefined && hasWritten(pid, 'console.log'), 'the guest says nothing')
    })
  for (const { point, request, power, qemus: count } of rows) {
    it(`a VM is ${power} after its service was killed at ${point}`, async () => {
      if (/stop|ending|resize/.test(point)) await hasBooted()
      await cutOff(point, request)
      await isWhole(power, count)
    })
  }

  it('a VM keeps the size that it had grown to when its service is killed', async () =>
    assert.equal((await show('demo')).body.diskGb, 3))

  it('a VM runs on without the service, and is found again', async () => {
    const [pid] = qemus()
    await dev.kill('SIGKILL')
    assert.deepEqual(qemus(), [pid])
    dev = await start()
    await isWhole('running', 1)
    assert.deepEqual(qemus(), [pid])
  })

  it('nothing is left of a VM after its service was killed at agent.delete.destroy', async () => {
    await cutOff('agent.delete.destroy', () => dev.call('DELETE', `${vms}/demo`))
    await until(async () => (await show('demo')).status === 404, 'the deletion')
    assert.equal(qemus().length, 0)
    const left = await fs.readdir(path.join(data, 'nodes/dev-amd64-1/vms'))
    assert.deepEqual(left, [])
    const nodes = await dev.call('GET', '/api/v1/namespaces/svc-default/nodes')
    assert.deepEqual((nodes.body.items as { vms: string[] }[])[0]?.vms, [])
  })
})

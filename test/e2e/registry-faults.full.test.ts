// kill -9 of server and agent at each step of a push to a registry and of a pull from it, with a real disk: it resumes
// when they are back, with what has come, and what comes out in the end is the disk that went in.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { PushJob } from '../../src/api/vms/push-jobs.ts'
import { filesIn, makeFolder } from '../support/processes/dev-server.ts'
import { type RegistryProcess, registryUser, startRegistry } from '../support/processes/registry.ts'
import { ClusterRig } from '../support/rigs/cluster-rig.ts'
import { eventually } from '../support/tools/eventually.ts'

const mib = 2 ** 20
let rig: ClusterRig
let folder: string
let registry: RegistryProcess
let reference: string
let truth: Buffer

before(async () => {
  folder = await makeFolder()
  registry = await startRegistry({ folder, hasPassword: true })
  reference = `${registry.host}/team/image:v1`
  rig = await ClusterRig.make('arm64')
  await rig.startAgent()
  const disk = Buffer.alloc(36 * mib)
  randomBytes(33 * mib).copy(disk, mib)
  await rig.upload('base', disk)
  await rig.deploy('demo', 'base')
  truth = await rig.write('demo')
  const body = { server: registry.server, ...registryUser, allowInsecure: true }
  await rig.call('POST', '/secrets/registrycredentials/add', body)
})
after(async () => {
  await rig[Symbol.asyncDispose]()
  await registry.kill()
  await fs.rm(folder, { recursive: true, force: true })
})

describe('kill -9', () => {
  it('kill -9 of the server when a push is recorded, then of the agent at each step of it: it succeeds, once', async () => {
    await rig.restart('push.recorded')
    const [body, headers] = [{ imageReference: reference }, { 'idempotency-key': 'push' }]
    await rig.ask('POST', '/vms/demo/push', body, headers)
    await rig.died()
    await rig.killAgent()
    await rig.startAgent('oci.copy.blob')
    const { jobName } = await rig.call('POST', '/vms/demo/push', body, headers)
    await rig.agentDied('oci.copy.finish')
    await rig.agentDied()
    const jobs = async (): Promise<PushJob[]> => (await rig.call('GET', '/pushjobs')).items
    await eventually(async () => {
      const found = (await jobs()).map(({ name, status }) => [name, status])
      assert.deepEqual(found, [[jobName, 'Succeeded']])
    }, 150_000)
    const [{ progress }] = (await jobs()) as [PushJob]
    // What was sent before a kill is not sent again.
    assert.ok(progress.bytesSkipped > progress.bytesTotal / 2, JSON.stringify(progress))
    await rig.isAtRest('demo')
  })

  it('kill -9 of the server at each step of a pull: it goes on, and what has come is not fetched again', async () => {
    // All that it has is from the registry.
    await rig.call('DELETE', '/vms/demo')
    await rig.call('DELETE', '/images/base')
    await rig.hasOnly([])
    await rig.restart('oci.copy.blob')
    await rig.ask('POST', `/remoteimages/${encodeURIComponent(reference)}/pull`, { name: 'mine' })
    await rig.died('oci.copy.finish')
    const come = async (): Promise<Map<string, number>> => {
      const files = (await filesIn(rig.content)).filter((file) => file.startsWith('blobs'))
      const stats = files.map(async (file) => [file, (await fs.stat(path.join(rig.content, file))).ino] as const)
      return new Map(await Promise.all(stats))
    }
    const before = await come()
    assert.ok(before.size > 0)
    await rig.died('pull.stored')
    await rig.died()
    const { checksum } = await rig.isIn('mine', 'Ready')
    assert.ok((await rig.restored(checksum)).disk.equals(truth))
    const after = await come()
    for (const [name, file] of before) assert.equal(after.get(name), file, 'it is the same file')
    await rig.hasOnly([checksum])
  })
})

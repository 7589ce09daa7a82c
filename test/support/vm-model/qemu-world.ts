// The service with a node in one process, and real QEMU VMs whose guests boot at once and write nothing; their disks are
// written while they are stopped.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { diskNode } from '../../../src/drivers/qemu/disks/disks.ts'
import { type DevServer, makeFolder, startDev } from '../processes/dev-server.ts'
import { hasWritten, qemusIn } from '../processes/qemus.ts'
import { age, strays } from '../rigs/content-folder.ts'
import { eventually } from '../tools/eventually.ts'
import { notesIn, type World } from './world.ts'

const timeoutMs = 120_000
/** A guest that resumed prints nothing, but reacts to its power button. */
const bootMs = 8_000

export async function qemuWorld(): Promise<World> {
  const root = await makeFolder()
  const [data, fatal] = [path.join(root, 'data'), path.join(root, 'failpoint')]
  await fs.mkdir(data)
  await fs.writeFile(path.join(data, 'config.json'), JSON.stringify({ logLevel: 'debug' }))
  const start = (): Promise<DevServer> =>
    startDev(data, { args: ['--nodes', 'amd64=1'], env: { SVC3_TEST: '1', SVC3_FAILPOINT: `@${fatal}` } })
  /** The output of former services. */
  let printed = ''
  let dev = await start()
  const node = path.join(data, 'nodes', 'dev-amd64-1')
  const [vms, content] = [path.join(node, 'vms'), path.join(data, 'content')]
  const pidOf = (uid: string): number | undefined => qemusIn(path.join(vms, uid))[0]
  return {
    architecture: 'amd64',
    root,
    content,
    vms,
    call: (method, where, body, headers) => dev.call(method, where, body, headers).catch(() => undefined),
    mortals: { service: () => ({ process: dev.process, fatal, points: /^(agent\.(?!peer|evict)|captures|capture-|qemu-|disk-|merge-|images)/ }) }, // biome-ignore format: one line
    revive: async () => {
      printed = (printed + dev.output()).slice(-400_000)
      dev = await eventually(start, timeoutMs)
    },
    disk: async (uid) => `json:${JSON.stringify(await diskNode(path.join(vms, uid)))}`,
    writable: 'stopped',
    async upload(image, disk) {
      const where = `${dev.apiUrl}/api/v1/namespaces/svc-default/upload/image?name=${image}&type=amd64`
      const headers = { authorization: `Bearer ${dev.token}`, 'content-type': 'application/octet-stream' }
      const answer = await fetch(where, { method: 'POST', headers, body: new Uint8Array(disk) })
      assert.equal(answer.status, 201, await answer.text())
    },
    isUp: async (uid) => {
      const said = eventually(() => assert.ok(hasWritten(pidOf(uid) ?? 0, 'console.log')), bootMs)
      await said.catch(() => undefined)
    },
    processOf: pidOf,
    processes: () => qemusIn(vms),
    leftovers: async () => {
      const names = (folder: string): Promise<string[]> =>
        fs.readdir(path.join(node, folder), { recursive: true }).catch(() => [])
      return [...(await names('captures')), ...(await names('images/content/unfinished'))]
    },
    evidence: async () => `the service:\n${printed}${dev.output()}\nits notes:\n${await notesIn(node)}`,
    hasOnly: async (digests) => {
      await age(content)
      await dev.kill('SIGTERM')
      // The service collects at its start.
      dev = await start()
      await eventually(async () => assert.deepEqual(await strays(content, digests), { left: [], lost: [] }), timeoutMs)
    },
    [Symbol.asyncDispose]: async () => {
      for (const pid of qemusIn(vms)) process.kill(pid, 'SIGKILL')
      await dev.kill('SIGKILL')
      await fs.rm(root, { recursive: true, force: true })
    },
  }
}

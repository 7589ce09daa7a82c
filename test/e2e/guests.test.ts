// A real guest through the real program, on one short path: deployed, logged in to, kept through a kill -9 of the service,
// deleted. The other architecture, registries and all else that guests can do are in the full suite.
import assert from 'node:assert/strict'
import { readdirSync, readlinkSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, it } from 'node:test'
import { greeting, openGuest, type SshPlace, seedTiny } from '../support/guests/guest.ts'
import { type DevServer, makeFolder, svc3 as run, startDev } from '../support/processes/dev-server.ts'
import { eventually } from '../support/tools/eventually.ts'

let folder: string
let data: string
let dev: DevServer

const svc3 = async (args: readonly string[], input = ''): Promise<string> => {
  const { code, stdout, stderr } = await run(args, { env: { SVC3_DATA: data }, input })
  assert.equal(code, 0, `svc3 ${args.join(' ')}: ${stderr}${stdout}`)
  return stdout
}
const show = async (name: string): Promise<SshPlace & { readonly powerState: string }> =>
  (await dev.call('GET', `/api/v1/namespaces/svc-default/vms/${name}`)).body as never

/** QEMU and what belongs to it works in the data folder. */
const processesOfVms = (): string[] =>
  readdirSync('/proc').filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`).startsWith(path.join(data, 'nodes'))
    } catch {
      return false
    }
  })

before(async () => {
  folder = await makeFolder()
  data = path.join(folder, 'data')
  await seedTiny(path.join(data, 'images'), ['amd64'])
  dev = await startDev(data)
})
after(async () => {
  await run(['vm', 'delete', 'intel'], { env: { SVC3_DATA: data } })
  await dev.kill('SIGTERM')
  await fs.rm(folder, { recursive: true, force: true })
})

it('an amd64 guest is deployed, takes a login by SSH, and outlives kill -9 of the service', async () => {
  await svc3(['vm', 'deploy', 'intel', '-i', 'tiny-amd64', '-c', '1', '-m', '0.3'])
  const place = await show('intel')
  using guest = await openGuest(place)
  assert.match(await guest.run('uname -m'), /x86_64/)
  const boot = await guest.run('cat /proc/sys/kernel/random/boot_id')
  await dev.kill('SIGKILL')
  assert.match((await greeting(place.ip, place.ssh)) ?? '', /^SSH-/)
  dev = await startDev(data)
  await eventually(async () => assert.equal((await show('intel')).powerState, 'running'), 120_000)
  const ssh = ['vm', 'ssh', 'intel', '--password-stdin', '--', 'cat', '/proc/sys/kernel/random/boot_id']
  assert.equal((await svc3(ssh, 'admin\n')).trim(), boot, 'it was never restarted')
  await svc3(['vm', 'delete', 'intel'])
  assert.deepEqual(processesOfVms(), [], 'every process of the VM has ended')
})

// Real guests of both architectures through the real program, on one short path: deployed, logged in to, kept through a kill -9
// of the service, pushed to a real registry and deployed from there. All that guests can do is in the full suite.
import assert from 'node:assert/strict'
import { readdirSync, readlinkSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, it } from 'node:test'
import { greeting, openGuest, type SshPlace, seedTiny } from '../support/guests/guest.ts'
import { type DevServer, makeFolder, svc3 as run, startDev } from '../support/processes/dev-server.ts'
import { type RegistryProcess, registryUser, startRegistry } from '../support/processes/registry.ts'
import { eventually } from '../support/tools/eventually.ts'

let folder: string
let data: string
let dev: DevServer
let registry: RegistryProcess

const svc3 = async (args: readonly string[], input = ''): Promise<string> => {
  const { code, stdout, stderr } = await run(args, { env: { SVC3_DATA: data }, input })
  assert.equal(code, 0, `svc3 ${args.join(' ')}: ${stderr}${stdout}`)
  return stdout
}
const show = async (name: string): Promise<SshPlace & { readonly powerState: string }> =>
  (await dev.call('GET', `/api/v1/namespaces/svc-default/vms/${name}`)).body as never
const deploy = (name: string, image: string): Promise<string> =>
  svc3(['vm', 'deploy', name, '-i', image, '-c', '1', '-m', '0.3'])

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
  await seedTiny(path.join(data, 'images'), ['amd64', 'arm64'])
  registry = await startRegistry({ folder: path.join(folder, 'registry'), hasPassword: true })
  dev = await startDev(data)
})
after(async () => {
  await run(['vm', 'delete', 'intel', 'apple', 'pulled'], { env: { SVC3_DATA: data } })
  await dev.kill('SIGTERM')
  await registry.kill()
  await fs.rm(folder, { recursive: true, force: true })
})

it('an amd64 guest is deployed, takes a login by SSH, and outlives kill -9 of the service', async () => {
  await deploy('intel', 'tiny-amd64')
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
})

it('an arm64 guest is pushed to a registry, and what was written in it is in a guest that is deployed from there', async () => {
  const image = `${registry.host}/team/tiny:v1`
  const { username, password } = registryUser
  await svc3(['regcred', 'add', registry.server, '-u', username, '--password-stdin', '--allow-insecure'], password)
  await deploy('apple', 'tiny-arm64')
  using guest = await openGuest(await show('apple'))
  assert.match(await guest.run('uname -m'), /aarch64/)
  await guest.run('echo kept > ~/file; sync')
  await svc3(['vm', 'push', 'apple', image, '--wait'])
  await svc3(['vm', 'delete', 'apple'])
  await deploy('pulled', image)
  using pulled = await openGuest(await show('pulled'))
  assert.equal(await pulled.run('cat ~/file'), 'kept')
  await svc3(['vm', 'delete', 'pulled'])
  assert.deepEqual(processesOfVms(), [], 'every process of the VMs has ended')
})

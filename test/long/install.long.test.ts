// An operating system is installed as docs/operate/hosts-linux.md says, with everything real but the installer: an empty image for
// macOS, a VM with an ISO, an installer that writes the disk and starts the machine again, what a person sets up there, a
// commit; and another VM from that image, which has all of it.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { buildGuest } from '../../packages/tiny-guests/build.ts'
import { openGuest, tinyCache } from '../support/guests/guest.ts'
import { type DevServer, makeFolder, startDev, svc3 } from '../support/processes/dev-server.ts'
import { installed, installerDisc } from './installer-disc.ts'

let data: string
let dev: DevServer
before(async () => {
  data = await makeFolder()
  await buildGuest({ name: 'tiny-amd64', folder: tinyCache, signal: AbortSignal.timeout(170_000) })
  const settings = { macos: { smcKey: 'planted-smc-key-'.repeat(4) } }
  await fs.writeFile(path.join(data, 'agent.json'), JSON.stringify(settings), { mode: 0o600 })
  dev = await startDev(data, { args: ['--nodes', 'amd64=1,arm64=0'] })
})
after(async () => {
  for (const vm of ['install', 'mac-1']) await svc3(['vm', 'delete', vm], { env: { SVC3_DATA: data } })
  await dev.kill('SIGTERM')
  await fs.rm(data, { recursive: true, force: true })
})

const ok = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await svc3(args, { env: { SVC3_DATA: data }, timeoutMs: 300_000 })
  assert.equal(code, 0, `svc3 ${args.join(' ')}: ${stderr}${stdout}`)
  return stdout
}
const into = async (vm: string) => {
  const { body } = await dev.call('GET', `/api/v1/namespaces/svc-default/vms/${vm}`)
  return openGuest({ ip: String(body.ip), ssh: Number(body.ssh) }, { user: 'root' }, 600_000)
}

describe('an empty image', { timeout: 1_500_000 }, () => {
  const size = ['-c', '1', '-m', '0.5']

  it('an empty image becomes what an installer from an ISO puts onto it', async () => {
    const iso = path.join(data, 'installer.iso')
    await fs.writeFile(iso, await installerDisc(path.join(tinyCache, 'tiny-amd64'), data))
    await ok('iso', 'upload', iso)
    await ok('image', 'generate', 'sonoma', '1G', '--os', 'macos')
    await ok('vm', 'deploy', 'install', '-i', 'sonoma', ...size, '--iso', 'installer.iso')
    using guest = await into('install')
    assert.match(await ok('vm', 'logs', 'install'), new RegExp(`${installed}[\\s\\S]*svc3: SSH is up`))
    await guest.run('echo by hand > /root/set-up; sync')
    await ok('vm', 'commit', 'install', '--wait')
    await ok('vm', 'delete', 'install')
  })

  it('an empty image is deployed without the ISO, and has what was set up', async () => {
    await ok('vm', 'deploy', 'mac-1', '-i', 'sonoma', ...size)
    using guest = await into('mac-1')
    assert.equal(await guest.run('cat /root/set-up'), 'by hand')
    assert.doesNotMatch(await ok('vm', 'logs', 'mac-1'), new RegExp(installed))
  })
})

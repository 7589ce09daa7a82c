// How macOS comes onto an Intel host, through all of the service: an empty image that says what it is for, a VM with
// the installer's ISO, a commit. The ISO is a stand-in: firmware, machine, keys and records are the real ones.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { buildGuest } from '../../packages/tiny-guests/build.ts'
import { exec } from '../../src/platform/exec.ts'
import { discGreeting, efiDisc } from '../support/guests/efi-disks.ts'
import { tinyCache } from '../support/guests/guest.ts'
import { type DevServer, filesIn, makeFolder, startDev, svc3 } from '../support/processes/dev-server.ts'
import { eventually } from '../support/tools/eventually.ts'

const smcKey = 'planted-smc-key-'.repeat(4)
let data: string
let dev: DevServer

before(async () => {
  data = await makeFolder()
  await buildGuest({ name: 'tiny-amd64', folder: tinyCache, signal: AbortSignal.timeout(390_000) })
  await fs.writeFile(path.join(data, 'agent.json'), JSON.stringify({ macos: { smcKey } }), { mode: 0o600 })
  dev = await startDev(data, { args: ['--nodes', 'amd64=1,arm64=0'] })
})
after(async () => {
  await svc3(['vm', 'delete', 'mac'], { env: { SVC3_DATA: data } })
  await dev.kill('SIGTERM')
  await fs.rm(data, { recursive: true, force: true })
})

const ok = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await svc3(args, { env: { SVC3_DATA: data }, timeoutMs: 300_000 })
  assert.equal(code, 0, `svc3 ${args.join(' ')}: ${stderr}${stdout}`)
  return stdout
}
const image = async () => (await dev.call('GET', '/api/v1/namespaces/svc-default/images/sonoma')).body

async function smallFile(file: string): Promise<string> {
  try {
    return (await fs.stat(file)).size > 2 ** 24 ? '' : await fs.readFile(file, 'latin1')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}

describe('macOS on an Intel host', () => {
  it('macOS on an Intel host is installed from an ISO onto an empty image, and committed; the SMC key is nowhere', async () => {
    const disk = path.join(tinyCache, 'tiny-amd64', 'disk.raw')
    const iso = path.join(data, 'installer.iso')
    await fs.writeFile(iso, await efiDisc(disk))
    await ok('iso', 'upload', iso)
    await ok('image', 'generate', 'sonoma', '1G', '--os', 'macos')
    assert.match(await ok('image', 'list', 'sonoma', '-o', 'wide'), /\tmacos\tno\n$/)
    const before = await image()
    await ok('vm', 'deploy', 'mac', '-i', 'sonoma', '-c', '1', '-m', '0.5', '--iso', 'installer.iso')
    const { stdout: processes } = await exec('ps', ['-eo', 'args', '-ww'])
    const qemu = processes.split('\n').find((line) => line.includes(data) && line.includes('-readconfig'))
    assert.match(qemu ?? '', /-machine q35,pflash0=.* -smp 1,sockets=1,.* -readconfig \S+\/smc\.conf /)
    const [log = ''] = (await filesIn(data)).filter((file) => path.basename(file) === 'console.log')
    await eventually(async () => assert.match(await fs.readFile(path.join(data, log), 'latin1'), discGreeting), 300_000)
    assert.match(await ok('vm', 'logs', 'mac'), discGreeting)
    await ok('vm', 'commit', 'mac', '--wait')
    const after = await image()
    assert.deepEqual([after.state, after.os], ['Ready', 'macos'])
    assert.notEqual(after.checksum, before.checksum)

    assert.ok(!processes.includes(smcKey) && !dev.output().includes(smcKey))
    let looked = 0
    for (const file of (await filesIn(data)).filter((each) => each !== 'agent.json')) {
      // The service keeps running while some of its files disappear.
      const text = await smallFile(path.join(data, file))
      assert.ok(!text.includes(smcKey), `${file} holds the SMC key`)
      if (text !== '') looked++
    }
    assert.ok(looked > 10)
  })
})

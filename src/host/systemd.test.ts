// The unit for systemd: systemd verifies it, and settings that keep VMs running are checked.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { exec } from '../platform/exec.ts'
import type { ServiceDefinition } from './service.ts'
import { systemdUnit, systemdWord } from './systemd.ts'

const agent: ServiceDefinition = {
  kind: 'agent',
  command: [process.execPath, '/bin/true', 'agent', '--name', 'a "b" 50% $HOME'],
  user: 'root',
  groups: [],
  dataDir: '/srv',
  writes: ['/srv/images'],
}
const server: ServiceDefinition = { ...agent, kind: 'server', command: [process.execPath, 'server'] }

describe('systemd unit', () => {
  let folder: string
  before(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-unit-'))
  })
  after(() => fs.rm(folder, { recursive: true }))

  for (const service of [agent, server])
    it(`the systemd unit of the ${service.kind} is accepted by systemd without warnings`, async () => {
      const file = path.join(folder, `svc3-${service.kind}.service`)
      await fs.writeFile(file, systemdUnit(service))
      // Errors of other units of the host do not count.
      const { stdout, stderr } = await exec('systemd-analyze', ['verify', '--man=no', '--recursive-errors=no', file])
      assert.deepEqual(
        `${stdout}${stderr}`.split('\n').filter((line) => line.includes('svc3-')),
        [],
      )
    })

  it('systemd complains about an invalid unit', async () => {
    const file = path.join(folder, 'svc3-wrong.service')
    await fs.writeFile(file, systemdUnit(agent).replace('KillMode=process', 'KillMode=gently'))
    const said = await exec('systemd-analyze', ['verify', '--man=no', '--recursive-errors=no', file]).then(
      ({ stdout, stderr }) => `${stdout}${stderr}`,
      (error: Error) => error.message,
    )
    assert.match(said, /svc3-wrong\.service.*gently/)
  })

  it('the systemd unit keeps VMs running when the agent ends, and their sockets visible to the next agent', () => {
    const text = systemdUnit(agent)
    for (const line of ['Type=notify', 'KillMode=process', 'SendSIGKILL=no', 'Restart=on-failure', 'PrivateTmp=no'])
      assert.ok(text.includes(`\n${line}\n`), line)
    assert.match(text, /^DeviceAllow=\/dev\/kvm rw$/m)
    assert.match(text, /^ReadWritePaths=\/srv \/srv\/images \/tmp \/var\/tmp$/m)
  })

  it('the systemd unit escapes arguments', () => {
    assert.match(systemdUnit(agent), / --name "a \\"b\\" 50%% \$\$HOME"\n/)
    assert.match(systemdUnit({ ...agent, writes: ['/srv/$images'] }), /^ReadWritePaths=\/srv "\/srv\/\$images" /m)
    assert.equal(systemdWord('https://svc3.example.com:8443'), 'https://svc3.example.com:8443')
    assert.equal(systemdWord('C:\\x y'), '"C:\\\\x y"')
    assert.throws(() => systemdWord('a\nExecStartPre=/bin/evil'), /cannot be in a unit/)
  })
})

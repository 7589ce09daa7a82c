// svc3 as a service under a real systemd, from its package: under separate users and all restrictions of its units,
// with a real guest that runs on while its agent is upgraded, killed, removed and installed again.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { exec } from '../../src/platform/exec.ts'
import { openGuest, seedTiny } from '../support/guests/guest.ts'
import { type DevServer, makeFolder, root, startDev, svc3 } from '../support/processes/dev-server.ts'
import { type SystemdHost, startSystemd } from '../support/processes/systemd-host.ts'
import { eventually } from '../support/tools/eventually.ts'

let folder: string
let server: DevServer
let host: SystemdHost
let install: string

before(async () => {
  folder = await makeFolder()
  server = await startDev(path.join(folder, 'server'), { args: ['--nodes', 'amd64=0,arm64=0'] })
  host = await startSystemd()
  await exec('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: root, timeoutMs: 170_000 })
  const [tarball = ''] = (await fs.readdir(folder)).filter((name) => name.endsWith('.tgz'))
  await host.run('cat > /usr/local/bin/node && chmod 755 /usr/local/bin/node', await fs.readFile(process.execPath))
  await host.run('cat > /root/svc3.tgz', await fs.readFile(path.join(folder, tarball)))
  await host.run('npm install -g --offline --no-audit --no-fund /root/svc3.tgz')
  install = 'svc3 agent install --name under-systemd --architecture amd64'
})
after(async () => {
  await server?.call('DELETE', '/api/v1/namespaces/svc-default/vms/demo').catch(() => undefined)
  await host?.[Symbol.asyncDispose]()
  await server?.kill('SIGTERM')
  await fs.rm(folder, { recursive: true, force: true })
})

/** Not the one that an agent has just asked for its version. */
const qemu = async (): Promise<string> => {
  const all = await host.run('ps -C qemu-system-x86 -o pid=,args= || true')
  const guests = all.split('\n').filter((line) => line.includes(' -qmp ') || line.includes(' -m '))
  return guests.map((line) => line.trim().split(' ')[0]).join(' ')
}
const node = async () => {
  const { items } = (await server.call('GET', '/api/v1/namespaces/svc-default/nodes')).body
  return (items as { name: string; phase: string; reason?: string }[])[0]
}
const ready = () =>
  eventually(async () => {
    const found = await node()
    assert.equal(found?.phase, 'READY', found?.reason)
  }, 120_000)

describe('the agent under systemd', { timeout: 900_000 }, () => {
  it('the agent under systemd joins, and runs a guest on a sealed network, as a user of its own', async () => {
    const made = await svc3(['node', 'join-token'], { env: { SVC3_DATA: path.join(folder, 'server') } })
    // The string alone: it says where the server is, too.
    await host.run(`${install} --join ${made.stdout.trim()}`)
    const traces = 'grep -rlF "$(cat)" /etc/systemd /usr/local/lib/svc3 /var/lib/svc3-agent || true'
    await eventually(async () => assert.equal(await host.run(traces, made.stdout.trim()), ''), 120_000)
    assert.match(await host.run('svc3 agent status'), /svc3-agent\trunning\t/)
    await ready()
    await seedTiny(path.join(folder, 'images'), ['amd64'])
    const images = await exec('tar', ['-C', path.join(folder, 'images'), '-cSzf', path.join(folder, 'i.tgz'), '.'])
    assert.equal(images.stderr, '')
    const unpack = 'tar -C /var/lib/svc3-agent/images -xSzf - && chown -R svc3-agent: /var/lib/svc3-agent/images'
    await host.run(unpack, await fs.readFile(path.join(folder, 'i.tgz')))
    const wanted = { name: 'demo', image: 'tiny-amd64', cpu: 1, memory: 0.5 }
    const { status, body } = await server.call('POST', '/api/v1/namespaces/svc-default/vms', wanted)
    assert.equal(status, 201, JSON.stringify(body))
    using guest = await openGuest(body as never, {}, 180_000)
    assert.equal(await guest.run('id -un'), 'admin')
    assert.equal((await host.run(`stat -c %U /proc/${await qemu()}`)).trim(), 'svc3-agent')
  })

  it('the agent under systemd leaves the guest alone when it is upgraded, killed, removed and installed again', async () => {
    const pid = await qemu()
    assert.match(pid, /^\d+$/)
    await host.run('svc3 agent upgrade')
    assert.equal(await qemu(), pid)
    const main = 'systemctl show -P MainPID svc3-agent'
    const before = await host.run(main)
    await host.run('systemctl kill -s KILL --kill-whom=main svc3-agent')
    await eventually(async () => {
      assert.match(await host.run('systemctl is-active svc3-agent || true'), /^active$/m)
      assert.notEqual(await host.run(main), before)
    }, 120_000)
    assert.equal(await qemu(), pid)
    await host.run('svc3 agent uninstall')
    assert.equal(await qemu(), pid)
    await host.run(install)
    await ready()
    assert.equal(await qemu(), pid)
    const { status } = await server.call('DELETE', '/api/v1/namespaces/svc-default/vms/demo')
    assert.equal(status, 200)
    await eventually(async () => assert.equal(await qemu(), ''), 120_000)
  })
})

describe('the server under systemd', { timeout: 300_000 }, () => {
  it('the server under systemd says when it is up, and takes users whom root has added', async () => {
    await host.run('svc3 server install --listen 127.0.0.1:0')
    assert.match(await host.run('svc3 server status'), /svc3-server\trunning\t/)
    const add = 'svc3 server users add a@example.com --admin --password-stdin --data /var/lib/svc3'
    assert.match(await host.run(add, 'correct-horse-battery\n'), /added as an administrator/)
    assert.match(await host.run('svc3 server users list --data /var/lib/svc3'), /a@example\.com/)
    await host.run('svc3 server uninstall')
  })
})

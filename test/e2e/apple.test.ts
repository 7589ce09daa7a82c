// Nodes of Apple silicon as people use them, on the stand-in for tart (test/support/tart-stand-in): a VM is deployed, saved,
// committed, pushed in tart's own format and pulled on another host; its agent is killed; its disk grows. The guest boots by
// its NVRAM alone, so that an image that lost it on the way would not come up.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { packAttachment } from '../../src/images/attachments.ts'
import { packDisk } from '../../src/images/chunks.ts'
import { openStore } from '../../src/images/store.ts'
import { putManifest } from '../../src/images/stored-manifests.ts'
import { buildTiny, tinyFolder } from '../../src/images/tiny/build.ts'
import { copy } from '../../src/oci/copy.ts'
import { imageSource } from '../../src/oci/image-target.ts'
import { openRegistry } from '../../src/oci/registry.ts'
import { makePair } from '../support/certificates.ts'
import { type DevServer, makeFolder, program, type Ran, svc3 as run, startDev } from '../support/dev-server.ts'
import { eventually } from '../support/eventually.ts'
import { type Guest, greeting, openGuest, tinyCache } from '../support/guest.ts'
import { type RegistryProcess, registryUser, startRegistry } from '../support/registry.ts'
import { installStandIn, tinyBundle, writeMachine } from '../support/tart-stand-in/install.ts'

const home = 'svc-default'
const away = 'svc-away'
const gib = 2 ** 30
let folder: string
let ca: string
let registry: RegistryProcess
let dev: DevServer
const agents = new Map<string, ChildProcess>()

const image = (name: string): string => `${registry.host}/team/${name}`
const svc3 = (words: readonly string[], input?: string): Promise<Ran> =>
  run(words, { env: { SVC3_DATA: path.join(folder, 'dev') }, timeoutMs: 240_000, ...(input && { input }) })
const ok = async (...words: string[]): Promise<string> => {
  const { code, stdout, stderr } = await svc3(words)
  assert.equal(code, 0, `svc3 ${words.join(' ')}: ${stderr}${stdout}`)
  return stdout
}
const vm = async (name: string, namespace = home) =>
  (await dev.call('GET', `/api/v1/namespaces/${namespace}/vms/${name}`)).body as unknown as {
    readonly ip: string
    readonly ssh: number
    readonly vnc: number
  }
const into = async (name: string, namespace = home): Promise<Guest> =>
  openGuest(await vm(name, namespace), {}, 180_000)
const bootId = 'cat /proc/sys/kernel/random/boot_id'

/** A host with tart. */
async function startAgent(name: string, namespace: string): Promise<void> {
  const { stdout } = await svc3(['node', 'join-token', '-n', namespace, '-o', 'json'])
  const [{ token }] = [JSON.parse(stdout)].flat()
  const words = ['agent', '--driver', 'apple', '--name', name, '--data', path.join(folder, name), '-a', dev.apiUrl]
  const child = spawn(program, [...words, '--cpu', '8', '--memory', '8', '--join-token-stdin'], {
    env: { ...process.env, PATH: `${path.join(folder, 'bin')}:${process.env.PATH}` },
    stdio: ['pipe', 'inherit', 'inherit'],
  })
  child.stdin?.end(token)
  agents.set(name, child)
  await eventually(async () => {
    const { body } = await dev.call('GET', `/api/v1/namespaces/${namespace}/nodes`)
    const nodes = body.items as { name: string; phase: string }[]
    assert.equal(nodes.find((node) => node.name === name)?.phase, 'READY', JSON.stringify(nodes))
  }, 60_000)
}

async function killAgent(name: string): Promise<void> {
  const child = agents.get(name)
  agents.delete(name)
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

/** The small Linux guest as an image that ran on a Mac. */
async function pushFirstImage(): Promise<void> {
  await buildTiny({ architecture: 'arm64', folder: tinyCache, signal: AbortSignal.timeout(170_000) })
  const tiny = tinyFolder(tinyCache, 'arm64')
  const store = await openStore(path.join(folder, 'store'))
  const { config, nvram } = await writeMachine(folder, await tinyBundle(tiny))
  const content = await putManifest(store, {
    formatVersion: 1,
    architecture: 'arm64',
    virtualSizeBytes: gib,
    boot: { kind: 'firmware' },
    layers: [await packDisk(path.join(tiny, 'disk.raw'), store, { isUncompressed: true })],
    machine: { config: await packAttachment(config, store), nvram: await packAttachment(nvram, store) },
  })
  const policy = { allowPrivate: true, allowLoopback: true }
  const connected = openRegistry({ server: registry.server, credentials: registryUser, ca, policy })
  const target = connected.repository('team/mac')
  await copy({ target: imageSource(store), reference: content }, { target, reference: 'v1' })
  connected.close()
}

before(async () => {
  folder = await makeFolder()
  await installStandIn(path.join(folder, 'bin'))
  const authority = await makePair({ name: 'authority', isAuthority: true })
  const tls = await makePair({ issuer: authority })
  registry = await startRegistry({ folder: path.join(folder, 'registry'), hasPassword: true, tls })
  ca = authority.cert
  await fs.mkdir(path.join(folder, 'dev'))
  await fs.writeFile(path.join(folder, 'ca.crt'), ca)
  const settings = { registries: { ca: { [registry.host]: path.join(folder, 'ca.crt') } } }
  await fs.writeFile(path.join(folder, 'dev', 'config.json'), JSON.stringify(settings))
  await pushFirstImage()
  dev = await startDev(path.join(folder, 'dev'), { args: ['--nodes', 'amd64=0,arm64=0'] })
  await ok('namespace', 'create', away)
  const { username, password } = registryUser
  for (const namespace of [home, away]) {
    const words = ['regcred', 'add', registry.server, '-u', username, '--password-stdin', '-n', namespace]
    const { code, stderr } = await svc3(words, password)
    assert.equal(code, 0, stderr)
  }
  await startAgent('mac', home)
})
after(async () => {
  for (const namespace of [home, away]) {
    const { body } = await dev.call('GET', `/api/v1/namespaces/${namespace}/vms`)
    const names = ((body.items ?? []) as { name: string }[]).map(({ name }) => name)
    if (names.length > 0) await svc3(['vm', 'delete', ...names, '-n', namespace])
  }
  for (const name of [...agents.keys()]) await killAgent(name)
  await dev.kill('SIGTERM')
  await registry.kill()
  await fs.rm(folder, { recursive: true, force: true })
})

describe('a VM on Apple silicon (on the stand-in for tart)', { timeout: 600_000 }, () => {
  const shape = ['-c', '1', '-m', '0.3']

  it('is deployed from a registry, has a shell, a screen, and room for one more of it', async () => {
    const [node] = JSON.parse(await ok('node', 'list', '-o', 'json'))
    assert.match(JSON.stringify(node), /tart 2\.35\.0-stand-in/)
    await ok('vm', 'deploy', 'a', '-i', image('mac:v1'), ...shape)
    const { ip, vnc } = await vm('a')
    assert.equal(await greeting(ip, vnc), 'RFB 003.008\n')
    using guest = await into('a')
    await guest.run('echo first > /home/admin/file; sync')
    assert.equal(await guest.run('uname -m'), 'aarch64')
  })

  it('is saved while it runs, and goes on where it was; another one has what it had', async () => {
    const boot = await (await into('a')).run(bootId)
    assert.match(await ok('vm', 'save', 'a', 'saved', '--wait'), /is Ready/)
    using guest = await into('a')
    assert.equal(await guest.run(bootId), boot, 'it has not booted')
    await ok('vm', 'deploy', 'b', '-i', 'saved', ...shape)
    using other = await into('b')
    assert.equal(await other.run('cat /home/admin/file'), 'first')
    assert.notEqual(
      await other.run('cat /sys/class/net/eth0/address'),
      await guest.run('cat /sys/class/net/eth0/address'),
    )
    const third = await svc3(['vm', 'deploy', 'c', '-i', 'saved', ...shape, '--no-wait'])
    assert.equal(third.code, 0, third.stderr)
    const limit = /node "mac" runs 2 VMs, which is its limit/
    await eventually(async () => assert.match((await svc3(['vm', 'list', 'c'])).stderr, limit, 'Apple allows two'))
    await ok('vm', 'delete', 'c')
    await other.run('echo committed > /home/admin/second; sync')
    await ok('vm', 'commit', 'b', '--wait')
    await ok('vm', 'delete', 'b')
  })

  it('is pushed as tart writes images, and runs on another host with what it had', async () => {
    await ok('vm', 'push', 'a', image('tart:v1'), '--format', 'tart', '--wait')
    const { body } = await dev.call('GET', `/api/v1/namespaces/${home}/pushjobs`)
    const [job] = body.items as { format: string; status: string }[]
    assert.deepEqual([job?.format, job?.status], ['tart', 'Succeeded'])
    await ok('vm', 'delete', 'a')
    await startAgent('far', away)
    await ok('vm', 'deploy', 'd', '-i', image('tart:v1'), ...shape, '-n', away)
    using guest = await into('d', away)
    assert.equal(await guest.run('cat /home/admin/file'), 'first')
    await guest.run('echo own > /home/admin/own; sync')
  })

  it('outlives its agent, and is reached again after another one has come', async () => {
    const boot = await (await into('d', away)).run(bootId)
    const { ip, ssh } = await vm('d', away)
    await killAgent('far')
    assert.equal(await greeting(ip, ssh), undefined, 'nobody forwards')
    await startAgent('far', away)
    using guest = await into('d', away)
    assert.equal(await guest.run(bootId), boot)
  })

  it('has a larger disk when that is asked for, with all that was on it', async () => {
    await ok('vm', 'resize', 'd', '2', '-n', away)
    using guest = await into('d', away)
    assert.equal(await guest.run('cat /home/admin/file /home/admin/own'), 'first\nown')
    assert.equal(await guest.run('cat /sys/class/block/vda/size'), String((2 * gib) / 512))
  })
})

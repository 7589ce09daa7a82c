// Push and pull as people do it, with a registry that wants a password and has a self-signed certificate: a VM is
// pushed, deployed in another namespace on another host, pushed again; and everything that takes part is killed once.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { PushJob } from '../../src/api/vms/push-jobs.ts'
import { openRegistry } from '../../src/oci/registry/registry.ts'
import { exec } from '../../src/platform/exec.ts'
import { type Guest, openGuest, seedTiny } from '../support/guests/guest.ts'
import {
  type DevServer,
  makeFolder,
  program,
  type Ran,
  svc3 as run,
  startDev,
} from '../support/processes/dev-server.ts'
import { type RegistryProcess, registryUser, startRegistry } from '../support/processes/registry.ts'
import { putTart } from '../support/stand-ins/tart.ts'
import { makePair } from '../support/tools/certificates.ts'
import { eventually } from '../support/tools/eventually.ts'
import { ownAddress } from '../support/tools/own-address.ts'

const { username, password } = registryUser
const mib = 2 ** 20
const other = 'svc-other'
let folder: string
let ca: string
let registry: RegistryProcess
let dev: DevServer
let agent: ChildProcess | undefined

const image = (name: string): string => `${registry.host}/team/${name}`
const svc3 = (words: readonly string[], input?: string): Promise<Ran> =>
  run(words, { env: { SVC3_DATA: path.join(folder, 'dev') }, timeoutMs: 300_000, ...(input && { input }) })
const ok = async (...words: string[]): Promise<string> => {
  const { code, stdout, stderr } = await svc3(words)
  assert.equal(code, 0, `svc3 ${words.join(' ')}: ${stderr}${stdout}`)
  return stdout
}
const into = async (vm: string, namespace: string): Promise<Guest> => {
  const { body } = await dev.call('GET', `/api/v1/namespaces/${namespace}/vms/${vm}`)
  return openGuest(body as never, {}, 120_000)
}
const jobs = async (namespace: string): Promise<PushJob[]> =>
  (await dev.call('GET', `/api/v1/namespaces/${namespace}/pushjobs`)).body.items as PushJob[]
const jobOf = async (reference: string, namespace: string): Promise<PushJob | undefined> =>
  (await jobs(namespace)).find((job) => job.image === reference)
const isIn = (reference: string, namespace: string, status: PushJob['status'], withinMs = 150_000): Promise<void> =>
  eventually(async () => {
    const job = await jobOf(reference, namespace)
    assert.equal(job?.status, status, JSON.stringify(job))
  }, withinMs)
const addCredentials = async (namespace: string, secret: string = password): Promise<void> => {
  const words = ['regcred', 'add', registry.server, '-u', username, '--password-stdin', '--replace', '-n', namespace]
  const { code, stderr } = await svc3(words, secret)
  assert.equal(code, 0, stderr)
}

/** A host of the other namespace, with separate images. */
async function startAgent(failpoint?: string): Promise<ChildProcess> {
  const { stdout } = await svc3(['node', 'join-token', '-n', other, '-o', 'json'])
  const [{ token }] = [JSON.parse(stdout)].flat()
  const words = ['agent', '--name', 'far', '--architecture', 'arm64', '--data', path.join(folder, 'far')]
  const child = spawn(program, [...words, '-a', dev.apiUrl, '--join-token-stdin'], {
    env: { ...process.env, ...(failpoint && { SVC3_TEST: '1', SVC3_FAILPOINT: failpoint }) },
    stdio: ['pipe', 'inherit', 'inherit'],
  })
  child.stdin?.end(token)
  await eventually(async () => {
    const { body } = await dev.call('GET', `/api/v1/namespaces/${other}/nodes`)
    assert.equal((body.items as { phase: string }[])[0]?.phase, 'READY')
  }, 120_000)
  return child
}

async function killAgent(): Promise<void> {
  if (!agent || agent.exitCode !== null || agent.signalCode !== null) return
  const ended = once(agent, 'exit')
  agent.kill('SIGKILL')
  await ended
}

before(async () => {
  folder = await makeFolder()
  const authority = await makePair({ name: 'authority', isAuthority: true })
  const address = ownAddress()
  registry = await startRegistry({
    folder: path.join(folder, 'registry'),
    hasPassword: true,
    tls: await makePair({ issuer: authority, address }),
    address,
  })
  ca = authority.cert
  await fs.mkdir(path.join(folder, 'certs'))
  await fs.writeFile(path.join(folder, 'certs', 'ca.crt'), ca)
  await fs.mkdir(path.join(folder, 'dev'))
  const settings = { registries: { ca: { [registry.host]: path.join(folder, 'certs', 'ca.crt') } } }
  await fs.writeFile(path.join(folder, 'dev', 'config.json'), JSON.stringify(settings))
  await seedTiny(path.join(folder, 'dev', 'images'), ['arm64'])
  dev = await startDev(path.join(folder, 'dev'), { args: ['--nodes', 'amd64=0,arm64=1'] })
})
after(async () => {
  for (const namespace of ['svc-default', other]) {
    const { body } = await dev.call('GET', `/api/v1/namespaces/${namespace}/vms`)
    const names = ((body.items ?? []) as { name: string }[]).map(({ name }) => name)
    if (names.length > 0) await svc3(['vm', 'delete', ...names, '-n', namespace])
  }
  await killAgent()
  await dev.kill('SIGTERM')
  await registry.kill()
  await fs.rm(folder, { recursive: true, force: true })
})

describe('a VM that is pushed', () => {
  let first: PushJob | undefined

  it('a VM that is pushed needs credentials; then it is in the registry, and another client accepts it', async () => {
    await ok('vm', 'deploy', 'a', '-i', 'tiny-arm64', '-c', '1', '-m', '0.3')
    const refused = await svc3(['vm', 'push', 'a', image('tiny:v1')])
    assert.equal(refused.code, 6, refused.stderr)
    assert.match(refused.stderr, new RegExp(`No credentials for registry ${registry.host} in svc-default`))
    await addCredentials('svc-default', 'canary-wrong')
    const failed = await svc3(['vm', 'push', 'a', image('tiny:wrong'), '--wait'])
    assert.notEqual(failed.code, 0)
    const { status, errorMessage = '' } = (await jobOf(image('tiny:wrong'), 'svc-default')) ?? assert.fail()
    assert.equal(status, 'Failed')
    for (const told of [failed.stderr, errorMessage]) {
      assert.match(told, /rejected the credentials.*svc3 regcred add/)
      assert.doesNotMatch(told, /canary/)
    }
    await addCredentials('svc-default')
    using guest = await into('a', 'svc-default')
    await guest.run('echo first > /home/admin/file; sync')
    await ok('vm', 'push', 'a', image('tiny:v1'), '--wait')
    first = await jobOf(image('tiny:v1'), 'svc-default')
    assert.equal(first?.status, 'Succeeded')
    assert.equal(first?.progress.bytesDone, first?.progress.bytesTotal)
    assert.match(await ok('vm', 'get-push-status'), /Succeeded/)
    const creds = ['--creds', `${username}:${password}`, '--cert-dir', path.join(folder, 'certs')]
    const { stdout } = await exec('skopeo', ['inspect', ...creds, `docker://${image('tiny:v1')}`], {
      timeoutMs: 300_000,
      env: { PATH: process.env.PATH ?? '', HOME: folder },
    })
    const seen = JSON.parse(stdout) as { Digest: string; Architecture: string }
    assert.deepEqual([seen.Digest, seen.Architecture], [first?.digest, 'arm64'])
  })

  it('a VM that is pushed sends little after a little change', async () => {
    using guest = await into('a', 'svc-default')
    await guest.run('echo second > /home/admin/second; sync')
    await ok('vm', 'push', 'a', image('tiny:v2'), '--wait')
    const { bytesSkipped = 0, bytesTotal = 0 } = (await jobOf(image('tiny:v2'), 'svc-default'))?.progress ?? {}
    assert.ok(bytesSkipped > 0.9 * bytesTotal, `${bytesSkipped} of ${bytesTotal} were skipped`)
    await ok('vm', 'delete', 'a')
  })
})

describe('an image in a registry', () => {
  it('an image in a registry is not for a namespace without credentials, whatever nodes have', async () => {
    await ok('namespace', 'create', other)
    agent = await startAgent()
    const refused = await svc3(['vm', 'deploy', 'b', '-i', image('tiny:v1'), '-n', other])
    assert.equal(refused.code, 6, refused.stderr)
    assert.match(refused.stderr, new RegExp(`No credentials for registry ${registry.host} in ${other}`))
    assert.match(refused.stderr, new RegExp(`svc3 regcred add ${registry.server} -u USER .*-n ${other}`))
    const { body } = await dev.call('GET', `/api/v1/namespaces/${other}/vms`)
    assert.deepEqual(body.items, [])
  })

  it('an image in a registry is deployed with credentials, straight from the registry, with the file in it', async () => {
    await addCredentials(other)
    const missing = await svc3(['vm', 'deploy', 'b', '-i', image('tiny:none'), '-n', other])
    assert.deepEqual([missing.code, /not found/.test(missing.stderr)], [5, true], missing.stderr)
    await ok('vm', 'deploy', 'b', '-i', image('tiny:v1'), '-c', '1', '-m', '0.3', '-n', other)
    using guest = await into('b', other)
    assert.equal(await guest.run('cat /home/admin/file'), 'first')
    assert.equal(await guest.run('ls /home/admin/second 2>/dev/null || echo none'), 'none')
    const { body } = await dev.call('GET', `/api/v1/namespaces/${other}/vms/b`)
    assert.equal(body.image, image('tiny:v1'))
    await ok('vm', 'save', 'b', 'saved', '-n', other, '--wait')
    const committed = await svc3(['vm', 'commit', 'b', '-n', other])
    assert.deepEqual([committed.code, /svc3 vm push b/.test(committed.stderr)], [2, true], committed.stderr)
  })

  it('an image in a registry is pushed from there after the agent was killed in the middle, without sending again what is there', async () => {
    using guest = await into('b', other)
    await guest.run(`head -c ${3 * mib} /dev/urandom > /home/admin/more; sync`)
    await killAgent()
    agent = await startAgent('oci.copy.blob')
    // It may be over before the command is.
    const ended = once(agent, 'exit')
    await ok('vm', 'push', 'b', image('again:v1'), '-n', other)
    assert.deepEqual(await ended, [null, 'SIGKILL'])
    agent = await startAgent()
    await isIn(image('again:v1'), other, 'Succeeded')
    const { progress } = (await jobOf(image('again:v1'), other)) as PushJob
    // What was sent before the kill is there, and so is what came from there in the first place.
    assert.ok(progress.bytesSkipped > progress.bytesTotal / 2, JSON.stringify(progress))
    assert.equal(await guest.run('cat /home/admin/file'), 'first', 'the guest did not notice')
  })

  it('an image in a registry can be given up, and goes on when the registry was away', async () => {
    await registry.kill()
    await ok('vm', 'push', 'b', image('never:v1'), '-n', other)
    await isIn(image('never:v1'), other, 'Running')
    const { name = '' } = (await jobOf(image('never:v1'), other)) ?? {}
    await ok('vm', 'cancel-push', name, '-n', other)
    await isIn(image('never:v1'), other, 'Cancelled')
    await ok('vm', 'push', 'b', image('later:v1'), '-n', other)
    await isIn(image('later:v1'), other, 'Running')
    const away = await dev.call('POST', `/api/v1/namespaces/${other}/vms`, { image: image('tiny:v1') })
    assert.deepEqual([away.status, /connection refused/.test(String(away.body.message))], [503, true])
    await registry.start()
    await isIn(image('later:v1'), other, 'Succeeded')
  })

  it('an image in a registry may be in the format of tart', async () => {
    const disk = Buffer.concat([randomBytes(3 * mib), Buffer.alloc(2 * mib), Buffer.from('x'.repeat(mib))])
    const connected = openRegistry({
      server: registry.server,
      credentials: { username, password },
      ca,
      policy: { allowPrivate: true, allowLoopback: true },
    })
    const config = { arch: 'arm64', os: 'linux' }
    await putTart(connected.repository('team/tart'), 'v1', { disk, layerBytes: 2 * mib, config })
    connected.close()
    await ok('vm', 'deploy', 't', '-i', image('tart:v1'), '-c', '1', '-m', '0.3', '-n', other)
    // By the next word of the node about itself.
    await eventually(async () => {
      const { body } = await dev.call('GET', `/api/v1/namespaces/${other}/cache/images`)
      const cached = (body.items as { name: string }[]).map(({ name }) => name)
      assert.deepEqual(cached, [image('tart:v1'), image('tiny:v1')])
    })
    const images = path.join(folder, 'far/images')
    const copies = (await fs.readdir(images)).filter((each) => each.startsWith('sha256-'))
    const files = copies.map((each) => path.join(images, each, 'disk.raw'))
    const sizes = await Promise.all(files.map(async (file) => (await fs.stat(file)).size))
    const disks = await Promise.all(files.filter((_, at) => sizes[at] === disk.length).map((file) => fs.readFile(file)))
    assert.ok(disks.some((each) => each.equals(disk)))
  })
})

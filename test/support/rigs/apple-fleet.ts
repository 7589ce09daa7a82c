// A service with Apple silicon nodes on the stand-in for tart, a registry with a Mac's image, and a namespace for a host
// that is elsewhere. The guest boots by its NVRAM only, so an image that lost its NVRAM would not boot.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { buildGuest } from '../../../packages/tiny-guests/build.ts'
import { openContentFolder } from '../../../src/images/content/store.ts'
import { packAttachment } from '../../../src/images/pack/attachments.ts'
import { packDisk } from '../../../src/images/pack/chunks.ts'
import { putManifest } from '../../../src/images/pack/stored-manifests.ts'
import { imageSource } from '../../../src/oci/artifact/image-target.ts'
import { copy } from '../../../src/oci/copy.ts'
import { openRegistry } from '../../../src/oci/registry/registry.ts'
import { type Guest, openGuest, tinyCache } from '../guests/guest.ts'
import { type DevServer, makeFolder, program, type Ran, svc3 as run, startDev } from '../processes/dev-server.ts'
import { endService } from '../processes/leftovers.ts'
import { type RegistryProcess, registryUser, startRegistry } from '../processes/registry.ts'
import { installStandIn, tinyBundle, writeMachine } from '../stand-ins/tart/install.ts'
import { makePair } from '../tools/certificates.ts'
import { eventually } from '../tools/eventually.ts'

export const home = 'svc-default'
export const away = 'svc-away'

interface ShownVm {
  readonly ip: string
  readonly ssh: number
  readonly vnc: number
}

export interface AppleFleet extends AsyncDisposable {
  readonly dev: DevServer
  /** The reference of an image in the registry; `mac:v1` exists. */
  image(name: string): string
  svc3(words: readonly string[], input?: string): Promise<Ran>
  /** Returns the output; throws if the command fails. */
  ok(...words: string[]): Promise<string>
  vm(name: string, namespace?: string): Promise<ShownVm>
  into(name: string, namespace?: string): Promise<Guest>
  /** Starts a host with tart, or a second agent on the host of `host`. */
  startAgent(name: string, namespace: string, host?: string): Promise<void>
  /** By kill -9. */
  killAgent(name: string): Promise<void>
}

export async function startAppleFleet(): Promise<AppleFleet> {
  const folder = await makeFolder()
  const agents = new Map<string, ChildProcess>()
  await installStandIn(path.join(folder, 'bin'))
  const authority = await makePair({ name: 'authority', isAuthority: true })
  const tls = await makePair({ issuer: authority })
  const registry = await startRegistry({ folder: path.join(folder, 'registry'), hasPassword: true, tls })
  await fs.mkdir(path.join(folder, 'dev'))
  await fs.writeFile(path.join(folder, 'ca.crt'), authority.cert)
  const settings = { registries: { ca: { [registry.host]: path.join(folder, 'ca.crt') } } }
  await fs.writeFile(path.join(folder, 'dev', 'config.json'), JSON.stringify(settings))
  await pushFirstImage(folder, registry, authority.cert)
  const dev = await startDev(path.join(folder, 'dev'), { args: ['--nodes', 'amd64=0,arm64=0'] })

  const fleet: AppleFleet = {
    dev,
    image: (name) => `${registry.host}/team/${name}`,
    svc3: (words, input) =>
      run(words, { env: { SVC3_DATA: path.join(folder, 'dev') }, timeoutMs: 240_000, ...(input && { input }) }),
    async ok(...words) {
      const { code, stdout, stderr } = await fleet.svc3(words)
      assert.equal(code, 0, `svc3 ${words.join(' ')}: ${stderr}${stdout}`)
      return stdout
    },
    vm: async (name, namespace = home) =>
      (await dev.call('GET', `/api/v1/namespaces/${namespace}/vms/${name}`)).body as unknown as ShownVm,
    into: async (name, namespace = home) => openGuest(await fleet.vm(name, namespace), {}, 180_000),
    async startAgent(name, namespace, host = name) {
      await fs.mkdir(path.join(folder, name), { recursive: true, mode: 0o700 })
      await fs.writeFile(path.join(folder, name, 'agent.json'), '{"apple":{"screen":"open"}}', { mode: 0o600 })
      const { stdout } = await fleet.svc3(['node', 'join-token', '-n', namespace, '-o', 'json'])
      const [{ token }] = [JSON.parse(stdout)].flat()
      const words = ['agent', '--driver', 'apple', '--name', name, '--data', path.join(folder, name), '-a', dev.apiUrl]
      const child = spawn(program, [...words, '--cpu', '8', '--memory', '8', '--join-token-stdin'], {
        env: {
          ...process.env,
          PATH: `${path.join(folder, 'bin')}:${process.env.PATH}`,
          TART_HOME: path.join(folder, `home-of-${host}`),
        },
        stdio: ['pipe', 'inherit', 'inherit'],
      })
      endService(child)
      child.stdin?.end(token)
      agents.set(name, child)
      await eventually(async () => {
        const { body } = await dev.call('GET', `/api/v1/namespaces/${namespace}/nodes`)
        const nodes = body.items as { name: string; phase: string }[]
        assert.equal(nodes.find((node) => node.name === name)?.phase, 'READY', JSON.stringify(nodes))
      }, 60_000)
    },
    async killAgent(name) {
      const child = agents.get(name)
      agents.delete(name)
      if (!child || child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
    async [Symbol.asyncDispose]() {
      for (const namespace of [home, away]) {
        const { body } = await dev.call('GET', `/api/v1/namespaces/${namespace}/vms`)
        const names = ((body.items ?? []) as { name: string }[]).map(({ name }) => name)
        if (names.length > 0) await fleet.svc3(['vm', 'delete', ...names, '-n', namespace])
      }
      for (const name of [...agents.keys()]) await fleet.killAgent(name)
      await dev.kill('SIGTERM')
      await registry.kill()
      await fs.rm(folder, { recursive: true, force: true })
    },
  }
  await fleet.ok('namespace', 'create', away)
  const { username, password } = registryUser
  for (const namespace of [home, away]) {
    const words = ['regcred', 'add', registry.server, '-u', username, '--password-stdin', '-n', namespace]
    const { code, stderr } = await fleet.svc3(words, password)
    assert.equal(code, 0, stderr)
  }
  await fleet.startAgent('mac', home)
  return fleet
}

/** The small Linux guest as an image that ran on a Mac. */
export async function pushFirstImage(folder: string, { server }: RegistryProcess, ca?: string): Promise<void> {
  await buildGuest({ name: 'tiny-arm64', folder: tinyCache, signal: AbortSignal.timeout(170_000) })
  const tiny = path.join(tinyCache, 'tiny-arm64')
  const store = await openContentFolder(path.join(folder, 'store'))
  const { config, nvram } = await writeMachine(folder, await tinyBundle(tiny))
  const content = await putManifest(store, {
    formatVersion: 1,
    architecture: 'arm64',
    virtualSizeBytes: 2 ** 30,
    boot: { kind: 'firmware' },
    os: 'macos',
    layers: [await packDisk(path.join(tiny, 'disk.raw'), store)],
    machine: { config: await packAttachment(config, store), nvram: await packAttachment(nvram, store) },
  })
  const policy = { allowPrivate: true, allowLoopback: true }
  const connected = openRegistry({
    server,
    credentials: registryUser,
    ...(ca ? { ca } : { allowInsecure: true }),
    policy,
  })
  const target = connected.repository('team/mac')
  await copy({ target: imageSource(store), reference: content }, { target, reference: 'v1' })
  connected.close()
}

// Puts the control plane together: store, keys, tokens, API, controllers. `svc3 dev` runs it beside the nodes.
import fs from 'node:fs/promises'
import path from 'node:path'
import { type Keyring, loadKeyring, saveKeyring, takeKeySource } from '../auth/keyring.ts'
import { createRoles } from '../auth/roles.ts'
import { Secrets } from '../auth/secrets.ts'
import { loadSigningKeys } from '../auth/signing-keys.ts'
import { createTokens, type Tokens } from '../auth/tokens.ts'
import { expireAnswers } from '../controllers/expire-answers.ts'
import { type Clock, systemClock } from '../platform/clock.ts'
import { readFileIfPresent } from '../platform/files.ts'
import { createLog, type Log } from '../platform/log.ts'
import { createApp } from '../server/app.ts'
import { createMetrics } from '../server/metrics.ts'
import { ensureDefaultNamespace } from '../server/namespace.ts'
import type { Services } from '../server/services.ts'
import { parseSettings } from '../server/settings.ts'
import { openCollections } from '../store/collections.ts'
import { measured } from '../store/measured.ts'
import { openStore } from '../store/open.ts'
import { type Rotation, resealAll } from './reseal.ts'
import { version } from './version.ts'

export interface ControlPlaneOptions {
  readonly dataFolder: string
  readonly host: string
  readonly port: number
  readonly environment: NodeJS.ProcessEnv
  readonly clock?: Clock
}

export interface ControlPlane {
  readonly apiUrl: string
  readonly log: Log
  readonly tokens: Tokens
  /** Reads the key file again and seals everything under its active key. */
  rotateKey(): Promise<Rotation>
  /** Takes no new requests, ends streams, lets requests under way finish, closes the store. */
  stop(): Promise<void>
}

const drainMs = 10_000

export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { dataFolder, host, port, environment, clock = systemClock } = options
  await using cleanup = new AsyncDisposableStack()
  await fs.mkdir(dataFolder, { recursive: true, mode: 0o700 })
  const settings = parseSettings(await readFileIfPresent(path.join(dataFolder, 'config.json')))
  const log = createLog(settings.logLevel)
  const metrics = createMetrics(version)
  const store = measured(await openStore(`sqlite:${dataFolder}`), metrics.store)
  cleanup.defer(() => store.close())
  const collections = cleanup.use(await openCollections(store))

  const keySource = takeKeySource(dataFolder, environment)
  const secrets = new Secrets(await loadKeyring(keySource, sealedCount() === 0))
  await settleKeys()
  await ensureDefaultNamespace({ collections, clock })
  const tokens = createTokens(await loadSigningKeys(collections.signingKeys, secrets, clock), clock)

  const stopping = new AbortController()
  const services: Services = {
    store, collections, secrets, tokens, roles: createRoles(), clock, log, metrics, settings, version, stopping: stopping.signal, apiUrl: '',
  } // biome-ignore format: a list to read
  const app = createApp(services)
  cleanup.defer(() => app.close())
  services.apiUrl = apiAddress(await app.listen({ host, port }))
  const loops = [expireAnswers(services)]
  const running = cleanup.move()

  return {
    apiUrl: services.apiUrl,
    log,
    tokens,
    rotateKey: async () => {
      secrets.use(await loadKeyring(keySource, false))
      return settleKeys()
    },
    stop: async () => {
      stopping.abort()
      const late = setTimeout(() => app.server.closeAllConnections(), drainMs)
      await Promise.all(loops.map((loop) => loop.stop()))
      await running.disposeAsync()
      clearTimeout(late)
    },
  }

  function sealedCount(): number {
    return collections.registryCredentials.list().length + collections.signingKeys.list().length
  }

  /** Finishes a rotation that was begun, also one that a crash cut off; says loudly which records do not open. */
  async function settleKeys(): Promise<Rotation> {
    const keepRing = keySource.source.kind === 'file' ? saveTo(keySource.source.file) : undefined
    const rotation = await resealAll(collections, secrets, keepRing)
    for (const { key, problem } of rotation.refused) log.error('a sealed record does not open', { name: key, problem })
    return rotation
  }
}

const saveTo = (file: string) => (ring: Keyring) => saveKeyring(file, ring)

/** An address to reach the service at: 0.0.0.0 is where it listens, not where it is. */
function apiAddress(address: string): string {
  return address.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}

// Puts the control plane together: store, keys, tokens, API, controllers. `svc3 dev` runs it beside the nodes.
import fs from 'node:fs/promises'
import path from 'node:path'
import { type Keyring, KeyringError, loadKeyring, saveKeyring, takeKeySource } from '../auth/keyring.ts'
import { createRoles } from '../auth/roles.ts'
import { Secrets } from '../auth/secrets.ts'
import { loadSigningKeys } from '../auth/signing-keys.ts'
import { createTokens, type Tokens } from '../auth/tokens.ts'
import { expireAnswers } from '../controllers/expire-answers.ts'
import { type Clock, systemClock } from '../platform/clock.ts'
import { readFileIfPresent } from '../platform/files.ts'
import { createLog, type Log } from '../platform/log.ts'
import { createApp } from '../server/app.ts'
import { createLimits } from '../server/limits.ts'
import { createMetrics } from '../server/metrics.ts'
import { ensureDefaultNamespace } from '../server/namespace.ts'
import type { Services } from '../server/services.ts'
import { parseSettings } from '../server/settings.ts'
import { openCollections } from '../store/collections.ts'
import { measured } from '../store/measured.ts'
import { openStore } from '../store/open.ts'
import { removeConnection } from './connection.ts'
import { notOurs, type Rotation, resealAll, rotateKeyFile } from './reseal.ts'
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
  /** Makes a new master key and seals everything under it. */
  rotateKey(): Promise<Rotation>
  /** Resolves when the store can never go on in this process: it has to be started again. */
  readonly failed: Promise<Error>
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
  // The data is ours from here on: what a killed process said about itself is not true any more.
  await removeConnection(dataFolder)
  cleanup.defer(() => store.close())
  const collections = cleanup.use(await openCollections(store))

  const keySource = takeKeySource(dataFolder, environment)
  const secrets = new Secrets(await loadKeyring(keySource, sealedCount() === 0))
  await settleKeys()
  await ensureDefaultNamespace({ collections, clock })
  const signingKeys = await loadSigningKeys(collections.signingKeys, secrets, clock)
  const tokens = createTokens(signingKeys, clock)

  const stopping = new AbortController()
  const services: Services = {
    store,
    collections,
    secrets,
    tokens,
    roles: createRoles(),
    requestSecret: signingKeys.derive('requests'),
    limits: createLimits(settings),
    clock,
    log,
    metrics,
    settings,
    version,
    stopping: stopping.signal,
    apiUrl: '',
  }
  const app = createApp(services)
  cleanup.defer(() => app.close())
  services.apiUrl = apiAddress(await app.listen({ host, port }))
  const loops = [expireAnswers(services)]
  const running = cleanup.move()

  return {
    apiUrl: services.apiUrl,
    log,
    tokens,
    failed: store.failed,
    rotateKey: async () => {
      if (keySource.source.kind !== 'file') throw new KeyringError(notOurs(keySource.source.name))
      return announced(await rotateKeyFile(collections, secrets, keySource.source.file))
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

  /** Finishes a rotation that was begun, also one that a crash cut off. */
  async function settleKeys(): Promise<void> {
    const keepRing = keySource.source.kind === 'file' ? saveTo(keySource.source.file) : undefined
    announced(await resealAll(collections, secrets, keepRing))
  }

  /** Records that do not open are told loudly. */
  function announced(rotation: Rotation): Rotation {
    for (const { key, problem } of rotation.refused) log.error('a sealed record does not open', { name: key, problem })
    return rotation
  }
}

const saveTo = (file: string) => (ring: Keyring) => saveKeyring(file, ring)

/** An address to reach the service at: 0.0.0.0 is where it listens, not where it is. */
function apiAddress(address: string): string {
  return address.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}

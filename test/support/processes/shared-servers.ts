// Several servers in this process on one etcd, and requests to any of them.
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import { parseKeyring } from '../../../src/auth/keyring.ts'
import { Secrets } from '../../../src/auth/secrets.ts'
import { loadSigningKeys } from '../../../src/auth/signing-keys.ts'
import { createTokens } from '../../../src/auth/tokens.ts'
import {
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
} from '../../../src/control-plane/control-plane.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { openStore } from '../../../src/store/open.ts'
import { openCollections } from '../../../src/store/records/collections.ts'
import { makeFolder } from './dev-server.ts'
import { type EtcdCluster, type EtcdClusterOptions, startEtcd } from './etcd.ts'

export interface SharedServers extends AsyncDisposable {
  readonly etcd: EtcdCluster
  readonly storeAddress: string
  readonly masterKey: string
  /** A folder that is removed with the rest. */
  folder(): Promise<string>
  start(options?: Partial<ControlPlaneOptions>): Promise<ControlPlane>
}

interface Asked {
  readonly token: string
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
}

interface SharedOptions extends EtcdClusterOptions {
  /** Servers are silent unless a test wants their log. */
  readonly logLevel?: 'warn'
}

export async function startShared({ logLevel, ...options }: SharedOptions = {}): Promise<SharedServers> {
  const etcd = await startEtcd(options)
  const cleanup = new AsyncDisposableStack()
  cleanup.use(etcd)
  const storeAddress = `etcd://${etcd.urls.map((url) => new URL(url).host).join()}/shared`
  const masterKey = randomBytes(32).toString('base64')
  const folder = async (): Promise<string> => {
    const made = await makeFolder()
    cleanup.defer(() => fs.rm(made, { recursive: true, force: true }))
    await fs.writeFile(`${made}/config.json`, JSON.stringify({ logLevel: logLevel ?? 'silent' }))
    return made
  }
  return {
    etcd,
    storeAddress,
    masterKey,
    folder,
    async start(more = {}) {
      const place = { storeAddress, host: '127.0.0.1', port: 0, plainHttp: true }
      const environment = { SVC3_MASTER_KEY: masterKey }
      const dataFolder = more.dataFolder ?? (await folder())
      const plane = await startControlPlane({ ...place, environment, ...more, dataFolder })
      cleanup.defer(() => plane.stop())
      return plane
    },
    [Symbol.asyncDispose]: () => cleanup.disposeAsync(),
  }
}

/** An administrator's token, signed as the servers do it. */
export async function tokenFor({
  storeAddress,
  masterKey,
}: Pick<SharedServers, 'storeAddress' | 'masterKey'>): Promise<string> {
  const store = await openStore(storeAddress)
  try {
    await using collections = await openCollections(store)
    const secrets = new Secrets(parseKeyring(masterKey, 'the key of the test'))
    using keys = await loadSigningKeys(collections.signingKeys, secrets, systemClock)
    const tokens = createTokens(keys, systemClock, () => true)
    return (await tokens.issue({ kind: 'user', name: 'admin@example.com', admin: true })).token
  } finally {
    await store.close()
  }
}

export const adminToken = async ({ tokens }: ControlPlane): Promise<string> =>
  (await tokens.issue({ kind: 'user', name: 'admin@example.com', admin: true })).token

export async function ask(
  { localUrl }: Pick<ControlPlane, 'localUrl'>,
  method: string,
  where: string,
  { token, body, headers = {} }: Asked,
): Promise<Response> {
  return fetch(`${localUrl}/api/v1${where}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }), ...headers },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(60_000),
  })
}

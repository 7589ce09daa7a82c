// The records that svc3 keeps, one line a kind: what it is called in the store, and what it holds.
import { Collection, type KindStore } from '../collection.ts'
import type { Store } from '../store.ts'
import { View } from '../view.ts'
import { type EventRecord, storedEvents } from './events.ts'
import type {
  BootOrderRecord,
  ImageRecord,
  NodeRecord,
  PoolRecord,
  QuotaRecord,
  VmConfigRecord,
  VmRecord,
  VmSecretRecord,
} from './fleet-records.ts'
import type { HistoryRecord } from './history.ts'
import { NodeVms } from './node-vms.ts'
import type { PushJobRecord } from './push-jobs.ts'
import { type CallerRecord, type RecordMeta, raising } from './record-meta.ts'
import type { RunnerCredentialRecord, RunnerJobRecord, RunnerPoolRecord, RunnerRecord } from './runner-records.ts'
import type {
  KnownServerRecord,
  LoginTriesRecord,
  PresenceRecord,
  ServerRecord,
  UploadPlaceRecord,
  UsedRecord,
} from './server-records.ts'
import { storedVms } from './stored-vms.ts'
import type { UsageRecord, VmEndsRecord } from './usage.ts'

/** The secret of such a record is sealed and bound to its key and to all its other fields: see auth/secrets.ts. */
export interface SealedRecord {
  readonly sealed: string
}

export interface NamespaceRecord {
  readonly name: string
  /** As it was created, where that is an alias of its name. */
  readonly spelling?: string
  readonly customPods: boolean
  readonly createdAt: string
  readonly requestKey?: string
  /** Set while what is in it is being removed; nothing new may come in. */
  readonly isTerminating?: boolean
  readonly meta?: RecordMeta
}

interface EraRecord {
  readonly uid: string
  readonly since: string
  /** Where servers share the data: which of them began it, and when. */
  readonly server?: string
  readonly at?: string
}

/** One record, `id`: these data and no others. */
export interface ClusterRecord {
  readonly uid: string
  readonly createdAt: string
  /** The starts of servers on these data, the newest last, each with the revision that it found. */
  readonly eras?: readonly EraRecord[]
}

export interface ServiceAccountRecord {
  readonly name: string
  readonly namespace: string
  /** What tokens are bound to: an account made again under the same name is another one. */
  readonly uid: string
  readonly createdAt: string
  readonly requestKey?: string
  readonly meta?: RecordMeta
}

/** One record per namespace and role. */
export interface RoleBindingRecord {
  readonly users: readonly string[]
  readonly serviceAccounts: readonly { readonly name: string; readonly namespace: string; readonly uid: string }[]
  /** In the default namespace, where every user has the role: those from whom it was taken. */
  readonly excludedUsers: readonly string[]
  readonly meta?: RecordMeta
}

/** One key per registry and namespace: the store itself keeps it at one set (docs/spec.md R17). */
export interface RegistryCredentialRecord {
  readonly server: string
  readonly username: string
  readonly allowInsecure: boolean
  readonly createdAt: string
  readonly updatedAt: string
  readonly updatedBy: string
  /** The request that wrote it, so that a repeated request recognises its own work after a crash. */
  readonly requestKey?: string
  /** What that request did, and so which answer it got. */
  readonly isReplacement?: boolean
  /** The password, sealed and bound to all of the above. */
  readonly sealed: string
}

export interface SigningKeyRecord {
  readonly kid: string
  readonly createdAt: string
  /** Published before it is used; since `createdAt` when missing. */
  readonly signsFrom?: string
  /** No token of it that is good for more than a day is good for longer; `never`: some are good for ever. */
  readonly tokensUntil?: string
  /** The one that does not sign, but other secrets follow from it. */
  readonly use?: 'derive'
  readonly sealed: string
}

/** The certificate that HTTPS is served with: `api`; the one that vouches for the nodes: `node-authority`. */
export interface CertificateRecord {
  /** PEM, that of the key first. */
  readonly certificate: string
  /** made: by the service itself, which renews it. */
  readonly origin: 'made' | 'uploaded'
  readonly updatedAt: string
  readonly updatedBy: string
  /** The private key, sealed and bound to all of the above. */
  readonly sealed: string
}

/** The first answer to a request that carried an Idempotency-Key. */
export interface AnswerRecord {
  readonly fingerprint: string
  readonly status: number
  readonly body: string
  readonly createdAt: string
}

/** Keys of the built-in identity provider; one record, sealed. */
export interface IssuerKeysRecord {
  readonly createdAt: string
  readonly sealed: string
}

/** A user of the built-in identity provider, where servers share a store; the hash of the password is sealed. */
export interface UserRecord {
  readonly uid: string
  readonly email: string
  readonly admin: boolean
  readonly createdAt: string
  readonly sealed: string
}

/** How often one caller's program called one path of 2.4.x. */
export interface LegacyUsageRecord {
  readonly endpoint: string
  readonly subject: string
  readonly client: string
  readonly calls: number
  /** Those of them that were refused. */
  readonly refused: number
  readonly firstAt: string
  readonly lastAt: string
}

/** What the built-in identity provider remembers: sessions, codes, refresh tokens. Ids are hashed, the rest is sealed. */
export interface LoginRecord {
  readonly model: string
  readonly expiresAt: string
  /** By which it is found besides its id, hashed. */
  readonly grant?: string
  readonly other?: string
  readonly sealed: string
}

/** A browser that is logged in, by the hash of what its cookie holds. */
export interface BrowserSessionRecord {
  readonly principal: CallerRecord
  readonly createdAt: string
  readonly expiresAt: string
  /** However often it is renewed. */
  readonly endsAt: string
  /** A server asks the provider to let it go on; in ms. */
  readonly renewingUntil?: number
  /** Only of a ticket: when the session ends, at the latest, that it is exchanged for. */
  readonly sessionEndsAt?: string
  /** What it is renewed with, or nothing; bound to all of the above. */
  readonly sealed: string
}

const imageSpec = ({ content, sizeBytes, source, sourceType, owner }: ImageRecord) => [
  content,
  sizeBytes,
  source,
  sourceType,
  owner,
]

const kinds = {
  namespaces: kind<NamespaceRecord>('/namespaces/'),
  registryCredentials: sealed<RegistryCredentialRecord>('/registry-credentials/'),
  signingKeys: sealed<SigningKeyRecord>('/signing-keys/'),
  answers: kind<AnswerRecord>('/answers/'),
  certificates: sealed<CertificateRecord>('/certificates/'),
  issuerKeys: sealed<IssuerKeysRecord>('/issuer-keys/'),
  logins: sealed<LoginRecord>('/logins/'),
  users: sealed<UserRecord>('/users/'),
  browserSessions: sealed<BrowserSessionRecord>('/browser-sessions/'),
  serviceAccounts: kind<ServiceAccountRecord>('/service-accounts/'),
  roleBindings: kind<RoleBindingRecord>(
    '/role-bindings/',
    undefined,
    raising(({ users, serviceAccounts }) => [users, serviceAccounts]),
  ),
  events: kind<EventRecord>('/events/', storedEvents),
  vms: kind<VmRecord>(
    '/vms/',
    storedVms,
    raising(({ shape, reservedPorts }) => [shape, reservedPorts]),
  ),
  vmSecrets: sealed<VmSecretRecord>('/vm-secrets/'),
  vmConfigs: kind<VmConfigRecord>(
    '/vm-configs/',
    undefined,
    raising(({ shape }) => [shape]),
  ),
  pools: kind<PoolRecord>('/pools/'),
  runnerPools: kind<RunnerPoolRecord>('/runner-pools/'),
  runnerCredentials: sealed<RunnerCredentialRecord>('/runner-credentials/'),
  runners: kind<RunnerRecord>('/runners/'),
  runnerJobs: kind<RunnerJobRecord>('/runner-jobs/'),
  nodes: kind<NodeRecord>(
    '/nodes/',
    undefined,
    raising(({ tags, namespace, isCordoned }) => [tags, namespace, isCordoned]),
  ),
  images: kind<ImageRecord>('/images/', undefined, raising(imageSpec)),
  isos: kind<ImageRecord>('/isos/', undefined, raising(imageSpec)),
  bootOrders: kind<BootOrderRecord>('/boot-orders/'),
  pushJobs: kind<PushJobRecord>('/push-jobs/'),
  quotas: kind<QuotaRecord>('/quotas/'),
  legacyUsage: kind<LegacyUsageRecord>('/legacy-usage/'),
  history: kind<HistoryRecord>('/history/'),
  vmEnds: kind<VmEndsRecord>('/vm-ends/'),
  usage: kind<UsageRecord>('/usage/'),
  cluster: kind<ClusterRecord>('/cluster/'),
  servers: kind<ServerRecord>('/servers/'),
  knownServers: kind<KnownServerRecord>('/known-servers/'),
  presence: kind<PresenceRecord>('/presence/'),
  uploadPlaces: kind<UploadPlaceRecord>('/upload-places/'),
  used: kind<UsedRecord>('/used/'),
  loginTries: kind<LoginTriesRecord>('/login-tries/'),
}

type Kinds = typeof kinds
type Opened = { readonly [Name in keyof Kinds]: ReturnType<Kinds[Name]['open']> }
export type Collections = Opened & AsyncDisposable & { readonly nodeVms: NodeVms }

/** Opens every collection and waits until each has read what is there. */
export async function openCollections(store: Store, signal?: AbortSignal): Promise<Collections> {
  const opened = Object.entries(kinds).map(([name, { open }]) => [name, open(store)] as const)
  const collections = Object.fromEntries(opened) as unknown as Opened
  const nodeVms = new NodeVms(collections.vms)
  const close = async (): Promise<void> => {
    await Promise.all(opened.map(([, collection]) => collection.view.close()))
  }
  await Promise.all(opened.map(([, collection]) => collection.view.synced(signal))).catch(async (error: unknown) => {
    await close()
    throw error
  })
  return { ...collections, nodeVms, [Symbol.asyncDispose]: close }
}

/** For whoever asks how all of them are. */
export const viewsOf = (collections: Collections): readonly View<unknown>[] =>
  Object.keys(kinds).map((name) => collections[name as keyof typeof kinds].view as View<unknown>)

/** For whoever counts or rewrites all that is sealed. */
export const sealedOf = (collections: Collections): readonly Collection<SealedRecord>[] =>
  Object.entries(kinds).flatMap(([name, { isSealed }]) =>
    isSealed ? (collections[name as keyof Kinds] as unknown as Collection<SealedRecord>) : [],
  )

/** A kind without secrets: with records that have a sealed field it does not compile. */
function kind<T>(
  prefix: T extends SealedRecord ? never : string,
  through: (store: Store) => KindStore = (store) => store,
  revised: (before: T, after: T) => T = (_before, after) => after,
) {
  return { isSealed: false, open: (store: Store) => opened<T>(through(store), prefix, revised) }
}

/** A kind whose records hold a secret, in the field `sealed`. */
function sealed<T extends SealedRecord>(prefix: string) {
  return { isSealed: true, open: (store: Store) => opened<T>(store, prefix) }
}

function opened<T>(store: KindStore, prefix: string, revised?: (before: T, after: T) => T): Collection<T> {
  return new Collection(store, new View<T>(store, prefix), prefix, revised)
}

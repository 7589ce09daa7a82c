// The kinds of records: the prefix of each in the store, its type, and to whom its records belong.
import type { allowances } from '../../api/operation.ts'
import type { LegacyUsage } from '../../api/service/legacy-usage.ts'
import { Collection, scopeOf } from '../collection.ts'
import { Shares, type Stored } from '../shares.ts'
import type { Store } from '../store.ts'
import { View } from '../view.ts'
import { EventShares } from './event-shares.ts'
import type { EventRecord } from './events.ts'
import type {
  BootOrderRecord,
  ExpectedNodeRecord,
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
import type { UsageRecord, VmEndsRecord } from './usage.ts'

/** A record whose secret is encrypted and bound to its key and all other fields; see auth/secrets.ts. */
export interface SealedRecord {
  readonly sealed: string
}

export interface NamespaceRecord {
  readonly name: string
  /** The name as it was given at creation, if that is an alias. */
  readonly spelling?: string
  readonly customPods: boolean
  readonly createdAt: string
  readonly requestKey?: string
  /** Set while the contents are being deleted. Nothing new can be created inside. */
  readonly isTerminating?: boolean
  readonly meta?: RecordMeta
}

interface EraRecord {
  readonly uid: string
  readonly since: string
  /** The server that began this era, and when. Only where servers share the data. */
  readonly server?: string
  readonly at?: string
}

/** One record, named `id`, that identifies the data. */
export interface ClusterRecord {
  readonly uid: string
  readonly createdAt: string
  /** Starts of servers on these data, newest last, each with the revision that it found. */
  readonly eras?: readonly EraRecord[]
}

export interface ServiceAccountRecord {
  readonly name: string
  readonly namespace: string
  /** Tokens are bound to it, so that those of a deleted account are invalid for a new one of the same name. */
  readonly uid: string
  readonly createdAt: string
  /** Default: a developer of its namespace. */
  readonly role?: 'administrator'
  /** Only of administrators: see `allowances` of the API. */
  readonly allow?: readonly (typeof allowances)[number][]
  readonly requestKey?: string
  readonly meta?: RecordMeta
}

export interface RoleBindingRecord {
  readonly users: readonly string[]
  readonly serviceAccounts: readonly { readonly name: string; readonly namespace: string; readonly uid: string }[]
  /** Only in the default namespace, where every user has the role: users from whom it was taken. */
  readonly excludedUsers: readonly string[]
  readonly meta?: RecordMeta
}

/** One record per registry and namespace, which the key ensures (docs/spec.md R17). */
export interface RegistryCredentialRecord {
  readonly server: string
  readonly username: string
  readonly allowInsecure: boolean
  readonly createdAt: string
  readonly updatedAt: string
  readonly updatedBy: string
  /** The request that wrote this, so that a repetition after a crash finds its own work. */
  readonly requestKey?: string
  /** Whether that request replaced credentials, which decides its answer. */
  readonly isReplacement?: boolean
  readonly sealed: string
}

export interface SigningKeyRecord {
  readonly kid: string
  readonly createdAt: string
  /** Set if the key is published before it signs. Default: `createdAt`. */
  readonly signsFrom?: string
  /** When the last long-lived token of this key expires; `never` if some do not expire. */
  readonly tokensUntil?: string
  /** Set on the one key that does not sign, from which other secrets are derived. */
  readonly use?: 'derive'
  readonly sealed: string
}

/** `api`: the certificate for HTTPS. `node-authority`: the authority that signs the certificates of nodes. */
export interface CertificateRecord {
  /** PEM; the certificate of the key comes first. */
  readonly certificate: string
  /** The service renews certificates that it made. */
  readonly origin: 'made' | 'uploaded'
  readonly updatedAt: string
  readonly updatedBy: string
  readonly sealed: string
}

export interface AnswerRecord {
  readonly fingerprint: string
  readonly status: number
  readonly body: string
  readonly createdAt: string
}

/** One record with the keys of the built-in identity provider. */
export interface IssuerKeysRecord {
  readonly createdAt: string
  readonly sealed: string
}

/** A user of the built-in identity provider. The hash of the password is sealed. */
export interface UserRecord {
  readonly uid: string
  readonly email: string
  readonly admin: boolean
  readonly createdAt: string
  readonly sealed: string
}

/** How often one caller's program called one path of the 2.4.x API. */
export type LegacyUsageRecord = Readonly<LegacyUsage>

/** A session, code or refresh token of the built-in identity provider. Ids are hashed, and the rest is sealed. */
export interface LoginRecord {
  readonly model: string
  readonly expiresAt: string
  /** Hashed values by which the record is found besides its id. */
  readonly grant?: string
  readonly other?: string
  readonly sealed: string
}

/** A browser session, named by the hash of its cookie. */
export interface BrowserSessionRecord {
  readonly principal: CallerRecord
  readonly createdAt: string
  readonly expiresAt: string
  /** The end of the session, however often it is renewed. */
  readonly endsAt: string
  /** Until then, in ms, a server is renewing the session at the provider. */
  readonly renewingUntil?: number
  /** Only in a ticket: the latest end of the session that the ticket is exchanged for. */
  readonly sessionEndsAt?: string
  /** The refresh token, if any. */
  readonly sealed: string
}

const imageSpec = ({ content, sizeBytes, source, sourceType, owner }: ImageRecord) => [
  content,
  sizeBytes,
  source,
  sourceType,
  owner,
]

/** The namespace that an image was made in. Images that came with svc3 have none. */
const madeIn = ({ sourceNamespace }: ImageRecord) => sourceNamespace

/**
 * To whom the records of each kind belong. `namespace`: their scope, within the limits of its quota. `caller`: their
 * scope, within separate limits. `service`: only the service, nodes and administrators make them, or they expire.
 */
const kinds = {
  namespaces: kind<NamespaceRecord>('/namespaces/', 'service'),
  registryCredentials: sealed<RegistryCredentialRecord>('/registry-credentials/', 'namespace'),
  signingKeys: sealed<SigningKeyRecord>('/signing-keys/', 'service'),
  answers: kind<AnswerRecord>('/answers/', 'caller'),
  certificates: sealed<CertificateRecord>('/certificates/', 'service'),
  issuerKeys: sealed<IssuerKeysRecord>('/issuer-keys/', 'service'),
  logins: sealed<LoginRecord>('/logins/', 'service'),
  users: sealed<UserRecord>('/users/', 'service'),
  browserSessions: sealed<BrowserSessionRecord>('/browser-sessions/', 'service'),
  serviceAccounts: kind<ServiceAccountRecord>('/service-accounts/', 'namespace'),
  roleBindings: kind<RoleBindingRecord>(
    '/role-bindings/',
    'namespace',
    raising(({ users, serviceAccounts }) => [users, serviceAccounts]),
  ),
  events: kind<EventRecord>('/events/', 'service'),
  vms: kind<VmRecord>(
    '/vms/',
    'namespace',
    raising(({ shape, reservedPorts }) => [shape, reservedPorts]),
  ),
  vmSecrets: sealed<VmSecretRecord>('/vm-secrets/', ({ namespace }) => namespace),
  vmConfigs: kind<VmConfigRecord>(
    '/vm-configs/',
    'namespace',
    raising(({ shape }) => [shape]),
  ),
  pools: kind<PoolRecord>('/pools/', 'namespace'),
  runnerPools: kind<RunnerPoolRecord>('/runner-pools/', 'namespace'),
  runnerCredentials: sealed<RunnerCredentialRecord>('/runner-credentials/', ({ namespace }) => namespace),
  runners: kind<RunnerRecord>('/runners/', 'service'),
  runnerJobs: kind<RunnerJobRecord>('/runner-jobs/', 'service'),
  nodes: kind<NodeRecord>(
    '/nodes/',
    'service',
    raising(({ tags, namespace, isCordoned }) => [tags, namespace, isCordoned]),
  ),
  expectedNodes: kind<ExpectedNodeRecord>('/expected-nodes/', 'service'),
  images: kind<ImageRecord>('/images/', madeIn, raising(imageSpec)),
  isos: kind<ImageRecord>('/isos/', madeIn, raising(imageSpec)),
  bootOrders: kind<BootOrderRecord>('/boot-orders/', 'service'),
  pushJobs: kind<PushJobRecord>('/push-jobs/', 'namespace'),
  quotas: kind<QuotaRecord>('/quotas/', 'service'),
  legacyUsage: kind<LegacyUsageRecord>('/legacy-usage/', 'service'),
  history: kind<HistoryRecord>('/history/', 'service'),
  vmEnds: kind<VmEndsRecord>('/vm-ends/', 'service'),
  usage: kind<UsageRecord>('/usage/', 'service'),
  cluster: kind<ClusterRecord>('/cluster/', 'service'),
  servers: kind<ServerRecord>('/servers/', 'service'),
  knownServers: kind<KnownServerRecord>('/known-servers/', 'service'),
  presence: kind<PresenceRecord>('/presence/', 'service'),
  uploadPlaces: kind<UploadPlaceRecord>('/upload-places/', 'service'),
  used: kind<UsedRecord>('/used/', 'service'),
  loginTries: kind<LoginTriesRecord>('/login-tries/', 'service'),
}

type Kinds = typeof kinds
type Opened = { readonly [Name in keyof Kinds]: ReturnType<Kinds[Name]['open']> }
export type Collections = Opened & AsyncDisposable & { readonly nodeVms: NodeVms; readonly eventShares: EventShares }

/** Opens every collection and waits until each has read its records. */
export async function openCollections(store: Store, signal?: AbortSignal): Promise<Collections> {
  const opened = Object.entries(kinds).map(([name, { open }]) => [name, open(store, name)] as const)
  const collections = Object.fromEntries(opened) as unknown as Opened
  const nodeVms = new NodeVms(collections.vms)
  const eventShares = new EventShares(collections.events)
  const close = async (): Promise<void> => {
    await Promise.all(opened.map(([, collection]) => collection.view.close()))
  }
  await Promise.all(opened.map(([, collection]) => collection.view.synced(signal))).catch(async (error: unknown) => {
    await close()
    throw error
  })
  return { ...collections, nodeVms, eventShares, [Symbol.asyncDispose]: close }
}

export const viewsOf = (collections: Collections): readonly View<unknown>[] =>
  Object.keys(kinds).map((name) => collections[name as keyof typeof kinds].view as View<unknown>)

/** What a namespace has stored of each kind that belongs to namespaces. */
export const storedBy = (
  collections: Collections,
  namespace: string,
): readonly (Stored & { readonly kind: string })[] =>
  Object.entries(kinds).flatMap(([kind, { owner }]) => {
    const stored = owner === 'caller' ? undefined : collections[kind as keyof Kinds].shares?.of(namespace)
    return stored && stored.records > 0 ? [{ kind, ...stored }] : []
  })

export const sealedOf = (collections: Collections): readonly Collection<SealedRecord>[] =>
  Object.entries(kinds).flatMap(([name, { isSealed }]) =>
    isSealed ? (collections[name as keyof Kinds] as unknown as Collection<SealedRecord>) : [],
  )

type Owner<T> = 'namespace' | 'caller' | 'service' | ((record: T) => string | undefined)

/** A kind without secrets. Does not compile for records with a sealed field. */
function kind<T>(
  prefix: T extends SealedRecord ? never : string,
  owner: Owner<T>,
  revised: (before: T, after: T) => T = (_before, after) => after,
) {
  return {
    isSealed: false,
    owner,
    open: (store: Store, name: string) => opened<T>(name, store, prefix, owner, revised),
  }
}

function sealed<T extends SealedRecord>(prefix: string, owner: Owner<T>) {
  return { isSealed: true, owner, open: (store: Store, name: string) => opened<T>(name, store, prefix, owner) }
}

function opened<T>(
  name: string,
  store: Store,
  prefix: string,
  owner: Owner<T>,
  revised?: (before: T, after: T) => T,
): Collection<T> {
  const view = new View<T>(store, prefix)
  const ownerOf =
    typeof owner === 'function' ? (_: string, value: T) => owner(value) : (key: string) => scopeOf(prefix, key)
  return new Collection(store, view, prefix, revised, owner === 'service' ? undefined : new Shares(name, view, ownerOf))
}

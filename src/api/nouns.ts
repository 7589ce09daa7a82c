// The nouns of the service: what each kind of record is called in errors, sentences and commands, where its list is, and
// which collection keeps it. Errors, audit, versions, completion, hints, events and namespaces read this table.

interface Noun {
  /** Kind in errors and in `metadata`, as public clients match it. */
  readonly wire: string
  /** Name in sentences. */
  readonly word: string
  /** Names on the command line; the first is the one that completion offers. */
  readonly typed?: readonly string[]
  /** Command that lists all. */
  readonly command?: string
  /** Path of the list below the namespace, or below the API for a list of the cluster. */
  readonly list?: string
  /** Field of a list item that names it (default `name`). */
  readonly nameField?: string
  /** Collection that keeps its records. */
  readonly records?: string
  /** Whether its records belong to a namespace or to the cluster. */
  readonly scope?: 'namespace' | 'cluster'
}

/** By the noun of their operations, which is also the kind in events. */
export const nouns = {
  vms: { wire: 'vms', word: 'VM', typed: ['vm'], command: 'vm list', list: 'vms', records: 'vms', scope: 'namespace' },
  'vm-configs': { wire: 'vmconfigs', word: 'VM configuration', typed: ['vm-config', 'vmc'], command: 'vm-config list', list: 'vmconfigs', records: 'vmConfigs', scope: 'namespace' },
  pools: { wire: 'pools', word: 'Pool', typed: ['pool'], command: 'pool list', list: 'pools', records: 'pools', scope: 'namespace' },
  'runner-pools': { wire: 'runnerpools', word: 'Runner pool', typed: ['runner-pool'], command: 'runner-pool list', list: 'runnerpools', records: 'runnerPools', scope: 'namespace' },
  images: { wire: 'images', word: 'Image', typed: ['image'], command: 'image list', list: 'images', records: 'images', scope: 'cluster' },
  isos: { wire: 'isos', word: 'ISO', typed: ['iso'], command: 'iso list', list: 'isos', records: 'isos', scope: 'cluster' },
  nodes: { wire: 'nodes', word: 'Node', typed: ['node'], command: 'node list', list: 'nodes', records: 'nodes', scope: 'cluster' },
  namespaces: { wire: 'namespaces', word: 'Namespace', typed: ['namespace', 'ns'], command: 'namespace list', list: 'namespaces', records: 'namespaces', scope: 'cluster' },
  'service-accounts': { wire: 'serviceaccounts', word: 'Service account', typed: ['serviceaccount', 'sa'], command: 'serviceaccount list', list: 'serviceaccounts', records: 'serviceAccounts', scope: 'namespace' },
  'registry-credentials': { wire: 'registrycredentials', word: 'Registry credential', typed: ['registrycredential', 'regcred'], command: 'regcred list', list: 'secrets/registrycredentials', nameField: 'server', records: 'registryCredentials', scope: 'namespace' },
  'push-jobs': { wire: 'pushjobs', word: 'Push job', typed: ['pushjob'], command: 'vm get-push-status', list: 'pushjobs', records: 'pushJobs', scope: 'namespace' },
  'role-bindings': { wire: 'rolebindings', word: 'Role binding', typed: ['rolebinding', 'rb'], records: 'roleBindings', scope: 'namespace' },
  certificates: { wire: 'certificates', word: 'Certificate', typed: ['certificate'] },
  'remote-images': { wire: 'remote-images', word: 'Remote image', command: 'remote-image list' },
  'remote-isos': { wire: 'remote-isos', word: 'Remote ISO', command: 'remote-iso list' },
  'image-cache': { wire: 'cached-images', word: 'Cached image', command: 'imagecache list' },
  blobs: { wire: 'blobs', word: 'Content' },
  captures: { wire: 'captures', word: 'Capture' },
  files: { wire: 'files', word: 'File' },
  tags: { wire: 'tags', word: 'Tag' },
  tunnels: { wire: 'tunnels', word: 'Tunnel' },
  uploads: { wire: 'uploads', word: 'Upload' },
} as const satisfies Readonly<Record<string, Noun>> // biome-ignore format: a table

type Nouns = typeof nouns
/** Nouns whose names a list has. */
export type ListedNoun = { [N in keyof Nouns]: Nouns[N] extends { list: string } ? N : never }[keyof Nouns]
/** Nouns that a collection keeps. */
export type StoredNoun = { [N in keyof Nouns]: Nouns[N] extends { records: string } ? N : never }[keyof Nouns]

export const allNouns = Object.entries(nouns) as readonly (readonly [keyof Nouns, Noun])[]

const byWire: ReadonlyMap<string, Noun> = new Map(allNouns.map(([, noun]) => [noun.wire, noun]))
/** The noun of a kind in errors; such a kind may come from a client. */
export const nounOfWire = (wire: string): Noun | undefined => byWire.get(wire)
export const isStored = (noun: string): noun is StoredNoun =>
  Object.hasOwn(nouns, noun) && 'records' in nouns[noun as keyof Nouns]
export const isListed = (noun: string): noun is ListedNoun =>
  Object.hasOwn(nouns, noun) && 'list' in nouns[noun as keyof Nouns]

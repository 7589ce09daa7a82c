// "Show as command": what somebody would type to do the same, for every operation that the console uses.
import type { OperationId } from '../../src/api/index.ts'
import type { Operation } from '../../src/api/operation.ts'
import { defaultNamespace } from '../../src/rules/names.ts'

/** What an operation is called with, as far as it can be shown. */
export interface Input {
  readonly params?: Readonly<Record<string, string>> | undefined
  readonly query?: Readonly<Record<string, unknown>> | undefined
  readonly body?: unknown
}

type Fields = Readonly<Record<string, unknown>>
interface Parts {
  readonly params: Readonly<Record<string, string>>
  readonly body: Fields
}
type Words = readonly (string | readonly string[])[]
type Write = (parts: Parts) => Words

const isSet = (value: unknown): boolean => value !== undefined && value !== '' && value !== false && value !== 0
const text = (value: unknown): string => (value === undefined ? '' : String(value))
/** An option with its value, where there is one. */
const option = (name: string, value: unknown): string[] => (isSet(value) ? [name, text(value)] : [])
const flag = (name: string, value: unknown): string[] => (isSet(value) ? [name] : [])
const unless = (name: string, value: unknown): string[] => (value === false ? [name] : [])
const word = (value: unknown): string[] => (isSet(value) ? [text(value)] : [])
const pairs = (name: string, value: unknown): string[] =>
  Object.entries((value ?? {}) as Fields).flatMap(([key, each]) => [name, `${key}=${text(each)}`])

const shape = (body: Fields): Words => [
  option('-i', body.image),
  option('-c', body.cpu),
  option('-m', body.memory),
  option('--node', body.node),
  option('--tag', body.tag),
  flag('--tag-required', body.tagRequired),
  body.scheduler === 'default' ? [] : option('--scheduler', body.scheduler),
  option('--iso', body.iso),
  option('--system-serial', body.systemSerial),
  flag('--gpu', body.gpuPassthrough),
  unless('--disable-vnc', body.vncConsole),
  unless('--disable-net-boost', body.netBoost),
  flag('--legacy-io', body.legacyIO),
  option('--display-width', body.displayWidth),
  option('--display-height', body.displayHeight),
  option('--display-dpi', body.displayDPI),
]

const subjects = (body: Fields): Words => [
  option('-u', ((body.users ?? []) as string[]).join(',')),
  option(
    '-s',
    ((body.serviceaccounts ?? []) as { name: string; namespace: string }[])
      .map(({ name, namespace }) => `${namespace}:${name}`)
      .join(','),
  ),
]

const selection = (body: Fields): Words => [
  option('--nodes', ((body.nodes ?? []) as string[]).join(',')),
  option('--tags', ((body.tags ?? []) as string[]).join(',')),
  flag('--all', body.all),
]

/** A password is never a word of a command: others would see it in the list of processes. */
const fromFile = ['--password-stdin', '<', 'password.txt']

const table: Partial<Record<OperationId, Write>> = {
  listVms: () => ['vm', 'list', '--watch'],
  getVm: ({ params }) => ['vm', 'list', word(params.vm), '-o', 'wide'],
  deployVm: ({ body }) => [
    'vm',
    'deploy',
    word(body.name),
    flag('--generate-name', body.shouldGenerateName && isSet(body.name)),
    option('--config', body.vmConfig),
    ...shape(body),
    option('-p', body.reservedPorts),
    pairs('--metadata', body.metadata),
    pairs('--label', body.labels),
    isSet(body.userdata) ? ['--userdata', 'script.sh'] : [],
    flag('--cold', body.cold),
    option('--ttl', body.ttl),
  ],
  deleteVm: ({ params }) => ['vm', 'delete', word(params.vm)],
  execVm: ({ params, body }) => ['vm', word(body.command), word(params.vm)],
  resizeVm: ({ params, body }) => [
    'vm',
    'resize',
    word(params.vm),
    word(body.size),
    isSet(body.user) ? ['-u', text(body.user), ...fromFile] : [],
  ],
  saveVm: ({ params, body }) => ['vm', 'save', word(params.vm), word(body.imageName), option('-d', body.description)],
  commitVm: ({ params, body }) => ['vm', 'commit', word(params.vm), option('-d', body.description)],
  extendVm: ({ params, body }) => ['vm', 'extend', word(params.vm), word(body.ttl), '--yes'],
  getVmLogs: ({ params }) => ['vm', 'logs', word(params.vm), '--follow'],
  connectVm: ({ params }) => ['vm', 'vnc', word(params.vm)],
  pushVm: ({ params, body }) => ['vm', 'push', word(params.vm), word(body.imageReference)],
  listPushJobs: () => ['vm', 'get-push-status'],
  cancelPushJob: ({ params }) => ['vm', 'cancel-push', word(params.job)],
  listImages: () => ['image', 'list', '-o', 'wide'],
  copyImage: ({ params, body }) => [
    'image',
    'copy',
    word(params.image),
    word(body.name),
    option('-d', body.description),
  ],
  describeImage: ({ params, body }) => ['image', 'set-description', word(params.image), '-d', text(body.description)],
  deleteImage: ({ params }) => ['image', 'delete', word(params.image)],
  downloadImage: ({ params }) => ['image', 'download', word(params.image)],
  generateImage: ({ body }) => [
    'image',
    'generate',
    word(body.name),
    word(body.size),
    option('--firmware', body.firmware),
    option('-d', body.description),
  ],
  beginUpload: ({ body }) => [
    word(body.kind),
    'upload',
    word(text(body.key).split(' ')[0]),
    option('--name', body.name),
    option('--type', body.type),
    option('--firmware', body.firmware),
    option('-d', body.description),
  ],
  listIsos: () => ['iso', 'list', '-o', 'wide'],
  copyIso: ({ params, body }) => ['iso', 'copy', word(params.iso), word(body.name), option('-d', body.description)],
  describeIso: ({ params, body }) => ['iso', 'set-description', word(params.iso), '-d', text(body.description)],
  deleteIso: ({ params }) => ['iso', 'delete', word(params.iso)],
  downloadIso: ({ params }) => ['iso', 'download', word(params.iso)],
  listRemoteImages: () => ['remote-image', 'list'],
  pullRemoteImage: ({ params, body }) => ['remote-image', 'pull', word(params.remoteimage), word(body.name)],
  listRemoteIsos: () => ['remote-iso', 'list'],
  pullRemoteIso: ({ params, body }) => ['remote-iso', 'pull', word(params.remoteiso), word(body.name)],
  listCachedImages: () => ['imagecache', 'list', '-o', 'wide'],
  addCachedImage: ({ params, body }) => ['imagecache', 'add', word(params.image), ...selection(body)],
  removeCachedImage: ({ params, body }) => ['imagecache', 'remove', word(params.image), ...selection(body)],
  listNodes: () => ['node', 'list', '-o', 'wide'],
  tagNode: ({ params, body }) => ['node', 'tag', word(params.name), word(body.tag)],
  untagNode: ({ params, body }) => ['node', 'untag', word(params.name), word(body.tag)],
  moveNode: ({ params, body }) => ['node', 'namespace', word(params.name), word(body.namespace)],
  cordonNode: ({ params }) => ['node', 'cordon', word(params.name)],
  uncordonNode: ({ params }) => ['node', 'uncordon', word(params.name)],
  drainNode: ({ params, body }) => ['node', 'drain', word(params.name), flag('--delete-vms', body.deleteVms)],
  deleteNode: ({ params }) => ['node', 'delete', word(params.name)],
  createJoinToken: ({ body }) => [
    'node',
    'join-token',
    option('--duration', body.duration),
    flag('--reusable', body.reusable),
  ],
  listVmConfigs: () => ['vm-config', 'list', '-o', 'wide'],
  createVmConfig: ({ body }) => ['vm-config', 'create', word(body.name), ...shape(body)],
  deleteVmConfig: ({ params }) => ['vm-config', 'delete', word(params.vmconfig)],
  listRegistryCredentials: () => ['regcred', 'list'],
  addRegistryCredential: ({ body }) => [
    'regcred',
    'add',
    word(body.server),
    option('-u', body.username),
    flag('--allow-insecure', body.allowInsecure),
    flag('--replace', body.replace),
    fromFile,
  ],
  removeRegistryCredential: ({ body }) => ['regcred', 'remove', word(body.server)],
  listNamespaces: () => ['namespace', 'list'],
  createNamespace: ({ body }) => [
    'namespace',
    'create',
    word(body.name),
    flag('--enable-custom-pods', body.enableCustomPods),
  ],
  deleteNamespace: ({ params }) => ['namespace', 'delete', word(params.namespace)],
  listSubjects: () => ['rolebinding', 'list-subjects'],
  addSubjects: ({ body }) => ['rolebinding', 'add-subject', ...subjects(body)],
  removeSubjects: ({ body }) => ['rolebinding', 'remove-subject', ...subjects(body)],
  listServiceAccounts: () => ['serviceaccount', 'list'],
  createServiceAccount: ({ params }) => ['serviceaccount', 'create', word(params.serviceaccount)],
  deleteServiceAccount: ({ params }) => ['serviceaccount', 'delete', word(params.serviceaccount)],
  createServiceAccountToken: ({ params, body }) => [
    'serviceaccount',
    'token',
    word(params.serviceaccount),
    option('--duration', body.duration),
    flag('--no-expiration', body.noExpiration),
  ],
  listEvents: () => ['events', '--watch'],
  getLegacyUsage: () => ['migrate', 'usage'],
}

/** These name the namespace itself, or none. */
const withoutNamespace: ReadonlySet<string> = new Set<OperationId>([
  'createNamespace',
  'deleteNamespace',
  'listNamespaces',
  'getLegacyUsage',
])

const isPlain = /^[\w@%+=:,./-]+$/
const quote = (value: string): string =>
  isPlain.test(value) || value === '<' ? value : `'${value.replaceAll("'", `'\\''`)}'`

export const hasCommand = (operation: Operation): boolean => Object.hasOwn(table, operation.id)

/** The words of the command without the name of the program, as a shell would hand them over. */
export function commandWords(operation: Operation, input: Input): string[] {
  const write = table[operation.id as OperationId]
  if (!write) return []
  const params = input.params ?? {}
  const words = write({ params, body: (input.body ?? {}) as Fields }).flat()
  const namespace = params.namespace
  const isNamed = namespace === undefined || namespace === defaultNamespace || withoutNamespace.has(operation.id)
  if (isNamed) return words
  const redirect = words.indexOf('<')
  return redirect < 0 ? [...words, '-n', namespace] : words.toSpliced(redirect, 0, '-n', namespace)
}

export const commandLine = (operation: Operation, input: Input): string =>
  ['svc3', ...commandWords(operation, input).map(quote)].join(' ')

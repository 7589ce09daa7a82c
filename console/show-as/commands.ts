// The command line that does the same as an action or list of the console.
import type { OperationId } from '../../src/api/index.ts'
import type { Operation } from '../../src/api/operation.ts'
import { defaultNamespace } from '../../src/rules/names.ts'
import { scheduleLine } from '../../src/rules/pools/schedule-line.ts'
import { quoted } from '../../src/rules/shell-word.ts'

/** The input of an operation. */
export interface Input {
  readonly params?: Readonly<Record<string, string>> | undefined
  readonly query?: Readonly<Record<string, unknown>> | undefined
  readonly body?: unknown
  /** The active filters of a list. */
  readonly shown?: Readonly<Record<string, string>> | undefined
  /** Whether the list shows all namespaces. */
  readonly isEverywhere?: boolean | undefined
}

type Fields = Readonly<Record<string, unknown>>

const shape =
  '[-i {image}] [-c {cpu}] [-m {memory}] [--node {node}] [--tag {tag}] [--tag-required if tagRequired]' +
  ' [--scheduler {scheduler}] [--iso {iso}] [--system-serial {systemSerial}] [--gpu if gpuPassthrough]' +
  ' [--disable-vnc if not vncConsole] [--disable-net-boost if not netBoost] [--legacy-io if legacyIO]' +
  ' [--dir {directories}] [--nested if nested] [--rosetta {rosetta}]' +
  ' [--display-width {displayWidth}] [--display-height {displayHeight}] [--display-dpi {displayDPI}]'
const resets =
  '[--reset cpu if not cpu] [--reset memory if not memory] [--reset tag if not tag] [--reset tag-required if not tagRequired] [--reset disable-vnc if vncConsole]'
const poolSettings =
  '[--min-idle {minIdle!}] [--max-idle {maxIdle!}] [--max-age {maxAge}] [--state {state}] [--ready-command {readyCommand}] [--schedule {schedule}]'
const subjects = '[-u {users}] [-s {serviceaccounts}]'
const nodeSelection = '[--nodes {nodes}] [--tags {tags}] [--all if all]'
/** Passwords are piped, because arguments are visible in the process list. */
const passwordFile = '--password-stdin < password.txt'

/**
 * Commands with fields of the request. `{vm}` stands for the value of the field vm. `[-d {description}]` is omitted if
 * that is not set, 0 or empty; with `{n!}` only if it is not set. `[--all if all]` is included if the field is set, and
 * `[--all if not all]` if it is false, 0 or empty.
 */
const usages: Partial<Record<OperationId, string>> = {
  listVms: 'vm list [--label {label}] [--owner {owner}] --watch',
  getVm: 'vm show {vm}',
  deployVm:
    `vm deploy {name} [--generate-name if shouldGenerateName] [--config {vmConfig}] ${shape} [-p {reservedPorts}]` +
    ' [--metadata {metadata}] [--label {labels}] [--userdata script.sh if userdata] [--cold if cold] [--ttl {ttl}]',
  deleteVm: 'vm delete {vm}',
  execVm: 'vm {command} {vm}',
  resizeVm: `vm resize {vm} {size} [-u {user}] [${passwordFile} if user]`,
  saveVm: 'vm save {vm} {imageName} [-d {description}]',
  commitVm: 'vm commit {vm} [-d {description}]',
  setMetadata: 'vm label {record} --overwrite {labels}',
  extendVm: 'vm extend {vm} {ttl} --yes',
  getVmLogs: 'vm logs {vm} --follow',
  connectVm: 'vm vnc {vm}',
  pushVm: 'vm push {vm} {imageReference}',
  listPushJobs: 'vm get-push-status',
  cancelPushJob: 'vm cancel-push {job}',
  listImages: 'image list -o wide',
  getImage: 'image show {image}',
  copyImage: 'image copy {image} {name} [-d {description}]',
  describeImage: 'image set-description {image} -d {description!}',
  protectImage: 'image protect {image} [--off if not protected]',
  deleteImage: 'image delete {image}',
  downloadImage: 'image download {image}',
  generateImage: 'image generate {name} {size} [--firmware {firmware}] [-d {description}]',
  beginUpload: '{kind} upload {file} [--name {name}] [--type {type}] [--firmware {firmware}] [-d {description}]',
  listIsos: 'iso list -o wide',
  getIso: 'iso show {iso}',
  copyIso: 'iso copy {iso} {name} [-d {description}]',
  describeIso: 'iso set-description {iso} -d {description!}',
  deleteIso: 'iso delete {iso}',
  downloadIso: 'iso download {iso}',
  listRemoteImages: 'remote-image list',
  pullRemoteImage: 'remote-image pull {remoteimage} {name}',
  listRemoteIsos: 'remote-iso list',
  pullRemoteIso: 'remote-iso pull {remoteiso} {name}',
  listCachedImages: 'imagecache list -o wide',
  addCachedImage: `imagecache add {image} ${nodeSelection}`,
  removeCachedImage: `imagecache remove {image} ${nodeSelection}`,
  removeFromImageCache: `imagecache remove {image} ${nodeSelection}`,
  listNodes: 'node list -o wide',
  tagNode: 'node tag {name} {tag}',
  untagNode: 'node untag {name} {tag}',
  moveNode: 'node namespace {name} {namespace}',
  cordonNode: 'node cordon {name}',
  uncordonNode: 'node uncordon {name}',
  drainNode: 'node drain {name} [--delete-vms if deleteVms]',
  deleteNode: 'node delete {name}',
  createJoinToken: 'node join-token [--duration {duration}] [--reusable if reusable]',
  listVmConfigs: 'vm-config list -o wide',
  createVmConfig: `vm-config create {name} ${shape}`,
  updateVmConfig: `vm-config update {vmconfig} ${shape} ${resets}`,
  deleteVmConfig: 'vm-config delete {vmconfig}',
  listPools: 'pool list -o wide',
  getPool: 'pool describe {pool}',
  createPool: `pool create {name} --config {config} ${poolSettings}`,
  updatePool: `pool update {pool} [--config {config}] ${poolSettings} [--no-ready-command if not readyCommand] [--no-schedule if not schedule] [--pause if paused] [--resume if not paused]`,
  rotatePool: 'pool rotate {pool}',
  drainPool: 'pool drain {pool}',
  deletePool: 'pool delete {pool}',
  getQuota: 'quota show',
  setQuota:
    'quota set [--vms {vms!}] [--cpu {cpu!}] [--memory {memory!}] [--macos {macos!}] [--records {records!}] [--record-size {recordSize!}] [--unlimited {unlimited}] [--weight {weights}]',
  listRunnerPools: 'runner-pool list -o wide',
  getRunnerPool: 'runner-pool describe {runnerpool}',
  createRunnerPool:
    'runner-pool create {name} --url {url} --config {config} [--min-idle {minIdle!}] [--max {max}] --token-stdin < token.txt',
  updateRunnerPool:
    'runner-pool update {runnerpool} [--config {config}] [--min-idle {minIdle!}] [--max {max}] [--pause if paused] [--resume if not paused]',
  drainRunnerPool: 'runner-pool drain {runnerpool}',
  deleteRunnerPool: 'runner-pool delete {runnerpool}',
  listRegistryCredentials: 'regcred list',
  addRegistryCredential: `regcred add {server} [-u {username}] [--allow-insecure if allowInsecure] [--replace if replace] ${passwordFile}`,
  removeRegistryCredential: 'regcred remove {server}',
  listNamespaces: 'namespace list',
  createNamespace: 'namespace create {name} [--enable-custom-pods if enableCustomPods]',
  deleteNamespace: 'namespace delete {namespace}',
  listSubjects: 'rolebinding list-subjects',
  addSubjects: `rolebinding add-subject ${subjects}`,
  removeSubjects: `rolebinding remove-subject ${subjects}`,
  listServiceAccounts: 'serviceaccount list',
  createServiceAccount: 'serviceaccount create {serviceaccount}',
  deleteServiceAccount: 'serviceaccount delete {serviceaccount}',
  createServiceAccountToken:
    'serviceaccount token {serviceaccount} [--duration {duration}] [--no-expiration if noExpiration]',
  listEvents: 'events --watch',
  listUsage: 'usage [--from {from}] [--to {to}]',
  getLegacyUsage: 'migrate usage',
}

/** Operations whose commands have no option -n, because they are not within a namespace. */
const withoutNamespace: ReadonlySet<string> = new Set<OperationId>([
  'createNamespace',
  'deleteNamespace',
  'listNamespaces',
  'getLegacyUsage',
])

/** Commands with the option -A. */
const everywhere: ReadonlySet<string> = new Set<OperationId>([
  'listVms',
  'listNodes',
  'listVmConfigs',
  'listPushJobs',
  'listPools',
  'listRunnerPools',
  'listServiceAccounts',
])

const isSet = (value: unknown): boolean => value !== undefined && value !== '' && value !== false && value !== 0

/** A list becomes one argument joined by commas. A map becomes an argument for each pair, `key-` to remove a key. */
function argumentsOf(value: unknown): string[] {
  if (!isSet(value) || value === null) return []
  if (Array.isArray(value)) {
    if (value.some((each) => each.cron !== undefined)) return value.map(scheduleLine)
    return value.length === 0 ? [] : [value.map(argumentOf).join(',')]
  }
  return typeof value === 'object'
    ? Object.entries(value).map(([key, each]) => (each === null ? `${key}-` : `${key}=${each}`))
    : [String(value)]
}

const argumentOf = (value: string | { readonly namespace: string; readonly name: string }): string =>
  typeof value === 'string' ? value : `${value.namespace}:${value.name}`

function fill(word: string, fields: Fields): string[] {
  const [, name, isKept] = /^\{(\w+)(!?)\}$/.exec(word) ?? []
  if (name === undefined) return [word]
  const found = argumentsOf(fields[name])
  return found.length === 0 && isKept ? [String(fields[name] ?? '')] : found
}

function fillOptional(part: string, fields: Fields): string[] {
  const [words = '', condition] = part.split(' if ')
  if (condition !== undefined) {
    const [field = '', negated] = condition.split(' ').toReversed()
    const value = fields[field]
    const isNot = value === false || value === '' || value === 0 || (Array.isArray(value) && value.length === 0)
    return (negated ? isNot : isSet(value)) ? words.split(' ') : []
  }
  const [option = '', value = ''] = words.split(' ')
  if (fields[value.slice(1, -2)] === undefined && value.endsWith('!}')) return []
  return fill(value, fields).flatMap((each) => [option, each])
}

export const hasCommand = (operation: Operation): boolean => Object.hasOwn(usages, operation.id)

/** Returns the arguments of `svc3`, not quoted for a shell. */
export function commandWords(operation: Operation, { params = {}, body, shown = {}, isEverywhere }: Input): string[] {
  const sent = (body ?? {}) as Fields
  // The key of an upload is the name of the file, its size and its date.
  const file = String(sent.key ?? '').replace(/ \d+ \d+$/, '')
  const fields: Fields = { ...params, file, ...sent, ...shown }
  const parts = usages[operation.id as OperationId]?.matchAll(/\[([^[\]]+)\]|\S+/g) ?? []
  const words = [...parts].flatMap(([word, optional]) =>
    optional === undefined ? fill(word, fields) : fillOptional(optional, fields),
  )
  if (isEverywhere && everywhere.has(operation.id)) return [...words, '-A']
  const { namespace } = params
  const isNamed = namespace === undefined || namespace === defaultNamespace || withoutNamespace.has(operation.id)
  if (isNamed) return words
  const redirect = words.indexOf('<')
  return words.toSpliced(redirect < 0 ? words.length : redirect, 0, '-n', namespace)
}

export const withoutOption = (operation: Operation, { shown = {} }: Input): string[] =>
  Object.entries(shown).flatMap(([name, value]) =>
    value === '' || usages[operation.id as OperationId]?.includes(`{${name}}`) ? [] : [name],
  )

export const commandLine = (operation: Operation, input: Input): string =>
  ['svc3', ...commandWords(operation, input).map((word) => (word === '<' ? word : quoted(word)))].join(' ')

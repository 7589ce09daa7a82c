// What a migration carries over, in the order in which it does: later kinds refer to earlier ones.
import { statSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { createNamespace, listNamespaces } from '../../../api/access/namespaces.ts'
import { addRegistryCredential, listRegistryCredentials } from '../../../api/access/registry-credentials.ts'
import { addSubjects, listSubjects } from '../../../api/access/role-bindings.ts'
import * as accounts from '../../../api/access/service-accounts.ts'
import type { JsonObject } from '../../../api/json.ts'
import { createJoinToken, listExpectedNodes, listNodes, moveNode, tagNode } from '../../../api/nodes/nodes.ts'
import { createVmConfig, listVmConfigs } from '../../../api/vms/vm-configs.ts'
import { listVms } from '../../../api/vms/vms.ts'
import { writeFileAtomically } from '../../../platform/files.ts'
import { realNamespace } from '../../../rules/names.ts'
import { parseRegistryServer } from '../../../rules/registry-server.ts'
import { Failure } from '../../line/usage.ts'
import { diskKind } from './disks.ts'
import { alreadyThere, type Item, type Kind, notCarried, type Run, sameIf, toCarry } from './plan.ts'

const spaceOf = ({ namespace }: JsonObject): string => realNamespace(String(namespace))
const isUser = ({ kind }: JsonObject): boolean => kind === 'User'
const textsOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(String).sort() : [])

/** The file is empty until the secret is known. */
async function keepSecret(file: string, make: () => Promise<string>): Promise<string> {
  await fs.mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
  await writeFileAtomically(file, '', { mode: 0o600 })
  await writeFileAtomically(file, `${await make()}\n`, { mode: 0o600 })
  return file
}

/** Whether a run was killed before it had the secret. */
const isBegun = ({ isApplied }: Run, file: string): boolean =>
  isApplied && statSync(file, { throwIfNoEntry: false })?.size === 0

const tokenFile = (run: Run, { namespace, name }: Item) => path.join(run.folder, 'tokens', namespace, name)
const joinFile = (run: Run, { name }: Item) => path.join(run.folder, 'join', name)

/** A server without a scheme is meant with https. */
function registryOf(server: string): string {
  const parsed = parseRegistryServer(server)
  return parsed.ok ? parsed.server : (parsed.meant ?? server)
}

/** Those that are expected, which have no phase, and those that have joined. */
async function nodesThere({ client, context: { signal } }: Run): Promise<Map<string, JsonObject>> {
  const found = new Map<string, JsonObject>()
  for (const { name: namespace } of await client.listAll(listNamespaces, { signal }))
    for (const list of [listExpectedNodes, listNodes])
      for (const node of await client.listAll(list, { params: { namespace }, signal })) found.set(node.name, node)
  return found
}

async function settleNode(run: Run, item: Item, found?: JsonObject) {
  const { client, context } = run
  const { signal } = context
  const { name, namespace, wanted } = item
  const tags = textsOf(wanted.tags)
  if (!found?.phase) {
    const body = { node: name, tags, duration: '30d' }
    const make = () => client.call(createJoinToken, { params: { namespace }, body, signal })
    const file = await keepSecret(joinFile(run, item), async () => make().then(({ join, token }) => join ?? token))
    return `When it joins, for example with ${file}`
  }
  const at = { namespace: String(found.namespace), name }
  if (at.namespace !== namespace) await client.call(moveNode, { params: at, body: { namespace }, signal })
  for (const tag of tags.filter((each) => !textsOf(found.orkaTags).includes(each)))
    await client.call(tagNode, { params: { namespace, name }, body: { tag }, signal })
  return undefined
}

const configFields = ['image', 'type', 'cpu', 'memory', 'iso', 'node', 'tag', 'tagRequired', 'scheduler', 'vncConsole', 'systemSerial', 'displayWidth', 'displayHeight', 'displayDPI'] // biome-ignore format: a list
/** Clients of Orka send these for Apple silicon too, where they mean nothing. */
const intelFields = ['netBoost', 'legacyIO', 'gpuPassthrough']

/** VMs are listed and stay where they are; `--check` does not miss them. */
export const runningVm = 'vm'

export const kinds: readonly Kind[] = [
  {
    kind: 'namespace',
    isClusterWide: true,
    list: listNamespaces,
    fits: (_, file) => /^(ns|namespaces?)(?![a-z])/i.test(file),
    create: createNamespace,
    nameOf: ({ name }) => realNamespace(String(name)),
    wanted: ({ customPods }) => ({ enableCustomPods: customPods === true }),
    compare: (found, { wanted }) =>
      sameIf(found, found?.customPods === wanted.enableCustomPods, 'Only one of the two is for custom pods'),
  },
  {
    kind: 'serviceaccount',
    list: accounts.listServiceAccounts,
    fits: (_, file) => /^(sa|service-?accounts?)(?![a-z])/i.test(file),
    wanted: () => ({}),
    compare: (found, item, run) => (found && !isBegun(run, tokenFile(run, item)) ? alreadyThere : toCarry),
    async apply(run, item, found) {
      const { signal, secrets } = run.context
      const params = { namespace: item.namespace, serviceaccount: item.name }
      const file = await keepSecret(tokenFile(run, item), async () => {
        if (!found) await run.client.call(accounts.createServiceAccount, { params, signal })
        const { token } = await run.client.call(accounts.createServiceAccountToken, { params, body: {}, signal })
        secrets.add(token)
        return token
      })
      return `New token in ${file}`
    },
  },
  {
    kind: 'rolebinding',
    list: listSubjects,
    fits: (record) => isUser(record) || record.kind === 'ServiceAccount',
    create: addSubjects,
    nameOf: (subject) => (isUser(subject) ? String(subject.name).toLowerCase() : `${spaceOf(subject)}:${subject.name}`),
    wanted(subject, namespace) {
      if (isUser(subject)) return { users: [subject.name] }
      const account = { namespace: spaceOf(subject), name: subject.name }
      // An account always has access to its own namespace.
      return account.namespace === namespace ? undefined : { serviceaccounts: [account] }
    },
  },
  {
    kind: 'registrycredential',
    list: listRegistryCredentials,
    fits: (record) => 'server' in record,
    nameOf: ({ server }) => registryOf(String(server)),
    wanted: ({ username, server }) => ({ username, allowInsecure: String(server).startsWith('http:') }),
    compare: (found, { wanted }) =>
      sameIf(found, found?.username === wanted.username, `Stored here for user ${found?.username}`),
    async apply({ client, context: { signal }, passwordOf }, { namespace, name: server, wanted }) {
      const username = String(wanted.username)
      const password = await passwordOf(server, namespace, username)
      if (!password) throw new Failure('The source does not show passwords: add --passwords FILE', '')
      const body = { server, username, password, allowInsecure: wanted.allowInsecure === true }
      await client.call(addRegistryCredential, { params: { namespace }, body, signal })
      return undefined
    },
  },
  {
    kind: 'node',
    list: listNodes,
    fits: (record) => 'orkaTags' in record,
    wanted: ({ orkaTags }) => ({ tags: textsOf(orkaTags) }),
    there: nodesThere,
    compare(found, item, run) {
      const isSame = textsOf(item.wanted.tags).every((tag) => textsOf(found?.orkaTags).includes(tag))
      const isWaiting = !found?.phase && isBegun(run, joinFile(run, item))
      return found?.namespace === item.namespace && isSame && !isWaiting ? alreadyThere : toCarry
    },
    apply: settleNode,
  },
  diskKind('image'),
  diskKind('iso'),
  {
    kind: 'vmconfig',
    list: listVmConfigs,
    fits: (record) => 'image' in record && !('ip' in record),
    create: createVmConfig,
    wanted(record) {
      const { node = record.nodeName, displayDPI = record.displayDpi } = record
      const all: JsonObject = { ...record, node, displayDPI }
      const names = record.type === 'arm64' ? configFields : [...configFields, ...intelFields]
      const set = names.filter((name) => (all[name] ?? '') !== '' && all[name] !== 0)
      return Object.fromEntries(set.map((name) => [name, all[name]]))
    },
    compare(found, { wanted }) {
      // A reference without a tag is stored with one.
      const same = (name: string) => [wanted[name], name === 'image' && `${wanted.image}:latest`]
      const others = Object.keys(wanted).filter((name) => !same(name).includes(found?.[name]))
      return sameIf(found, others.length === 0, `Other values here: ${others.join(', ')}`)
    },
  },
  {
    kind: runningVm,
    list: listVms,
    fits: (record) => 'image' in record && 'ip' in record,
    wanted: ({ node }) => ({ node }),
    there: async () => new Map(),
    compare: (_, { wanted }) => notCarried(`Runs at the source, on ${wanted.node}: deploy it here again`),
  },
]

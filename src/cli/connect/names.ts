// Fetches names from the service for "did you mean" and completion: one request with a short timeout and the token at
// hand, without renewing a login or asking a question.

import { listNamespaces } from '../../api/access/namespaces.ts'
import { listRegistryCredentials } from '../../api/access/registry-credentials.ts'
import { listServiceAccounts } from '../../api/access/service-accounts.ts'
import { listImages } from '../../api/images/images.ts'
import { listIsos } from '../../api/images/isos.ts'
import { listNodes } from '../../api/nodes/nodes.ts'
import { listPools } from '../../api/vms/pools.ts'
import { listPushJobs } from '../../api/vms/push-jobs.ts'
import { listRunnerPools } from '../../api/vms/runner-pools.ts'
import { listVmConfigs } from '../../api/vms/vm-configs.ts'
import { listVms } from '../../api/vms/vms.ts'
import type { Client } from '../../client/client.ts'
import type { Host } from '../host.ts'
import { chooseNamespace, findConnection } from './connection.ts'
import { openClient } from './session.ts'

const listers = {
  vms: async ({ client, ...input }) => namesOf(await client.listAll(listVms, input)),
  'vm-configs': async ({ client, ...input }) => namesOf(await client.listAll(listVmConfigs, input)),
  pools: async ({ client, ...input }) => namesOf(await client.listAll(listPools, input)),
  'runner-pools': async ({ client, ...input }) => namesOf(await client.listAll(listRunnerPools, input)),
  images: async ({ client, ...input }) => namesOf(await client.listAll(listImages, input)),
  isos: async ({ client, ...input }) => namesOf(await client.listAll(listIsos, input)),
  'push-jobs': async ({ client, ...input }) => namesOf(await client.listAll(listPushJobs, input)),
  nodes: async ({ client, ...input }) => namesOf(await client.listAll(listNodes, input)),
  tags: async ({ client, ...input }) => (await client.listAll(listNodes, input)).flatMap(({ orkaTags }) => orkaTags),
  namespaces: async ({ client, signal }) => namesOf(await client.listAll(listNamespaces, { signal })),
  'service-accounts': async ({ client, ...input }) => namesOf(await client.listAll(listServiceAccounts, input)),
  'registry-credentials': async ({ client, ...input }) =>
    (await client.listAll(listRegistryCredentials, input)).map(({ server }) => server),
} as const satisfies Readonly<Record<string, (asked: Asked) => Promise<string[]>>>

interface Asked {
  readonly client: Client
  readonly params: { readonly namespace: string }
  readonly signal: AbortSignal
}

const namesOf = (items: readonly { readonly name: string }[]): string[] => items.map(({ name }) => name)

export type LiveNames = keyof typeof listers
export const isLive = (names: string): names is LiveNames => Object.hasOwn(listers, names)

interface NamesWanted {
  readonly kind: LiveNames
  /** As it was given on the command line. */
  readonly namespace: string | undefined
  readonly timeoutMs: number
}

/** Throws whatever prevents an answer in time. */
export async function liveNames(host: Host, { kind, namespace, timeoutMs }: NamesWanted): Promise<string[]> {
  const connection = findConnection(host)
  const client = openClient(host, connection, { timeoutMs, attempts: 1 })
  const params = { namespace: chooseNamespace(host, namespace, connection) }
  const names = await listers[kind]({ client, params, signal: AbortSignal.timeout(timeoutMs) })
  return [...new Set(names)].sort()
}

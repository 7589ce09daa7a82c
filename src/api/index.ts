// The table of all operations. The order of nouns is that of the API document.

import * as namespaces from './access/namespaces.ts'
import * as registryCredentials from './access/registry-credentials.ts'
import * as roleBindings from './access/role-bindings.ts'
import * as serviceAccounts from './access/service-accounts.ts'
import * as tokens from './access/tokens.ts'
import * as imageCache from './images/image-cache.ts'
import * as images from './images/images.ts'
import * as isos from './images/isos.ts'
import * as remoteImages from './images/remote-images.ts'
import * as remoteIsos from './images/remote-isos.ts'
import * as uploads from './images/uploads.ts'
import * as agent from './nodes/agent.ts'
import * as agentConnection from './nodes/agent-connection.ts'
import * as captures from './nodes/captures.ts'
import * as nodeKey from './nodes/node-key.ts'
import * as nodes from './nodes/nodes.ts'
import * as servers from './nodes/servers.ts'
import type { Operation } from './operation.ts'
import * as certificates from './service/certificates.ts'
import * as charts from './service/charts.ts'
import * as events from './service/events.ts'
import * as legacyUsage from './service/legacy-usage.ts'
import * as metadata from './service/metadata.ts'
import * as service from './service/service.ts'
import * as usage from './service/usage.ts'
import * as watches from './service/watches.ts'
import * as estimates from './vms/estimates.ts'
import * as pools from './vms/pools.ts'
import * as pushJobs from './vms/push-jobs.ts'
import * as queue from './vms/queue.ts'
import * as quotas from './vms/quotas.ts'
import * as runnerPools from './vms/runner-pools.ts'
import * as terminals from './vms/terminals.ts'
import * as vmConfigs from './vms/vm-configs.ts'
import * as vms from './vms/vms.ts'

const nouns = {
  ...vms,
  ...terminals,
  ...estimates,
  ...vmConfigs,
  ...pools,
  ...runnerPools,
  ...pushJobs,
  ...queue,
  ...quotas,
  ...images,
  ...imageCache,
  ...isos,
  ...remoteImages,
  ...remoteIsos,
  ...uploads,
  ...nodes,
  ...registryCredentials,
  ...namespaces,
  ...serviceAccounts,
  ...roleBindings,
  ...events,
  ...usage,
  ...metadata,
  ...certificates,
  ...legacyUsage,
  ...watches,
  ...charts,
  ...tokens,
  ...service,
  ...agent,
  ...agentConnection,
  ...captures,
  ...nodeKey,
  ...servers,
}

type Operations<M> = { readonly [Name in keyof M as M[Name] extends Operation ? Name : never]: M[Name] & Operation }
export type OperationTable = Operations<typeof nouns>
export type OperationId = keyof OperationTable

const isOperation = (entry: [string, unknown]): boolean => {
  const value = entry[1] as Partial<Operation>
  return typeof value === 'object' && typeof value.id === 'string' && typeof value.allow === 'string'
}

export const operations = Object.fromEntries(Object.entries(nouns).filter(isOperation)) as unknown as OperationTable
export const allOperations: readonly Operation[] = Object.values(operations)
/** The operations of the API document. Operations between programs of svc3 are omitted. */
export const publishedOperations: readonly Operation[] = allOperations.filter((each) => !each.isUnpublished)

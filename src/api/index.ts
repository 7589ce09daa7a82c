// The table: every operation of the service. Nouns are in the order in which the API document shows them.
import * as agent from './agent.ts'
import * as captures from './captures.ts'
import * as certificates from './certificates.ts'
import * as charts from './charts.ts'
import * as estimates from './estimates.ts'
import * as events from './events.ts'
import * as imageCache from './image-cache.ts'
import * as images from './images.ts'
import * as isos from './isos.ts'
import * as legacyUsage from './legacy-usage.ts'
import * as namespaces from './namespaces.ts'
import * as nodeKey from './node-key.ts'
import * as nodes from './nodes.ts'
import type { Operation } from './operation.ts'
import * as pushJobs from './push-jobs.ts'
import * as registryCredentials from './registry-credentials.ts'
import * as remoteImages from './remote-images.ts'
import * as remoteIsos from './remote-isos.ts'
import * as roleBindings from './role-bindings.ts'
import * as servers from './servers.ts'
import * as service from './service.ts'
import * as serviceAccounts from './service-accounts.ts'
import * as terminals from './terminals.ts'
import * as tokens from './tokens.ts'
import * as uploads from './uploads.ts'
import * as vmConfigs from './vm-configs.ts'
import * as vms from './vms.ts'
import * as watches from './watches.ts'

const nouns = {
  ...vms,
  ...terminals,
  ...estimates,
  ...vmConfigs,
  ...pushJobs,
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
  ...certificates,
  ...legacyUsage,
  ...watches,
  ...charts,
  ...tokens,
  ...service,
  ...agent,
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
/** Those of the API document: what only our own programs say to each other is left out. */
export const publishedOperations: readonly Operation[] = allOperations.filter((each) => !each.isUnpublished)

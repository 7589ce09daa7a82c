// Every handler of every noun. A noun or an operation that is missing here does not compile.
import type { Cause } from '../../api/errors.ts'
import type { OperationId } from '../../api/index.ts'
import { checkConfig, checkDeployment } from '../deployment-problems.ts'
import type { Handlers } from '../handlers.ts'
import type { Services } from '../services.ts'
import { agent } from './agent.ts'
import { captures } from './captures.ts'
import { certificates } from './certificates.ts'
import { charts } from './charts.ts'
import { estimates } from './estimates.ts'
import { events } from './events.ts'
import { imageCache } from './image-cache.ts'
import { images } from './images.ts'
import { isos } from './isos.ts'
import { legacyUsage } from './legacy-usage.ts'
import { namespaces } from './namespaces.ts'
import { nodeKey } from './node-key.ts'
import { nodes } from './nodes.ts'
import { pushJobs } from './push-jobs.ts'
import { checkCredential, registryCredentials } from './registry-credentials.ts'
import { remoteImages } from './remote-images.ts'
import { remoteIsos } from './remote-isos.ts'
import { roleBindings } from './role-bindings.ts'
import { servers } from './servers.ts'
import { service } from './service.ts'
import { serviceAccounts } from './service-accounts.ts'
import { terminals } from './terminals.ts'
import { tokens } from './tokens.ts'
import { uploads } from './uploads.ts'
import { vmConfigs } from './vm-configs.ts'
import { vms } from './vms.ts'
import { watches } from './watches.ts'

export const handlers = (services: Services): Handlers => {
  const table: Handlers = tableOf(services, () => table)
  return table
}

const tableOf = (services: Services, table: () => Handlers): Handlers => ({
  ...vms(services),
  ...terminals(services),
  ...estimates(services),
  ...vmConfigs(services),
  ...pushJobs(services),
  ...images(services),
  ...imageCache(services),
  ...isos(services),
  ...remoteImages(services),
  ...remoteIsos(services),
  ...uploads(services),
  ...nodes(services),
  ...registryCredentials(services),
  ...namespaces(services),
  ...serviceAccounts(services),
  ...roleBindings(services),
  ...events(services),
  ...certificates(services),
  ...legacyUsage(services),
  ...watches(services, table),
  ...charts(services),
  ...tokens(services),
  ...service(services),
  ...agent(services),
  ...captures(services),
  ...nodeKey(services),
  ...servers(services),
})

/**
 * Rules that are told together with what a schema finds, so that one answer names all faulty fields. They get the fields
 * that the schema has nothing against.
 */
export const checks: { readonly [Id in OperationId]?: (body: Record<string, unknown>) => Cause[] } = {
  addRegistryCredential: checkCredential,
  deployVm: checkDeployment,
  estimateVm: checkDeployment,
  createVmConfig: checkConfig,
}

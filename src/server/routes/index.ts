// The table of all handlers. It does not compile if an operation is missing.
import type { Cause } from '../../api/errors.ts'
import type { OperationId } from '../../api/index.ts'
import type { MultiplexServices } from '../lists/multiplex.ts'
import type { Handlers } from '../operations/handlers.ts'
import { type InvokeServices, Operations } from '../operations/invoke.ts'
import { checkConfig, checkDeployment } from '../vms/deployment-problems.ts'
import { namespaces } from './access/namespaces.ts'
import { checkCredential, registryCredentials } from './access/registry-credentials.ts'
import { roleBindings } from './access/role-bindings.ts'
import { serviceAccounts } from './access/service-accounts.ts'
import { tokens } from './access/tokens.ts'
import { imageCache } from './images/image-cache.ts'
import { images } from './images/images.ts'
import { isos } from './images/isos.ts'
import { remoteImages } from './images/remote-images.ts'
import { remoteIsos } from './images/remote-isos.ts'
import { uploads } from './images/uploads.ts'
import { agent } from './nodes/agent.ts'
import { agentConnection } from './nodes/agent-connection.ts'
import { captures } from './nodes/captures.ts'
import { nodeKey } from './nodes/node-key.ts'
import { nodes } from './nodes/nodes.ts'
import { servers } from './nodes/servers.ts'
import { certificates } from './service/certificates.ts'
import { charts } from './service/charts.ts'
import { events } from './service/events.ts'
import { legacyUsage } from './service/legacy-usage.ts'
import { metadata } from './service/metadata.ts'
import { service } from './service/service.ts'
import { usage } from './service/usage.ts'
import { watches } from './service/watches.ts'
import { estimates } from './vms/estimates.ts'
import { pools } from './vms/pools.ts'
import { pushJobs } from './vms/push-jobs.ts'
import { queue } from './vms/queue.ts'
import { quotas } from './vms/quotas.ts'
import { runnerPools } from './vms/runner-pools.ts'
import { terminals } from './vms/terminals.ts'
import { vmConfigs } from './vms/vm-configs.ts'
import { vms } from './vms/vms.ts'

const nouns = [
  vms,
  terminals,
  estimates,
  vmConfigs,
  pools,
  runnerPools,
  pushJobs,
  queue,
  quotas,
  images,
  imageCache,
  isos,
  remoteImages,
  remoteIsos,
  uploads,
  nodes,
  registryCredentials,
  namespaces,
  serviceAccounts,
  roleBindings,
  events,
  usage,
  metadata,
  certificates,
  legacyUsage,
  charts,
  tokens,
  service,
  agent,
  captures,
  nodeKey,
  servers,
] as const

type Noun = (typeof nouns)[number]
type AllOf<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer All) => void
  ? All
  : never

export type HandlerServices = AllOf<Parameters<Noun>[0]> &
  MultiplexServices &
  InvokeServices &
  Parameters<typeof agentConnection>[0]

export function createOperations(services: HandlerServices): Operations {
  const table: Handlers = {
    ...(Object.assign({}, ...nouns.map((noun) => noun(services))) as AllOf<ReturnType<Noun>>),
    ...watches(services, () => operations),
    ...agentConnection(services, () => operations),
  }
  const operations = new Operations(services, table)
  return operations
}

/** Run together with the schema, so that one response names all invalid fields. They get only fields of valid types. */
export const checks: { readonly [Id in OperationId]?: (body: Record<string, unknown>) => Cause[] } = {
  addRegistryCredential: checkCredential,
  deployVm: checkDeployment,
  estimateVm: checkDeployment,
  createVmConfig: checkConfig,
  updateVmConfig: checkConfig,
}

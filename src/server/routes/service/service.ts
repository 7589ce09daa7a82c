// Handlers about the service itself.
import type * as api from '../../../api/service/service.ts'
import type { LoginIdentity } from '../../../auth/login/oidc.ts'
import { callerOf, type Roles } from '../../../auth/roles.ts'
import { maySee } from '../../../rules/ownership.ts'
import { type Collections, viewsOf } from '../../../store/records/collections.ts'
import type { Store } from '../../../store/store.ts'
import { type StalenessGuard, staleRefusal } from '../../cluster/staleness-guard.ts'
import { Answer } from '../../http/answer.ts'
import { type Metrics, visibleMetrics } from '../../http/metrics.ts'
import { openApiDocument } from '../../http/openapi.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import type { Certificates } from '../../tls/certificates.ts'

const alive = { status: 'ok', message: 'alive' }
const storeFailed = 'The store failed: restart svc3'

interface SelfServices {
  readonly collections: Collections
  readonly store: Store
  readonly metrics: Metrics
  readonly roles: Roles
  readonly identity: LoginIdentity
  readonly certificates: Certificates
  readonly staleness?: Pick<StalenessGuard, 'isStale' | 'readAgeSeconds'> | undefined
  /** Returns why the image registry failed when it was last used. Undefined if images are in folders. */
  readonly imagesProblem?: (() => string | undefined) | undefined
  readonly version: string
  readonly stopping: AbortSignal
  /** Plain HTTP is served as well, and is the address for clients. */
  readonly plainHttp: boolean
  readonly apiUrl: () => string
  readonly kubernetesUrl: () => string | undefined
}

export function service(services: SelfServices): HandlersOf<typeof api> {
  const document = openApiDocument(services.version)
  return {
    getClusterInfo: async () => ({
      ...(await endpointOf(services)),
      appClientId: services.identity.clientId,
      baseOauthEndpoint: services.identity.issuer,
      gpuPassthroughEnabled: false,
      version: services.version,
    }),
    async getHealth() {
      const failure = await Promise.race([services.store.failed, undefined])
      return failure ? new Answer(503, { status: 'failing', message: storeFailed }) : alive
    },
    async getReadiness() {
      if (services.stopping.aborted)
        return new Answer(503, { status: 'stopping', message: 'The server is shutting down' })
      if (services.staleness?.isStale) return new Answer(503, { status: 'failing', message: staleRefusal().message })
      const failure = await Promise.race([services.store.failed, undefined])
      if (failure) return new Answer(503, { status: 'failing', message: storeFailed })
      const isStoreDown = services.staleness?.readAgeSeconds !== undefined
      // While the store is down, all views are old. Otherwise a view that cannot be updated makes this server stale.
      const behind = isStoreDown ? undefined : viewsOf(services.collections).find((view) => !view.health().ok)
      if (behind) return new Answer(503, { status: 'failing', message: behind.health().message })
      const store = isStoreDown ? { ok: false, message: 'the store does not answer' } : await services.store.health()
      // If the store refuses changes, it does so for all servers. If none were ready, clients could not even read.
      if (!store.ok) return { status: 'ok', message: `ready for reading; changes are refused: ${store.message}` }
      // All servers use the same registry. If none were ready, requests that do not need it would fail as well.
      const problem = services.imagesProblem?.()
      return {
        status: 'ok',
        message: problem === undefined ? 'ready' : `ready, but the registry with the images is not: ${problem}`,
      }
    },
    async getMetrics({ principal }) {
      const caller = callerOf(services.roles, principal)
      return visibleMetrics(await services.metrics.registry.metrics(), (namespace) => maySee(caller, namespace))
    },
    getApiDocument: () => document,
  }
}

/** Clients of Orka get the address of the Kubernetes API if its port is open. */
async function endpointOf(services: SelfServices) {
  const kubernetesUrl = services.kubernetesUrl()
  const apiEndpoint = kubernetesUrl ?? services.apiUrl()
  const isPlain = kubernetesUrl === undefined && services.plainHttp
  return {
    apiEndpoint,
    apiDomain: URL.canParse(apiEndpoint) ? new URL(apiEndpoint).hostname.replace(/^\[|\]$/g, '') : '',
    certData: isPlain ? '' : anchorFirst((await services.certificates.current()).certificate),
  }
}

/** Puts the root first, because some clients trust the first certificate of the file. */
function anchorFirst(pem: string): string {
  const all = pem.split(/(?<=-----END CERTIFICATE-----)\s*/).filter((each) => each.includes('BEGIN'))
  return `${all.toReversed().join('\n')}\n`
}

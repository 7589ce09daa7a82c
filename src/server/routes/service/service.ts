// The service about itself.
import type * as api from '../../../api/service/service.ts'
import { viewsOf } from '../../../store/records/collections.ts'
import { unseeing } from '../../cluster/staleness-guard.ts'
import { Answer, type HandlersOf } from '../../handlers.ts'
import { openApiDocument } from '../../http/openapi.ts'
import type { Services } from '../../services.ts'

const alive = { status: 'ok', message: 'alive' }

export function service(services: Services): HandlersOf<typeof api> {
  const document = openApiDocument(services.version)
  return {
    getClusterInfo: async () => ({
      apiEndpoint: services.apiUrl,
      apiDomain: URL.canParse(services.apiUrl) ? new URL(services.apiUrl).hostname : '',
      certData: services.plainHttp ? '' : await certificateOf(services),
      appClientId: services.identity.clientId,
      baseOauthEndpoint: services.identity.issuer,
      gpuPassthroughEnabled: false,
      version: services.version,
    }),
    async getHealth() {
      const failure = await Promise.race([services.store.failed, undefined])
      return failure ? new Answer(503, { status: 'failing', message: 'the store has failed: restart svc3' }) : alive
    },
    async getReadiness() {
      if (services.stopping.aborted)
        return new Answer(503, { status: 'stopping', message: 'the service is shutting down' })
      if (services.sight?.isCutOff) return new Answer(503, { status: 'failing', message: unseeing().message })
      const health = [await services.store.health(), ...viewsOf(services.collections).map((view) => view.health())]
      const message = health.find(({ ok }) => !ok)?.message
      if (message !== undefined) return new Answer(503, { status: 'failing', message })
      // Every server has the same registry: without readiness none would serve what does not need it.
      const problem = services.imagesProblem?.()
      return {
        status: 'ok',
        message: problem === undefined ? 'ready' : `ready, but the registry with the images is not: ${problem}`,
      }
    },
    getMetrics: () => services.metrics.registry.metrics(),
    getApiDocument: () => document,
  }
}

const certificateOf = async ({ certificates }: Services): Promise<string> =>
  Buffer.from((await certificates.current()).certificate).toString('base64')

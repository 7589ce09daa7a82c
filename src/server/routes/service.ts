// The service about itself.
import type * as api from '../../api/service.ts'
import { Answer, type HandlersOf } from '../handlers.ts'
import { openApiDocument } from '../openapi.ts'
import type { Services } from '../services.ts'

export function service(services: Services): HandlersOf<typeof api> {
  const document = openApiDocument(services.version)
  return {
    getClusterInfo: () => ({
      apiEndpoint: services.apiUrl,
      apiDomain: URL.canParse(services.apiUrl) ? new URL(services.apiUrl).hostname : '',
      certData: '',
      appClientId: '',
      baseOauthEndpoint: '',
      gpuPassthroughEnabled: false,
      version: services.version,
    }),
    getHealth: () => ({ status: 'ok', message: 'alive' }),
    async getReadiness() {
      if (services.stopping.aborted)
        return new Answer(503, { status: 'stopping', message: 'the service is shutting down' })
      const { ok, message } = await services.store.health()
      return ok ? { status: 'ok', message: 'ready' } : new Answer(503, { status: 'failing', message })
    },
    getMetrics: () => services.metrics.registry.metrics(),
    getApiDocument: () => document,
  }
}

// Information about the service: what clients need before they log in, probes, metrics and the API document.
import * as t from 'typebox'
import { base, operationsOf } from '../operation.ts'

const ClusterInfo = t.Object(
  {
    apiEndpoint: t.String({ description: 'Address of the Kubernetes API; of this API where that port is closed' }),
    apiDomain: t.String({ description: 'Host of apiEndpoint' }),
    certData: t.String({ description: 'Certificate to trust there, as PEM; empty without TLS' }),
    appClientId: t.String({ description: 'Client ID at the identity provider' }),
    baseOauthEndpoint: t.String({ description: 'Address of the identity provider' }),
    gpuPassthroughEnabled: t.Boolean(),
    version: t.String(),
  },
  { title: 'ClusterInfo' },
)

const Health = t.Object(
  { status: t.String({ enum: ['ok', 'starting', 'stopping', 'failing'] }), message: t.String() },
  { title: 'Health' },
)
const operation = operationsOf({ noun: 'service', method: 'GET' })

export const getClusterInfo = operation({
  id: 'getClusterInfo',
  path: `${base}/cluster-info`,
  allow: 'anyone',
  summary: 'Show what a client needs before it logs in',
  response: ClusterInfo,
  example: {
    response: {
      apiEndpoint: 'http://127.0.0.1:8080',
      apiDomain: '127.0.0.1',
      certData: '',
      appClientId: '',
      baseOauthEndpoint: '',
      gpuPassthroughEnabled: false,
      version: '3.0.0',
    },
  },
})

export const getHealth = operation({
  id: 'getHealth',
  path: '/healthz',
  allow: 'anyone',
  also: { 503: 'The store failed: restart the server' },
  summary: 'Check liveness: the process answers',
  response: Health,
  example: { response: { status: 'ok', message: 'alive' } },
})

export const getReadiness = operation({
  id: 'getReadiness',
  path: '/readyz',
  allow: 'anyone',
  also: { 503: 'Not ready: starting, stopping, or out of date while another server may not be' },
  summary: 'Check readiness: the server can serve requests; `message` says if it can only be read',
  response: Health,
  example: { response: { status: 'ok', message: 'ready' } },
})

export const getMetrics = operation({
  id: 'getMetrics',
  path: '/metrics',
  allow: 'user',
  summary: 'Show metrics in Prometheus format: of the cluster, and of the namespaces that the caller may see',
  response: t.String(),
  produces: 'text/plain; version=0.0.4; charset=utf-8',
  example: { response: 'svc3_build_info{version="3.0.0",node="v24.21.0"} 1\n' },
})

export const getApiDocument = operation({
  id: 'getApiDocument',
  path: `${base}/openapi.json`,
  allow: 'anyone',
  summary: 'Show this document: the API in OpenAPI 3.1',
  response: t.Unknown(),
  example: { response: { openapi: '3.1.0' } },
})

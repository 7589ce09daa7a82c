// Every handler of every noun. A noun or an operation that is missing here does not compile.
import type { Handlers } from '../handlers.ts'
import type { Services } from '../services.ts'
import { namespaces } from './namespaces.ts'
import { registryCredentials } from './registry-credentials.ts'
import { service } from './service.ts'

export const handlers = (services: Services): Handlers => ({
  ...registryCredentials(services),
  ...namespaces(services),
  ...service(services),
})

// Who pays for a request. Every route names its charge: one without does not compile, and the service does not start
// with one that a plugin adds.
import type { FastifyInstance, RouteOptions } from 'fastify'
import type { RateLimits } from './limits.ts'

/**
 * - `caller`: the authenticated caller, or the address of a request without one. The route's own guard charges it.
 * - `address`: the address, before anything else runs.
 * - `file`: the address, from a budget ten times as large. One page of the console loads dozens of files, many people
 *   may share an address, and a file is only copied from memory.
 * - `probe`: no charge, because an orchestrator would take the service for dead. The answer must cost next to nothing.
 */
export type Charge = 'caller' | 'address' | 'file' | 'probe'

declare module 'fastify' {
  interface FastifyContextConfig {
    charge?: Charge
  }
}

export interface ChargedRoute extends RouteOptions {
  readonly config: { readonly charge: Charge; readonly operation?: string }
}

type Routing = 'route' | 'register' | 'all' | 'get' | 'head' | 'post' | 'put' | 'patch' | 'delete' | 'options' | 'trace'

/** A Fastify instance whose routes have a charge. */
export interface App extends Omit<FastifyInstance, Routing> {
  route(options: ChargedRoute): unknown
  register(scope: (scope: App) => Promise<void>): unknown
}

/** Charges the requests whose route charges their address. */
export function chargeRoutes(app: FastifyInstance, limits: Pick<RateLimits, 'charge'>): void {
  app.addHook('onRoute', ({ method, url, config }) => {
    if (!config?.charge) throw new Error(`The route ${method} ${url} has no charge`)
  })
  app.addHook('onRequest', (request, _reply, done) => {
    const { charge } = request.routeOptions.config
    done(charge === 'address' || charge === 'file' ? limits.charge(request, undefined, charge) : undefined)
  })
}

// Dials a port of a VM through the service, any number of times.
import type { Duplex } from 'node:stream'
import { ApiError, type Reason } from '../../../../api/errors.ts'
import { connectVm } from '../../../../api/vms/vms.ts'
import { ConnectionError, type ConnectionFault } from '../../../../client/transport.ts'
import type { Context } from '../../../command.ts'
import { trustFor } from '../../../connect/trust.ts'
import type { TunnelProblem } from '../../../connect/tunnel.ts'

export const vmPorts = ['ssh', 'vnc', 'screenshare'] as const
type VmPort = (typeof vmPorts)[number]

interface Target {
  readonly namespace: string
  readonly vm: string
  readonly port: VmPort
}

/** Throws ApiError when the service refuses, ConnectionError when it does not answer. */
export type Dial = (signal: AbortSignal) => Promise<Duplex>

export function dialerFor(context: Context, { namespace, vm, port }: Target): Dial {
  const params: Readonly<Record<string, string>> = { namespace, vm }
  const path = connectVm.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
  return async (signal) => {
    // Each time: a token that has run out meanwhile is renewed.
    const connection = await context.connection()
    const { dial } = await import('../../../connect/tunnel.ts')
    const dialled = await dial({
      baseUrl: connection.apiUrl,
      path: `${path}?port=${port}`,
      token: connection.token,
      signal,
      trust: trustFor(context.host, connection),
    })
    if ('stream' in dialled) return dialled.stream
    throw errorOf(dialled.problem)
  }
}

function errorOf(problem: TunnelProblem): Error {
  if (problem.kind === 'connection') {
    const { fault, address, message, hint } = problem
    return new ConnectionError(fault as ConnectionFault, address, message, hint)
  }
  const { reason, message, hint, requestId } = problem
  return new ApiError(reason as Reason, message, hint === undefined ? {} : { hint }, requestId)
}

// Dials a port of a VM through the service.
import type { Duplex } from 'node:stream'
import { connectVm } from '../../../../api/vms/vms.ts'
import type { Context } from '../../../command.ts'
import { trustFor } from '../../../connect/trust.ts'

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
    // The connection is looked up for each dial, so that an expired token is renewed.
    const connection = await context.connection()
    const { dialTunnel } = await import('../../../../client/tunnel.ts')
    return dialTunnel({
      baseUrl: connection.apiUrl,
      path: `${path}?port=${port}`,
      token: connection.token,
      signal,
      trust: trustFor(context.host, connection),
    })
  }
}

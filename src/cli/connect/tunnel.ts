// Tunnels through the service to a port of a VM. In a bundle of its own, because the WebSocket package is slow to load;
// it has other class identities than the command line's, so it returns problems, never throws.
import type { Duplex } from 'node:stream'
import { dialTunnel, type TunnelOptions } from '../../client/tunnel.ts'

export type TunnelProblem =
  | {
      readonly kind: 'refusal'
      readonly reason: string
      readonly message: string
      readonly hint: string | undefined
      readonly requestId: string | undefined
    }
  | {
      readonly kind: 'connection'
      readonly fault: string
      readonly address: string
      readonly message: string
      readonly hint: string
    }
type Dialled = { readonly stream: Duplex } | { readonly problem: TunnelProblem }

/** Not reached, and a retry will not help. */
const unreachable = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH'])

export async function dial(options: TunnelOptions): Promise<Dialled> {
  try {
    return { stream: await dialTunnel(options) }
  } catch (error) {
    options.signal.throwIfAborted()
    const problem = problemOf(error as Fields) ?? problemOf((error as Error).cause as Fields)
    if (problem) return { problem }
    throw error
  }
}

/** By their names: the judge of certificates brings errors of the other bundle. */
interface Fields {
  readonly name?: string
  readonly message: string
  readonly reason: string
  readonly requestId?: string
  readonly options?: { readonly hint?: string }
  readonly fault: string
  readonly address: string
  readonly hint: string
  readonly cause?: { readonly name?: string; readonly code?: string }
}

function problemOf(error: Fields | undefined): TunnelProblem | undefined {
  if (error?.name === 'ApiError') {
    const { reason, message, requestId, options } = error
    return { kind: 'refusal', reason, message, hint: options?.hint, requestId }
  }
  if (error?.name !== 'ConnectionError') return undefined
  // A certificate that was refused comes wrapped.
  if (error.cause?.name === 'ConnectionError') return problemOf(error.cause as Fields)
  const { address, message, hint, cause } = error
  const fault = unreachable.has(cause?.code ?? '') ? 'refused' : error.fault
  return { kind: 'connection', fault, address, message, hint }
}

// Where what was packed of a VM goes: chunk by chunk to the server, or straight to a registry.
import type { RetryPolicy, wait } from '../../platform/retry.ts'
import { deliver, type Receiver } from './deliver.ts'
import type { Packer } from './pack.ts'
import { type PushOptions, type PushTarget, push } from './push.ts'
import type { CaptureProgress, CaptureServer } from './server.ts'
import type { CaptureState } from './states.ts'

type Packed = Extract<CaptureState, { phase: 'packed' }>
type Pushed = Extract<CaptureState, { phase: 'pushed' }>
type Report = (progress: CaptureProgress) => void
type Sending = Pick<PushOptions, 'isAlone' | 'sent' | 'signal'> & { readonly report: Report }

interface Deliveries {
  toServer(packed: Packed, report: Report, signal: AbortSignal): Promise<void>
  /** Once: a tag that somebody moves afterwards is not to be moved back because the report did not reach the server. */
  toRegistry(packed: Packed, sending: Sending): Promise<Pick<Pushed, 'digest' | 'told'>>
  /** With the credentials for it, as the server has them now. */
  targetOf(state: CaptureState, signal: AbortSignal): Promise<PushTarget>
}

/** Packing takes more than half of the time, where the network is as quick as it is in most clusters. */
export const packedPercent = 60

export function createDeliveries(options: {
  readonly packer: Packer
  /** Of an image that a registry has, all that is not here. */
  fetchRest(state: CaptureState, signal: AbortSignal): Promise<void>
  readonly server: CaptureServer
  readonly pause: typeof wait
  readonly registryRetry: RetryPolicy | undefined
}): Deliveries {
  const { packer, fetchRest, server, pause, registryRetry: retry } = options
  const targetOf: Deliveries['targetOf'] = async ({ id, reference = '', image, createdAt }, signal) => ({
    reference,
    createdAt,
    from: image.reference === undefined ? undefined : { pinned: image.reference, name: image.name },
    login: await server.login(id, signal),
    retry,
  })
  return {
    targetOf,
    async toServer({ id, content }, report, signal) {
      const receiver: Receiver = { ...server, finish: (digest, cut) => server.finish(id, digest, cut) }
      let far: CaptureProgress = { percent: packedPercent, bytes: 0 }
      await deliver(content, await packer.contentsOf(content), {
        receiver,
        read: packer.read,
        signal,
        pause,
        progress(share, bytes) {
          far = { percent: packedPercent + share * (99 - packedPercent), bytes }
          report(far)
        },
        waits: (reason) => report({ ...far, phase: `waiting: ${reason}`.slice(0, 256) }),
      })
    },
    async toRegistry(packed, { report, signal, ...sending }) {
      const { id, content, format } = packed
      let told: CaptureProgress = { percent: 0, bytes: 0 }
      const digest = await push(content, await targetOf(packed, signal), {
        ...sending,
        store: await packer.whole(() => fetchRest(packed, signal)),
        format,
        signal,
        progress(progress) {
          told = { ...progress, percent: Math.floor(progress.percent) }
          report(progress)
        },
        confirm: () => server.report(id, told, signal),
      })
      return { digest, told }
    },
  }
}

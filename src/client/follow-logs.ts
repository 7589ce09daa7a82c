// The output of a VM for as long as somebody reads it. The stream has no end of its own: one that ends was lost, and
// another goes on. One that is silent is replaced before fetch or a proxy cuts it, without a gap.
import type { getVmLogs } from '../api/vms/vms.ts'
import { Backoff, isTransient, retryPolicies, wait } from '../platform/retry.ts'
import type { Client } from './client.ts'
import { ConnectionError } from './transport.ts'

interface FollowOptions {
  /** By whoever calls: the npm package has it without its schemas. */
  readonly operation: typeof getVmLogs
  readonly namespace: string
  readonly vm: string
  /** Lines of what is there already; without it, all of it. */
  readonly tail?: number | undefined
  readonly signal: AbortSignal
  /** The connection is lost: what comes until there is another may be missing. */
  readonly onLost?: (() => void) | undefined
  /** Node's fetch cuts an answer that is silent for 300 s, many proxies after 60. */
  readonly silentMs?: number | undefined
  /** The new stream is open for so long, and the old one still silent, before it takes over. */
  readonly overlapMs?: number | undefined
}

/** Throws what refuses the first connection, and what no other try would change: the VM is gone, the token has ended. */
export async function* followLogs(client: Client, options: FollowOptions): AsyncGenerator<Uint8Array> {
  const { operation, namespace, vm, tail, signal, onLost, silentMs = 45_000, overlapMs = 3_000 } = options
  let hasOpened = false
  const connect = (): Connection => {
    const from = hasOpened ? 0 : tail
    const query = { follow: true, ...(from !== undefined && { tail: from }) }
    return connection(signal, (own) => client.open(operation, { params: { namespace, vm }, query, signal: own }))
  }
  const policy = retryPolicies.stream
  const backoff = new Backoff({ policy, signal, onWait: onLost })
  for (;;) {
    const startMs = performance.now()
    let failure: unknown = endless(client.baseUrl, vm)
    let current = connect()
    try {
      await current.opened
      hasOpened = true
      for (;;) {
        if (await isSilentFor(silentMs, current)) {
          const next = connect()
          // Both have what comes from here on. Whatever the old one still says, the new one may lack.
          const taken = next.opened.then(() => wait(overlapMs, next.signal))
          const isQuiet = await firstOf(current.read(), taken)
          const loser = isQuiet ? current : next
          if (isQuiet) current = next
          loser.close()
          continue
        }
        const { done, value } = await current.take()
        if (done) break
        yield value
      }
    } catch (error) {
      if (signal.aborted || !isTransient(error) || !hasOpened) throw error
      failure = error
    } finally {
      current.close()
    }
    if (performance.now() - startMs > policy.steadyMs) backoff.progressed()
    await backoff.failed(failure)
  }
}

const endless = (address: string, vm: string): ConnectionError =>
  new ConnectionError(
    'lost',
    address,
    `The log stream of VM ${vm} keeps ending`,
    `Run svc3 vm show ${vm} to see its state`,
  )

/** A stream that can be closed while somebody waits for its next piece, which a generator cannot. */
interface Connection {
  readonly signal: AbortSignal
  readonly opened: Promise<unknown>
  /** The next piece: the same one until it is taken. */
  read(): Promise<IteratorResult<Uint8Array>>
  take(): Promise<IteratorResult<Uint8Array>>
  close(): void
}

function connection(
  outer: AbortSignal,
  open: (signal: AbortSignal) => Promise<{ readonly body: AsyncIterable<Uint8Array> }>,
): Connection {
  const ending = new AbortController()
  const signal = AbortSignal.any([outer, ending.signal])
  const opened = open(signal).then(({ body }) => body[Symbol.asyncIterator]())
  let reading: Promise<IteratorResult<Uint8Array>> | undefined
  const read = (): Promise<IteratorResult<Uint8Array>> => (reading ??= opened.then((pieces) => pieces.next()))
  return {
    signal,
    opened,
    read,
    take() {
      const piece = read()
      reading = undefined
      return piece
    },
    close: () => ending.abort(),
  }
}

async function isSilentFor(ms: number, { read }: Connection): Promise<boolean> {
  const over = new AbortController()
  try {
    return await firstOf(read(), wait(ms, over.signal))
  } finally {
    over.abort()
  }
}

/** Whether the second is fulfilled before the first has come to any end. Neither failure is thrown here. */
const firstOf = (ends: Promise<unknown>, isFulfilled: Promise<unknown>): Promise<boolean> =>
  new Promise((resolve) => {
    const no = (): void => resolve(false)
    ends.then(no, no)
    isFulfilled.then(() => resolve(true), no)
  })

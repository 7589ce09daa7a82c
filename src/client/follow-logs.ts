// Follows the console output of a VM. The stream of the service never ends by itself: if it ends, the connection was
// lost, and a new one is opened. A silent stream is replaced, without a gap, before fetch or a proxy closes it.
import type { getVmLogs } from '../api/vms/vms.ts'
import { Backoff, isTransient, retryPolicies, wait } from '../platform/retry.ts'
import type { Client } from './client.ts'
import { ConnectionError } from './transport.ts'

interface FollowOptions {
  /** Passed by the caller, because the npm package has the operation without its schemas. */
  readonly operation: typeof getVmLogs
  readonly namespace: string
  readonly vm: string
  /** Number of past lines (default: all). */
  readonly tail?: number | undefined
  readonly signal: AbortSignal
  /** Called when the connection is lost. Output until the next connection may be missing. */
  readonly onLost?: (() => void) | undefined
  /** When to replace a silent stream (default: 45 s). Node's fetch closes it after 300 s, many proxies after 60 s. */
  readonly silentMs?: number | undefined
  /** How long the new stream is open, with the old one silent, before it replaces the old one. */
  readonly overlapMs?: number | undefined
}

/**
 * Throws if the first connection fails, and for failures that a retry does not mend: the VM was deleted, the token
 * expired.
 */
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
          // Both streams receive all output from here on. The new one may lack output that the old one still has to
          // deliver.
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

/** A stream that can be closed during a read; a generator cannot. */
interface Connection {
  readonly signal: AbortSignal
  readonly opened: Promise<unknown>
  /** Returns the next piece without consuming it. */
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

/** Whether the second promise is fulfilled before the first settles. Never rejects. */
const firstOf = (ends: Promise<unknown>, isFulfilled: Promise<unknown>): Promise<boolean> =>
  new Promise((resolve) => {
    const no = (): void => resolve(false)
    ends.then(no, no)
    isFulfilled.then(() => resolve(true), no)
  })

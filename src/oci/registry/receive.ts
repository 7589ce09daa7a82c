// Blobs straight into memory. Node's HTTP client makes two buffers of every 64 KiB that come, and to clear those away took a
// fifth of a pull. Where a registry answers in another way than lane.ts knows, or the connection breaks, whoever asked goes
// on in the ordinary way from where it stands.
import type { Connector } from './connect.ts'
import { Lane, type Received } from './lane.ts'

export interface Receiving {
  readonly url: URL
  readonly authorization?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export interface Receiver {
  /** As much of it as came. Throws when it was aborted, and never else. Memory is left alone once this is over. */
  receive(asked: Receiving, into: Buffer): Promise<Received>
  close(): void
}

const restMs = 5_000

export function createReceiver({ connect }: Pick<Connector, 'connect'>, silenceMs: number): Receiver {
  const resting = new Map<string, Lane[]>()

  function laneTo(url: URL): Lane {
    const lanes = resting.get(url.origin) ?? []
    for (let lane = lanes.pop(); lane; lane = lanes.pop()) if (lane.isOpen) return lane
    return new Lane({
      connect: (onread) => connect(url, onread),
      readyOn: url.protocol === 'https:' ? 'secureConnect' : 'connect',
    })
  }

  function rest({ origin }: URL, lane: Lane): void {
    lane.rest(restMs)
    resting.set(origin, [...(resting.get(origin) ?? []).filter(({ isOpen }) => isOpen), lane])
  }

  return {
    async receive({ url, authorization, signal }, into) {
      signal?.throwIfAborted()
      const lane = laneTo(url)
      const abort = () => lane.end()
      signal?.addEventListener('abort', abort)
      try {
        const received = await lane.receive(headOf(url, authorization), into, silenceMs)
        signal?.throwIfAborted()
        return received
      } finally {
        signal?.removeEventListener('abort', abort)
        if (lane.isOpen) rest(url, lane)
      }
    },
    close() {
      for (const lane of [...resting.values()].flat()) lane.end()
      resting.clear()
    },
  }
}

/** Paths and tokens have been checked by whoever made them: nothing in them ends a line. */
function headOf({ pathname, search, host }: URL, authorization: string | undefined): string {
  const lines = [`GET ${pathname}${search} HTTP/1.1`, `Host: ${host}`, 'User-Agent: svc3', 'Accept: */*']
  if (authorization !== undefined) lines.push(`Authorization: ${authorization}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}

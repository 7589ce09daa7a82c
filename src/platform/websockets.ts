// Limits for WebSockets: a peer that reads nothing, or sends tiny pieces, must not cost memory or time.

/** Options of the ws library. */
export const boundedSocket = {
  perMessageDeflate: false,
  autoPong: false,
  // One message in each turn of the event loop, so that many tiny ones do not keep others waiting.
  allowSynchronousEvents: false,
  maxFragments: 1_024,
  maxBufferedChunks: 16_384,
} as const

interface Pinged {
  on(event: 'ping', listener: (data: Buffer) => void): unknown
  pong(data: Buffer, mask: undefined, sent: (error?: Error) => void): void
}

/** Answers the latest ping when the answer before has been sent. The library would buffer an answer for each. */
export function answerPings(socket: Pinged): void {
  let isSending = false
  let latest: Buffer | undefined
  const answer = (): void => {
    const data = latest
    isSending = data !== undefined
    latest = undefined
    if (data) socket.pong(data, undefined, (error) => error ?? answer())
  }
  socket.on('ping', (data) => {
    latest = data
    if (!isSending) answer()
  })
}

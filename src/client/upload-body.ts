// Sends a large request body: after the server's 100 Continue, with backpressure, and only until a response arrives,
// which before the end of the body can only be a refusal.
import type { ClientRequest } from 'node:http'
import type { BodyStream } from './transport.ts'

/** A server that does not support 100 Continue sends nothing; the body is sent after this time. */
const timeoutMs = 2_000

export const uploadHeaders = ({ bytes }: BodyStream): Record<string, string> => ({
  'content-length': String(bytes),
  expect: '100-continue',
})

/** Calls `failed` for errors of `body`. Errors of the connection are emitted by the request. */
export function sendBody(request: ClientRequest, body: BodyStream, failed: (error: unknown) => void): void {
  let isBegun = false
  const begin = (): void => {
    if (isBegun) return
    isBegun = true
    clearTimeout(timer)
    pump(request, body).catch((error: unknown) => {
      failed(error)
      request.destroy()
    })
  }
  const timer = setTimeout(begin, timeoutMs)
  const stop = (): void => {
    clearTimeout(timer)
    isBegun = true
  }
  request.on('continue', begin).on('close', stop)
  request.on('response', (answer) => {
    stop()
    // The server does not want the rest of the body, and the connection cannot be reused.
    answer.on('end', () => request.writableEnded || request.destroy())
  })
  request.flushHeaders()
}

async function pump(request: ClientRequest, { pieces }: BodyStream): Promise<void> {
  let isOver = false
  request.once('response', () => {
    isOver = true
  })
  for await (const piece of pieces) {
    if (isOver || request.destroyed) return
    if (!request.write(piece)) await hasRoom(request)
  }
  request.end()
}

function hasRoom(request: ClientRequest): Promise<void> {
  const events = ['drain', 'response', 'close'] as const
  return new Promise((resolve) => {
    const done = (): void => {
      for (const event of events) request.off(event, done)
      resolve()
    }
    for (const event of events) request.on(event, done)
  })
}

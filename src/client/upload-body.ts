// A large body on its way: asked for by the other side before it is sent, no faster than it is taken, and given up as soon
// as there is an answer, which then can only be a refusal.
import type { ClientRequest } from 'node:http'
import type { BodyStream } from './transport.ts'

/** A server that does not know the question says nothing, and is sent the body all the same. */
const timeoutMs = 2_000

export const uploadHeaders = ({ bytes }: BodyStream): Record<string, string> => ({
  'content-length': String(bytes),
  expect: '100-continue',
})

/** `failed` is told what went wrong on this side; the other side's failures are the request's own. */
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
  const over = (): void => {
    clearTimeout(timer)
    isBegun = true
  }
  request.on('continue', begin).on('close', over)
  request.on('response', (answer) => {
    over()
    // What was not sent is not wanted: the connection has no other use.
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

// What a hostile guest, or the QEMU that it has broken into, does with a connection to one of its sockets or ports.
import { once } from 'node:events'
import type net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export type Behaviour = (socket: net.Socket) => unknown

const maxMs = 4_000

/** Writes pieces, the last one again and again, for as long as the other side reads, some seconds at most. */
export function floods(...pieces: readonly (string | Buffer)[]): Behaviour {
  return async (socket) => {
    const endMs = performance.now() + maxMs
    for (let count = 0; !socket.destroyed && performance.now() < endMs; count++)
      if (!socket.write(pieces[Math.min(count, pieces.length - 1)] ?? ''))
        await Promise.race([once(socket, 'drain').catch(() => undefined), sleep(1_000)])
  }
}

/** One byte in each write, so that the other side may do its work for each. */
export const drips =
  (text: string): Behaviour =>
  async (socket) => {
    const endMs = performance.now() + maxMs
    for (let at = 0; at < text.length && !socket.destroyed && performance.now() < endMs; at++) {
      socket.write(text.charAt(at))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

export const says =
  (text: string): Behaviour =>
  (socket) =>
    socket.write(text, 'latin1')

// The connections that agents keep: the stream of their node down, calls of operations up, answers down again. Several lines
// may share a message.
import type { Duplex } from 'node:stream'
import type { AgentMessage } from '../../api/nodes/agent.ts'
import type { Accept } from '../transfer/upgrades.ts'
import type { Fleet } from './fleet.ts'

interface Kept {
  readonly fleet: Fleet
  readonly node: string
  hello(): AgentMessage
  /** Carries out a call, and sends its answer. Undefined for a line that is none. */
  take(line: string, send: (answer: string) => void): Promise<void> | undefined
}

/** Of one agent, which has two or three at a time. It is not read from while it has more. */
const mostCalls = 32

/** Until either side ends it, or something comes that makes no sense. Throws what HELLO does. */
export function openKept({ fleet, node, hello, take }: Kept): Accept {
  let socket: Duplex | undefined
  let isOver = false
  const stream = fleet.open(node, hello, {
    write: (lines) => socket?.write(lines) ?? false,
    end: () => {
      isOver = true
      socket?.destroy()
    },
  })
  let calls = 0
  const done = (): void => {
    if (calls-- === mostCalls) socket?.resume()
  }
  /** Whether it was a call. */
  const begin = (line: string): boolean => {
    const call = take(line, stream.send)
    if (!call) return false
    if (++calls === mostCalls) socket?.pause()
    void call.then(done)
    return true
  }
  const read = (message: unknown): void => {
    const isSound =
      typeof message === 'string' && message.split('\n').every((line) => line === '' || isOver || begin(line))
    if (!isSound) stream.end()
  }
  return {
    isFramed: true,
    isWatched: true,
    take(opened) {
      socket = opened
      if (isOver) return void socket.destroy()
      socket.on('data', read)
      socket.on('drain', stream.resume)
      socket.once('close', stream.end)
      stream.resume()
    },
    drop: stream.end,
  }
}

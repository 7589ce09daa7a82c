// The connections that agents keep open: the stream of their node and answers go down, calls of operations come up. A
// message may have several lines.
import type { Duplex } from 'node:stream'
import type { AgentMessage } from '../../api/nodes/agent.ts'
import type { Accept } from '../transfer/upgrades.ts'
import type { Fleet } from './fleet.ts'

interface ConnectionOptions {
  readonly fleet: Fleet
  readonly node: string
  hello(): AgentMessage
  /** Carries out a call, and sends its answer. Returns undefined for a line that is not a call. */
  take(line: string, send: (answer: string) => void): Promise<void> | undefined
}

/** Agents make two or three calls at a time. The connection of one that makes more is paused. */
const maxCalls = 32

/** Throws what `hello` throws. The connection ends when either side ends it, or when something other than a call arrives. */
export function openAgentConnection({ fleet, node, hello, take }: ConnectionOptions): Accept {
  let socket: Duplex | undefined
  let isOver = false
  const stream = fleet.open(node, hello, {
    write: (lines) => socket?.write(lines) ?? false,
    end() {
      isOver = true
      socket?.destroy()
    },
  })
  let calls = 0
  const done = (): void => {
    if (calls-- === maxCalls) socket?.resume()
  }
  /** Returns whether the line is a call. */
  const begin = (line: string): boolean => {
    const call = take(line, stream.send)
    if (!call) return false
    if (++calls === maxCalls) socket?.pause()
    void call.then(done)
    return true
  }
  const received = (message: string | Buffer): void => {
    const isValid =
      typeof message === 'string' && message.split('\n').every((line) => line === '' || isOver || begin(line))
    if (!isValid) stream.end()
  }
  return {
    isFramed: true,
    hasHeartbeats: true,
    take(opened) {
      socket = opened
      if (isOver) return void socket.destroy()
      socket.on('data', received).on('drain', stream.resume).once('close', stream.end)
      stream.resume()
    },
    drop: stream.end,
  }
}

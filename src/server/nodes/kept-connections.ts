// The connections that agents keep: the stream of their node down, calls of operations up, answers down again. Several lines
// may share a message.
import type { AgentMessage } from '../../api/nodes/agent.ts'
import type { AcceptMessages, Messages } from '../transfer/upgrades.ts'
import type { Fleet } from './fleet.ts'

interface Kept {
  readonly fleet: Fleet
  readonly node: string
  hello(): AgentMessage
  /** Carries out a call, and sends its answer. Undefined for a line that is none. */
  take(line: string, send: (answer: string) => void): Promise<void> | undefined
}

/** Of one agent, which has two or three at a time. It is not read from while it has more. */
const maxCalls = 32

/** Until either side ends it, or something comes that makes no sense. Throws what HELLO does. */
export function openKept({ fleet, node, hello, take }: Kept): AcceptMessages {
  let messages: Messages | undefined
  let isOver = false
  const stream = fleet.open(node, hello, {
    write: (lines) => messages?.send(lines) ?? false,
    end: () => {
      isOver = true
      messages?.end()
    },
  })
  let calls = 0
  const done = (): void => {
    if (calls-- === maxCalls) messages?.resume()
  }
  /** Whether it was a call. */
  const begin = (line: string): boolean => {
    const call = take(line, stream.send)
    if (!call) return false
    if (++calls === maxCalls) messages?.pause()
    void call.then(done)
    return true
  }
  const received = (text: string | undefined): void => {
    const isSound = text?.split('\n').every((line) => line === '' || isOver || begin(line)) ?? false
    if (!isSound) stream.end()
  }
  return {
    takeMessages(opened) {
      messages = opened
      if (isOver) messages.end()
      else stream.resume()
      return { received, drained: stream.resume, closed: stream.end }
    },
    drop: stream.end,
  }
}

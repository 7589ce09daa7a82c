// Reaches nodes whose stream is held by another server: messages go to that server in one hop and are never forwarded
// again.

import { ApiError } from '../../api/errors.ts'
import type { AgentMessage } from '../../api/nodes/agent.ts'
import { noteSeenNodes, passGrowth, tellNode } from '../../api/nodes/servers.ts'
import type { Log } from '../../platform/log.ts'
import { startLoop } from '../../platform/loop.ts'
import { type ServerCalls, ServerRefused, ServerUnreachable } from '../cluster/server-calls.ts'
import type { GrowthCredentials } from './desired.ts'
import type { Fleet } from './fleet.ts'
import type { PresenceTracker } from './presence.ts'

export interface NodeRelay {
  /** Names of tunnels that end at this server begin with it. */
  readonly prefix: string
  /** Sends a message; false when the node has no stream, here or elsewhere. */
  tell(node: string, message: AgentMessage): Promise<boolean>
  /** The node sent something to this server: the one with its stream is notified, in batches. */
  seen(node: string): void
  /** Sends credentials to grow a file system to the server with the node's stream. True: another server has them. */
  grow(node: string, uid: string, growth: GrowthEntry): Promise<boolean>
  stop(): Promise<void>
}

type GrowthEntry = GrowthCredentials extends Map<string, infer Entry> ? Entry : never

interface NodeRelayOptions {
  readonly id: string
  readonly fleet: Pick<Fleet, 'tell' | 'isOpen'>
  readonly presence: PresenceTracker
  readonly calls: Pick<ServerCalls, 'call'>
  readonly log: Log
  /** How long a node may take to come back when its server is gone. */
  readonly returnMs?: number
}

/** Well within the time after which a silent node counts as gone. */
const seenEveryMs = 5_000
const defaultReturnMs = 4_000

export function createNodeRelay(options: NodeRelayOptions): NodeRelay {
  const { id, fleet, presence, calls, log, returnMs = defaultReturnMs } = options
  const seen = new Set<string>()

  const tellOnce = async (node: string, message: AgentMessage): Promise<boolean | 'gone'> => {
    if (fleet.tell(node, message)) return true
    const holder = presence.holderOf(node)
    if (!holder) return 'gone'
    try {
      return (await calls.call(holder, tellNode, { node, message })).isTold || 'gone'
    } catch (error) {
      if (!(error instanceof ServerUnreachable || error instanceof ServerRefused)) throw error
      log.warn('the server that a node is connected to is not responding', { node, problem: error.message })
      return 'gone'
    }
  }

  /** Waits until its stream is on another server than before. */
  const moved = (node: string): Promise<void> => {
    const place = (): string => (fleet.isOpen(node) ? id : (presence.holderOf(node)?.run ?? ''))
    const before = place()
    return new Promise((resolve) => {
      const look = (): void => {
        if (place() === before || place() === '') return
        done()
      }
      const done = (): void => {
        clearTimeout(timer)
        unsubscribe()
        resolve()
      }
      const timer = setTimeout(done, returnMs)
      const unsubscribe = presence.subscribe(look)
    })
  }

  const loop = startLoop({
    everyMs: seenEveryMs,
    isFirstLater: true,
    run: async () => {
      const byServer = Map.groupBy(seen, (node) => presence.holderOf(node))
      seen.clear()
      for (const [holder, nodes] of byServer)
        if (holder) await calls.call(holder, noteSeenNodes, { nodes }).catch(notTold)
    },
    failed: (error) => log.error('node heartbeats could not be forwarded', {}, error),
  })
  // The next time will do: a node speaks every ten seconds, and is waited for four times as long.
  const notTold = (error: unknown): void =>
    log.debug('node heartbeats could not be forwarded to a server', { problem: String(error) })

  return {
    prefix: `${id}.`,
    async tell(node, message) {
      const told = await tellOnce(node, message)
      if (told !== 'gone') return told
      await moved(node)
      return (await tellOnce(node, message)) === true
    },
    seen(node) {
      if (!fleet.isOpen(node)) seen.add(node)
    },
    async grow(node, uid, growth) {
      const holder = fleet.isOpen(node) ? undefined : presence.holderOf(node)
      if (!holder) return false
      await calls.call(holder, passGrowth, { uid, ...growth }).catch((cause: unknown) => {
        throw new ApiError('ServiceUnavailable', `The server that node ${node} is connected to is not responding`, {
          kind: 'nodes',
          name: node,
          retryAfterSeconds: 5,
          hint: 'Try again; the node connects to another server',
          cause,
        })
      })
      return true
    },
    stop: () => loop.stop(),
  }
}

/** For a server that does not share its store. */
export const localNodeRelay = (fleet: Pick<Fleet, 'tell'>): NodeRelay => ({
  prefix: '',
  tell: async (node, message) => fleet.tell(node, message),
  seen: () => undefined,
  grow: async () => false,
  stop: async () => undefined,
})

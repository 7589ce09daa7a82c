// Reaches nodes that are connected to another server: messages go to that server and are never forwarded again.
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
  /** The prefix of names of tunnels that end at this server. */
  readonly prefix: string
  /** Sends a message. Returns false if the node has no stream on any server. */
  tell(node: string, message: AgentMessage): Promise<boolean>
  /** Notes that the node sent something to this server. The server with its stream is notified, in batches. */
  seen(node: string): void
  /** Sends credentials for growing a file system to another server. Returns false if none has the node's stream. */
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
  /** How long a node may take to reconnect after its server has ended. */
  readonly returnMs?: number
}

/** Much less than the time after which a silent node counts as lost. */
const seenEveryMs = 5_000
const defaultReturnMs = 4_000

export function createNodeRelay(options: NodeRelayOptions): NodeRelay {
  const { id, fleet, presence, calls, log, returnMs = defaultReturnMs } = options
  const seen = new Set<string>()

  const tellOnce = async (node: string, message: AgentMessage): Promise<boolean> => {
    if (fleet.tell(node, message)) return true
    const holder = presence.holderOf(node)
    if (!holder) return false
    try {
      return (await calls.call(holder, tellNode, { node, message })).isTold
    } catch (error) {
      if (!(error instanceof ServerUnreachable || error instanceof ServerRefused)) throw error
      log.warn('the server that a node is connected to is not responding', { node, problem: error.message })
      return false
    }
  }

  /** Waits until the node is connected to another server than before, for `returnMs` at most. */
  const moved = (node: string): Promise<void> => {
    const holder = (): string => (fleet.isOpen(node) ? id : (presence.holderOf(node)?.run ?? ''))
    const before = holder()
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        unsubscribe()
        resolve()
      }
      const timer = setTimeout(done, returnMs)
      const unsubscribe = presence.subscribe(() => {
        if (holder() !== before && holder() !== '') done()
      })
    })
  }

  const loop = startLoop({
    everyMs: seenEveryMs,
    isFirstLater: true,
    run: async () => {
      const byServer = Map.groupBy(seen, (node) => presence.holderOf(node))
      seen.clear()
      for (const [holder, nodes] of byServer)
        if (holder) await calls.call(holder, noteSeenNodes, { nodes }).catch(notNotified)
    },
    failed: (error) => log.error('node heartbeats could not be forwarded', {}, error),
  })
  const notNotified = (error: unknown): void =>
    log.debug('node heartbeats could not be forwarded to a server', { problem: String(error) })

  return {
    prefix: `${id}.`,
    async tell(node, message) {
      if (await tellOnce(node, message)) return true
      await moved(node)
      return tellOnce(node, message)
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

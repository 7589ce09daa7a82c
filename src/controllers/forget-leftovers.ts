// Cleans up after dead servers: deletes records of uploads whose file was lost, and unmarks nodes whose removal was
// interrupted. Forgets old failed logins and servers.
import { timestamp } from '../platform/clock.ts'
import { createSlices } from '../platform/event-loop.ts'
import type { Loop } from '../platform/loop.ts'
import { hasExpired } from '../rules/retention.ts'
import { unmarkNode } from '../store/records/vms.ts'
import { ignoreLost } from '../store/store.ts'
import { type Controller, startController } from './controller.ts'

const everyMs = 30_000
const triesMs = 60 * 60_000
/** A request that takes longer to remove or move a node is refused, because its mark is removed. */
const removalMs = 20_000

/** `forget` ends the records of uploads of dead servers. */
export function forgetLeftovers(controller: Controller, forget: () => Promise<void>): Loop {
  const { collections, clock, log } = controller
  const { loginTries, servers, knownServers, nodes } = collections
  let marks: ReadonlyMap<string, Mark> = new Map()
  return startController(controller, 'forget-leftovers', {
    everyMs,
    follow: (loop) => [
      servers.view.subscribe((changes) => {
        if (changes.some(({ type }) => type === 'delete')) loop.nudge()
      }),
    ],
    run: async () => {
      await forget()
      const now = clock.now()
      marks = await marksOf(nodes, marks, now.getTime())
      for (const [node, { mark, sinceMs }] of marks) {
        if (now.getTime() - sinceMs <= removalMs) continue
        await unmarkNode(collections, node, mark)
        log.warn('a request to remove or move a node was interrupted: the node takes VMs again', { node })
      }
      const at = timestamp(now)
      for (const entry of loginTries.list())
        if (Date.parse(entry.value.at) + triesMs < now.getTime()) await loginTries.delete(entry).catch(ignoreLost)
      for (const entry of knownServers.list()) {
        const { id, goneAt } = entry.value
        if (servers.get('', id)) continue
        if (goneAt === undefined) await knownServers.update(entry, { ...entry.value, goneAt: at }).catch(ignoreLost)
        else if (hasExpired('server', goneAt, at)) await knownServers.delete(entry).catch(ignoreLost)
      }
    },
  })
}

/** The mark of a request that is about to remove or move a node, and when it was first seen here. */
interface Mark {
  readonly mark: string
  readonly sinceMs: number
}

async function marksOf(
  nodes: Controller['collections']['nodes'],
  known: ReadonlyMap<string, Mark>,
  nowMs: number,
): Promise<ReadonlyMap<string, Mark>> {
  const marks = new Map<string, Mark>()
  const yieldToOthers = createSlices()
  for (const { value } of nodes.each()) {
    await yieldToOthers()
    const { name, leaving: mark } = value
    if (mark === undefined) continue
    const before = known.get(name)
    marks.set(name, before?.mark === mark ? before : { mark, sinceMs: nowMs })
  }
  return marks
}

// Reports how the node is to the server: all of it when it changed, when the server asks, and now and then; in between only
// that it is as it was, which costs a server with a thousand nodes next to nothing.
import { noteAgent, reportNode } from '../../api/nodes/agent.ts'
import type { NodeReport } from '../../api/nodes/node-report.ts'
import type { ResponseOf } from '../../api/operation.ts'
import type { AgentConnection } from './connection.ts'

interface NodeReporter {
  /** Returns what the server answers to a whole report. */
  report(report: NodeReport, signal: AbortSignal): Promise<ResponseOf<typeof reportNode> | undefined>
  /** Whatever was said before: all of it the next time. */
  forget(): void
}

/** Also what only time changes at the server reaches the node, and the other way round. */
const wholeEveryMs = 60_000

export function createNodeReporter(connection: Pick<AgentConnection, 'call'>): NodeReporter {
  let reported: { readonly text: string; readonly atMs: number } | undefined
  return {
    async report(body, signal) {
      const text = JSON.stringify(body)
      const isKnown = reported?.text === text && performance.now() - reported.atMs < wholeEveryMs
      if (isKnown && !(await connection.call(noteAgent, {}, signal)).wantsReport) return undefined
      const answer = await connection.call(reportNode, { body }, signal)
      reported = { text, atMs: performance.now() }
      return answer
    },
    forget() {
      reported = undefined
    },
  }
}

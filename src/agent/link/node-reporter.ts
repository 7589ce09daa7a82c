// Reports the state of the node to the server: the whole report when it changed, when the server requests it, and once a
// minute. Otherwise a short call says that it is unchanged, which costs a server with a thousand nodes very little.
import { noteAgent, reportNode } from '../../api/nodes/agent.ts'
import type { NodeReport } from '../../api/nodes/node-report.ts'
import type { ResponseOf } from '../../api/operation.ts'
import type { AgentConnection } from './connection.ts'

const wholeEveryMs = 60_000

export function createNodeReporter(connection: Pick<AgentConnection, 'call'>) {
  let reported: { readonly text: string; readonly atMs: number } | undefined
  return {
    /** Returns the server's answer to a whole report, if one was sent. */
    async report(body: NodeReport, signal: AbortSignal): Promise<ResponseOf<typeof reportNode> | undefined> {
      const text = JSON.stringify(body)
      const isKnown = reported?.text === text && performance.now() - reported.atMs < wholeEveryMs
      if (isKnown && !(await connection.call(noteAgent, {}, signal)).wantsReport) return undefined
      const answer = await connection.call(reportNode, { body }, signal)
      reported = { text, atMs: performance.now() }
      return answer
    },
    /** Makes the next report a whole one. */
    forget(): void {
      reported = undefined
    },
  }
}

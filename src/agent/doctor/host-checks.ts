// The checks that an agent repeats. It sees the host from its own session, in which its VMs run too; a doctor run over SSH
// or in Terminal sees another session. The last results are in the node's folder, where the doctor finds them.
import path from 'node:path'
import type { HostCheck } from '../../api/nodes/node-report.ts'
import { readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import { type Check, examine } from './doctor.ts'

const everyMs = 5 * 60_000
/** Older results are of an agent that no longer runs. */
const maxAgeMs = 3 * everyMs
const timeoutMs = 60_000
const maxTextLength = 512

interface Last {
  readonly atMs: number
  readonly checks: readonly HostCheck[]
}

const fileIn = (folder: string): string => path.join(folder, 'checks.json')

/** Returns the last results. Only the first ones are waited for; later checks run in the background. */
export function createHostChecks(
  checks: readonly Check[],
  folder: string,
  nowMs = Date.now,
): () => Promise<readonly HostCheck[]> {
  let last: Promise<readonly HostCheck[]> | undefined
  let startedMs = 0
  const run = async (): Promise<readonly HostCheck[]> => {
    const results = (await examine(checks, AbortSignal.timeout(timeoutMs))).map(shorten)
    // The doctor can do without the file.
    const text = JSON.stringify({ atMs: nowMs(), checks: results } satisfies Last)
    if (checks.length > 0) await writeFileAtomically(fileIn(folder), text).catch(() => undefined)
    return results
  }
  return () => {
    if (last && nowMs() - startedMs < everyMs) return last
    startedMs = nowMs()
    const next = run()
    void next.then(() => {
      last = next
    })
    last ??= next
    return last
  }
}

const shorten = ({ found, advice, ...rest }: HostCheck): HostCheck => ({
  ...rest,
  found: found.slice(0, maxTextLength),
  ...(advice !== undefined && { advice: advice.slice(0, maxTextLength) }),
})

/**
 * Puts what the agent of this folder saw in place of a result from another session. Results are old if no agent runs, and
 * then they do not count.
 */
export async function asAgentSaw(
  own: readonly HostCheck[],
  folder: string,
  nowMs = Date.now(),
): Promise<readonly HostCheck[]> {
  const { atMs, checks } = await lastOf(folder)
  if (!(nowMs - atMs <= maxAgeMs)) return own
  const seen = new Map(checks.map((each) => [each.check, each]))
  const minutes = Math.round((nowMs - atMs) / 60_000)
  return own.map((here) => {
    const agent = seen.get(here.check)
    if (!agent || agent.result === here.result) return here
    return { ...agent, found: `${agent.found}. Seen by the agent ${minutes} min ago; from here: ${here.found}` }
  })
}

async function lastOf(folder: string): Promise<Last> {
  try {
    return JSON.parse((await readFileIfPresent(fileIn(folder))) ?? '')
  } catch {
    return { atMs: 0, checks: [] }
  }
}

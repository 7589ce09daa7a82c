// What a server process holds, looked at once a minute: its heap after a collection, its memory, and what it has open.
import { once } from 'node:events'
import fs from 'node:fs/promises'
import type { ServerProcess } from '../../test/support/processes/servers.ts'
import { usageOf } from '../measure.ts'

export interface Sample {
  readonly minute: number
  readonly heapMegabytes: number
  readonly residentMegabytes: number
  readonly files: number
  readonly timers: number
  readonly watches: number
}

/** The server runs with --expose-gc, collects at any line that it gets, and says what is left: a second later it would have more. */
export async function sampleOf(server: ServerProcess, minute: number): Promise<Sample> {
  const pid = server.child.pid ?? 0
  const { stdin, stdout } = server.child
  if (!stdin || !stdout) throw new Error('the server has no pipes')
  const left = once(stdout, 'data')
  stdin.write('collect\n')
  const [line] = (await left) as [Buffer]
  const text = await metricsOf(server)
  /** What is counted by kind is not there while there is none. */
  const metric = (name: string): number =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`${name} `))
        ?.split(' ')[1] ?? 0,
    )
  return {
    minute,
    heapMegabytes: Number(line.toString()) / 1_000_000,
    residentMegabytes: (await usageOf(pid)).megabytes,
    files: (await fs.readdir(`/proc/${pid}/fd`)).length,
    timers: metric('nodejs_active_resources{type="Timeout"}'),
    watches: metric('svc3_http_watches'),
  }
}

/** A server that is too busy for an answer is asked again: that it was slow shows in the calls. */
async function metricsOf({ apiUrl, token }: ServerProcess): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    const answer = fetch(`${apiUrl}/metrics`, { headers: { authorization: `Bearer ${token}` } })
    const text = await answer.then((response) => response.text()).catch((error: Error) => error)
    if (typeof text === 'string') return text
    if (attempt === 5) throw text
  }
}

/** Of a figure over minutes: the median of the slopes between any two samples, which one odd sample does not move. */
export function slopeOf(points: readonly (readonly [minute: number, value: number])[]): number {
  const slopes = points.flatMap(([minute, value], index) =>
    points.slice(index + 1).map(([later, next]) => (next - value) / (later - minute)),
  )
  slopes.sort((a, b) => a - b)
  return slopes[slopes.length >> 1] ?? Number.NaN
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

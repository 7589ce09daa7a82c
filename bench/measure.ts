// What several benchmarks measure with.
import { once } from 'node:events'
import fs from 'node:fs/promises'
import http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { greeting } from '../test/support/guests/guest.ts'

/** A run of seconds, which shows that a benchmark still works. Its figures mean nothing. */
export const isSmoke = process.argv.includes('--smoke')
export const sized = <T>(full: T, smoke: T): T => (isSmoke ? smoke : full)

export async function msOf(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await work()
  return performance.now() - startMs
}

/** Rounds of both alternate, so that a busy machine slows both alike. Those of the warm-up do not count. */
export async function inTurns(
  { rounds, warmUp = 0 }: { readonly rounds: number; readonly warmUp?: number },
  ours: (round: number) => Promise<number>,
  theirs: (round: number) => Promise<number>,
): Promise<readonly [ours: number[], theirs: number[]]> {
  const figures = [[], []] as [number[], number[]]
  for (let round = 0; round < warmUp + rounds; round++) {
    const pair = [await theirs(round), await ours(round)] as const
    if (round < warmUp) continue
    figures[1].push(pair[0])
    figures[0].push(pair[1])
  }
  return figures
}

/** How many writes a second this number of writers makes, each one after the other. */
export async function writesPerSecond(
  { writers, durationMs }: { readonly writers: number; readonly durationMs: number },
  write: (writer: number) => Promise<unknown>,
): Promise<number> {
  const startMs = performance.now()
  let writes = 0
  const writer = async (_: unknown, number: number): Promise<void> => {
    for (; performance.now() - startMs < durationMs; writes++) await write(number)
  }
  await Promise.all(Array.from({ length: writers }, writer))
  return (writes * 1_000) / (performance.now() - startMs)
}

export async function eachOf<T>(items: readonly T[], atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const left = items.toReversed()
  const workers = Array.from({ length: atOnce }, async () => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await work(item)
  })
  await Promise.all(workers)
}

/** Until so many VMs of the default namespace run; by the watch, as a client would. */
export async function allRunning({ apiUrl, token }: Reached, count: number): Promise<void> {
  const headers = { authorization: `Bearer ${token}` }
  const url = `${apiUrl}/api/v1/namespaces/svc-default/vms?watch=true`
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(120_000) })
  const running = new Set<string>()
  let rest = ''
  for await (const chunk of response.body ?? []) {
    rest += Buffer.from(chunk).toString()
    const lines = rest.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const { object } = JSON.parse(line)
      if (object?.status === 'Running') running.add(object.name)
    }
    if (running.size >= count) return
  }
  throw new Error('the watch ended before all VMs ran')
}

interface Reached {
  readonly apiUrl: string
  readonly token: string
}

/** Every node that is marked as lost, however shortly. */
export async function lostNodes(server: Reached, signal: AbortSignal): Promise<() => number> {
  const headers = { authorization: `Bearer ${server.token}` }
  const watch = await fetch(`${server.apiUrl}/api/v1/namespaces/svc-default/nodes?watch=true`, { headers, signal })
  let lost = 0
  void (async () => {
    for await (const chunk of watch.body ?? [])
      lost += Buffer.from(chunk).toString().split('"phase":"NOT READY"').length - 1
  })().catch(() => undefined)
  return () => lost
}

/**
 * Reads one after the other until stopped, and returns how long each answered read took. Undefined without a server.
 */
export function readMeanwhile(read: () => Promise<unknown> | undefined): { stop(): Promise<number[]> } {
  const times: number[] = []
  let isOver = false
  const done = (async () => {
    while (!isOver) {
      const startMs = performance.now()
      const isAnswered = await read()?.then(
        () => true,
        () => false,
      )
      if (isAnswered) times.push(performance.now() - startMs)
      await sleep(20)
    }
  })()
  return {
    stop: async () => {
      isOver = true
      await done
      return times
    },
  }
}

const probeEveryMs = 100
export const probeWaitsMs = 10_000

/**
 * A new connection every 100 ms, as of a health probe or a command line: how long each took to its answer. One that got
 * none counts as long as it waited.
 */
export function probeMeanwhile(apiUrl: string): { stop(): Promise<number[]> } {
  const probe = async (): Promise<number> => {
    const startMs = performance.now()
    try {
      const options = { agent: false, signal: AbortSignal.timeout(probeWaitsMs) }
      const [answer] = (await once(http.get(`${apiUrl}/healthz`, options), 'response')) as [http.IncomingMessage]
      answer.resume()
      return performance.now() - startMs
    } catch {
      return probeWaitsMs
    }
  }
  const probes: Promise<number>[] = []
  const timer = setInterval(() => probes.push(probe()), probeEveryMs)
  return {
    stop: () => {
      clearInterval(timer)
      return Promise.all(probes)
    },
  }
}

export async function usageOf(pid: number): Promise<{ cpuSeconds: number; megabytes: number }> {
  const stat = (await fs.readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? []
  const status = await fs.readFile(`/proc/${pid}/status`, 'utf8')
  const kilobytes = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1])
  return { cpuSeconds: (Number(stat[11]) + Number(stat[12])) / 100, megabytes: kilobytes / 1_024 }
}

/** Until the guest's SSH server speaks; tries overlap, because an early one may hang. */
export async function sshAnswers(port: number): Promise<void> {
  const heard = Promise.withResolvers<void>()
  const late = setTimeout(() => heard.reject(new Error(`no SSH at port ${port}`)), 120_000)
  const timer = setInterval(
    () => void greeting('127.0.0.1', port, 3_000).then((text) => text?.startsWith('SSH-') && heard.resolve()),
    100,
  )
  await heard.promise.finally(() => {
    clearInterval(timer)
    clearTimeout(late)
  })
}

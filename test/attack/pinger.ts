// The thread that pings a program for watcher.ts, and does nothing else, so that its own waiting is known. It posts the time that
// each request waited for the program's main thread, or why there was no answer.
import fs from 'node:fs'
import http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'

export interface Ping {
  readonly heldMs: number
  readonly problem?: string
}

const pingEveryMs = 15
/** A new connection now and then: a program that accepts none is as good as stopped. */
const reconnectEvery = 20
const timeoutMs = 30_000

const { pid, url } = (workerData ?? {}) as { readonly pid: number; readonly url: string }

/** Time on a processor, and time that a thread waited for one, in milliseconds. */
export function schedule(task: string): { readonly onMs: number; readonly waitMs: number } {
  const [on = '0', waited = '0'] = fs.readFileSync(`/proc/${task}/schedstat`, 'utf8').split(' ')
  return { onMs: Number(on) / 1e6, waitMs: Number(waited) / 1e6 }
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })

/** From another address than the attacker's, which has its own limit. */
function ping(isFresh: boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = { agent: isFresh ? false : agent, localAddress: '127.0.0.2', timeout: timeoutMs } as const
    const request = http.get(url, options, (response) => {
      response.resume().once('end', resolve).once('error', reject)
    })
    request.once('timeout', () => request.destroy(new Error('no answer'))).once('error', reject)
  })
}

async function pings(): Promise<never> {
  const [mainThread, ownThread] = [`${pid}/task/${pid}`, fs.readlinkSync('/proc/thread-self')]
  for (let count = 0; ; count++) {
    const isFresh = count % reconnectEvery === 0
    const [program, own] = [schedule(mainThread), schedule(ownThread)]
    const started = performance.now()
    const problem = await ping(isFresh).then(
      () => undefined,
      (error: NodeJS.ErrnoException) => `${error.code ?? error.message}${isFresh ? ' on a new connection' : ''}`,
    )
    const tookMs = performance.now() - started
    const [programAfter, ownAfter] = [schedule(mainThread), schedule(ownThread)]
    // While this thread waited for a processor, the answer may have been there already.
    const heldMs = Math.min(tookMs, programAfter.onMs - program.onMs) - (ownAfter.waitMs - own.waitMs)
    parentPort?.postMessage({ heldMs, ...(problem !== undefined && { problem }) } satisfies Ping)
    await sleep(pingEveryMs)
  }
}

// When the program ends, its schedstat file disappears. The test reports the end.
if (parentPort) await pings().catch(() => process.exit(0))

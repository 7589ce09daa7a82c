// Threads that pack chunks, one per core, shared by this process. They start on demand and end when they have been idle
// for a while.
import { Worker } from 'node:worker_threads'
import { defaultParallel } from '../../platform/parallel.ts'
import { findThread } from '../../platform/threads.ts'
import type { Compression } from '../format/format.ts'

/** Both buffers are in shared memory. */
export interface PackJob {
  readonly source: Uint8Array
  readonly target: Uint8Array
}

export interface PackResult {
  readonly storedBytes: number
  readonly digest: string
  readonly rawDigest: string
  readonly compression: Compression
}

interface Waiting {
  readonly job: PackJob
  resolve(result: PackResult): void
  reject(error: unknown): void
}

const idleMs = 5_000

const threads = new Map<Worker, Waiting | undefined>()
const queue: Waiting[] = []
let ending: NodeJS.Timeout | undefined

export function packInThread(job: PackJob): Promise<PackResult> {
  const { promise, resolve, reject } = Promise.withResolvers<PackResult>()
  queue.push({ job, resolve, reject })
  clearTimeout(ending)
  try {
    next()
  } catch (error) {
    for (const each of queue.splice(0)) each.reject(error)
  }
  return promise
}

function next(): void {
  while (queue.length > 0) {
    const idle = [...threads].find(([, work]) => work === undefined)?.[0]
    const thread = idle ?? (threads.size < defaultParallel ? start() : undefined)
    if (!thread) return
    const work = queue.shift() as Waiting
    threads.set(thread, work)
    // Only a busy thread keeps the process alive.
    thread.ref()
    thread.postMessage(work.job)
  }
  if ([...threads.values()].every((work) => work === undefined)) ending = setTimeout(endAll, idleMs).unref()
}

function start(): Worker {
  const thread = new Worker(findThread('pack-thread', import.meta.url), { name: 'svc3-pack', execArgv: [] })
  threads.set(thread, undefined)
  const settle = (how: (work: Waiting) => void): void => {
    const work = threads.get(thread)
    if (threads.has(thread)) threads.set(thread, undefined)
    thread.unref()
    if (work) how(work)
  }
  thread.on('message', (result: PackResult) => {
    settle((work) => work.resolve(result))
    next()
  })
  const lost = (error: Error): void => {
    settle((work) => work.reject(error))
    threads.delete(thread)
    next()
  }
  thread.on('error', lost)
  thread.on('exit', (code) => threads.has(thread) && lost(new Error(`A packing thread ended with ${code}; try again`)))
  return thread
}

function endAll(): void {
  for (const thread of threads.keys()) {
    threads.delete(thread)
    void thread.terminate()
  }
}

// Threads that pack and unpack chunks, as many as there are cores, shared by everything in this process that does so. They
// are started when there is work, and end when there has been none for a while.
import { Worker } from 'node:worker_threads'
import { defaultParallel } from '../../platform/parallel.ts'
import { findThread } from '../../platform/threads.ts'
import type { Compression } from '../format/format.ts'

/** All of them are in memory that threads share. */
export interface PackJob {
  readonly kind: 'pack'
  readonly source: Uint8Array
  /** At least as long as the source. */
  readonly target: Uint8Array
}

export interface UnpackJob {
  readonly kind: 'unpack'
  /** zstd */
  readonly source: Uint8Array
  /** As long as it expands to, as somebody says. */
  readonly target: Uint8Array
}

export type ThreadJob = PackJob | UnpackJob

export interface PackResult {
  readonly storedBytes: number
  readonly digest: string
  readonly rawDigest: string
  readonly compression: Compression
}

/** How long it is; or why it is not what was said. */
export type UnpackResult = { readonly rawBytes: number } | { readonly problem: 'longer' | 'bad' }

interface Waiting {
  readonly job: ThreadJob
  resolve(result: PackResult | UnpackResult): void
  reject(error: unknown): void
}

const idleMs = 5_000

const threads = new Map<Worker, Waiting | undefined>()
const queue: Waiting[] = []
let ending: NodeJS.Timeout | undefined

export const packInThread = (job: PackJob): Promise<PackResult> => inThread(job) as Promise<PackResult>
export const unpackInThread = (job: UnpackJob): Promise<UnpackResult> => inThread(job) as Promise<UnpackResult>

function inThread(job: ThreadJob): Promise<PackResult | UnpackResult> {
  const { promise, resolve, reject } = Promise.withResolvers<PackResult | UnpackResult>()
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
    // Work under way holds the process, an idle thread does not.
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
  thread.on('message', (result: PackResult | UnpackResult) => {
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

// Threads that pack chunks, as many as there are cores, shared by everything in this process that packs. They are started
// when there is work, and end when there has been none for a while.
import fs from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { Compression } from './format.ts'
import { defaultParallel } from './parallel.ts'

/** Both are in memory that threads share. */
export interface PackJob {
  readonly raw: Uint8Array
  /** At least as long as `raw`. */
  readonly target: Uint8Array
  readonly isUncompressed: boolean
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

/** In the sources, and in a bundle. */
const places = ['./pack-thread.ts', './pack-thread.mjs', '../pack-thread.mjs']
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
    // Work under way holds the process, an idle thread does not.
    thread.ref()
    thread.postMessage(work.job)
  }
  if ([...threads.values()].every((work) => work === undefined)) ending = setTimeout(endAll, idleMs).unref()
}

function start(): Worker {
  const thread = new Worker(findThread(), { name: 'svc3-pack', execArgv: [] })
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
  thread.on(
    'exit',
    (code) => threads.has(thread) && lost(new Error(`a thread that packs ended with ${code}; try again`)),
  )
  return thread
}

function endAll(): void {
  for (const thread of threads.keys()) {
    threads.delete(thread)
    void thread.terminate()
  }
}

function findThread(): URL {
  const found = places.map((place) => new URL(place, import.meta.url)).find((url) => fs.existsSync(fileURLToPath(url)))
  if (!found) throw new Error(`the thread that packs is missing beside ${import.meta.filename}: build svc3 again`)
  return found
}

// The store's thread, but it dies when it is asked to write a key with "die" in it: before or after the commit.
import { parentPort, threadId } from 'node:worker_threads'
import type { Request } from '../../src/store/sqlite-protocol.ts'

const asksFor = (word: string, requests: readonly Request[]): boolean =>
  requests.some((request) => request[0] === 'create' && request[1].includes(word))

// Listeners run in the order they were added: this one before the thread's own.
parentPort?.on('message', (requests: readonly Request[]) => {
  if (asksFor('die-before', requests)) throw new Error(`thread ${threadId} dies before the commit`)
})
await import('../../src/store/sqlite-thread.ts')
parentPort?.on('message', (requests: readonly Request[]) => {
  if (asksFor('die-after', requests)) process.exit(7)
})

// The store's thread, except that it dies when it is asked to write a key with "die" in it: before or after the commit.
import { parentPort } from 'node:worker_threads'
import type { Request } from '../../../src/store/sqlite/protocol.ts'

const asksFor = (word: string, requests: readonly Request[]): boolean =>
  requests.some((request) => request[0] === 'create' && request[1].includes(word))

// Listeners run in the order in which they were added: this one before the thread's.
parentPort?.on('message', (requests: readonly Request[]) => {
  if (asksFor('die-before', requests)) process.exit(7)
  // Answers are sent after the commit.
  if (asksFor('die-after', requests) && parentPort) parentPort.postMessage = () => process.exit(7)
})
await import('../../../src/store/sqlite/sqlite-thread.ts')

// Addresses of the cluster's servers: those that the agent was started with, and those that servers have sent since. If a
// server does not answer, each node continues in another order, so that the nodes are spread over the servers.
import { createHash } from 'node:crypto'
import { isLoopback } from '../../rules/addresses.ts'

export interface Addresses {
  readonly all: readonly string[]
  /** Takes the addresses that the server at `current` has sent. Returns whether they changed. */
  learn(current: string, urls: readonly string[]): boolean
  /** The next address; the same one if there is no other. */
  after(url: string): string
}

const maxLearned = 32

export function createAddresses(configured: readonly string[], node: string): Addresses {
  let learned: readonly string[] = []
  const rankOf = (url: string): string => createHash('sha256').update(`${node}\n${url}`).digest('hex')
  const ordered = (): string[] =>
    [...new Set([...configured, ...learned])].toSorted((one, other) => (rankOf(one) < rankOf(other) ? -1 : 1))

  return {
    get all() {
      return [...new Set([...configured, ...learned])]
    },
    learn(current, urls) {
      const next = urls
        .filter((url) => isUsable(url, current))
        .map((url) => new URL(url).origin)
        .slice(0, maxLearned)
      const isSame = next.length === learned.length && next.every((url) => learned.includes(url))
      if (!isSame) learned = next
      return !isSame
    },
    after(url) {
      const urls = ordered()
      return urls[(urls.indexOf(url) + 1) % urls.length] ?? url
    },
  }
}

/** Refuses a change from https to http, and loopback addresses of another machine. */
function isUsable(url: string, current: string): boolean {
  if (!URL.canParse(url)) return false
  const [next, now] = [new URL(url), new URL(current)]
  const isSafe = next.protocol === 'https:' || (next.protocol === 'http:' && now.protocol === 'http:')
  return isSafe && (!isLoopback(next.hostname) || isLoopback(now.hostname))
}

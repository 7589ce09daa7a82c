// Where servers of the cluster are: what this host was given at its start, and what a server has sent since. When one
// does not answer, nodes go on in an order that is each node's own, so that not all of them come to the same server.
import { createHash } from 'node:crypto'
import { isLoopback } from '../../rules/addresses.ts'

export interface Addresses {
  readonly all: readonly string[]
  /** What a server says about itself and the others. Says whether anything changed. */
  learn(current: string, urls: readonly string[]): boolean
  /** The one after this; itself when there is no other. */
  after(url: string): string
}

const maxLearned = 32

export function createAddresses(given: readonly string[], node: string): Addresses {
  let learned: readonly string[] = []
  const placeOf = (url: string): string => createHash('sha256').update(`${node}\n${url}`).digest('hex')
  const ordered = (): string[] =>
    [...new Set([...given, ...learned])].toSorted((one, other) => (placeOf(one) < placeOf(other) ? -1 : 1))

  return {
    get all() {
      return [...new Set([...given, ...learned])]
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

/** Never from https to http, and not to the loopback of another machine. */
function isUsable(url: string, current: string): boolean {
  if (!URL.canParse(url)) return false
  const [next, now] = [new URL(url), new URL(current)]
  const isSafe = next.protocol === 'https:' || (next.protocol === 'http:' && now.protocol === 'http:')
  return isSafe && (!isLoopback(next.hostname) || isLoopback(now.hostname))
}

// One run of the scheduler over those who wait: who is tried when, who was passed over, and for whom a node is kept free.
// Pure: time and shares are given, and what becomes of each turn is told.
import { type Candidate, couldHold, type Demand } from '../placement.ts'
import { isBefore, Queue, type Shares, starving, type Waiting } from './queue.ts'
import type { Amounts } from './quota.ts'

export interface Turn extends Waiting {
  readonly namespace: string
  readonly demand: Demand
}

/** So many of those that found no room are watched per namespace: the first are those whose turn comes first. */
const watched = 100

interface Kept {
  readonly key: string
  readonly node: string
}

/** What outlasts a run. A new leader begins with nothing, and knows all again after one VM was passed over. */
export class Starvation<T extends Turn> {
  /** Found no room, by namespace. */
  readonly short = new Map<string, Map<string, T>>()
  /** Of these: a later one got a node that it could use. */
  readonly passedOver = new Map<string, Map<string, T>>()
  /** By namespace: the node that takes nobody else. */
  readonly kept = new Map<string, Kept>()

  /** It waits no longer. True: a node was kept free for it, which others may have now. */
  forget(key: string): boolean {
    for (const turns of [...this.short.values(), ...this.passedOver.values()]) turns.delete(key)
    const [namespace] = [...this.kept].find(([, kept]) => kept.key === key) ?? []
    return namespace !== undefined && this.kept.delete(namespace)
  }
}

const inside = <T>(map: Map<string, Map<string, T>>, namespace: string): Map<string, T> => {
  const known = map.get(namespace)
  if (known) return known
  const made = new Map<string, T>()
  map.set(namespace, made)
  return made
}

interface Space<T extends Turn> {
  readonly queue: Queue<T>
  readonly shares: Shares
  /** Those of this run. */
  readonly keys: ReadonlySet<string>
  /** Those of them that found no room, so far. */
  readonly refused: Set<string>
  readonly first: T | undefined
  isFirstTried: boolean
}

/** One run. `next` until there is none; each is then `placed`, `refused` for lack of room, or neither. */
export class Turns<T extends Turn> {
  readonly #state: Starvation<T>
  readonly #spaces: Space<T>[]
  #at = 0
  #current: T | undefined

  constructor(
    state: Starvation<T>,
    waiting: Iterable<T>,
    { sharesOf, nowMs }: { readonly sharesOf: (namespace: string) => Shares; readonly nowMs: number },
  ) {
    this.#state = state
    const byNamespace = new Map<string, T[]>()
    for (const turn of waiting) {
      const own = byNamespace.get(turn.namespace)
      if (own) own.push(turn)
      else byNamespace.set(turn.namespace, [turn])
    }
    this.#spaces = [...byNamespace].map(([namespace, own]) => {
      const shares = sharesOf(namespace)
      const first = starving(state.passedOver.get(namespace)?.values() ?? [], nowMs)
      const others = first ? own.filter(({ key }) => key !== first.key) : own
      const keys = new Set(own.map(({ key }) => key))
      return { queue: new Queue(others, shares), shares, keys, refused: new Set<string>(), first, isFirstTried: false }
    })
  }

  /** Whoever starves is tried before all others. */
  next(): T | undefined {
    for (; this.#at < this.#spaces.length; this.#at++) {
      const space = this.#spaces[this.#at] as Space<T>
      const isFirst = space.first !== undefined && !space.isFirstTried
      space.isFirstTried = true
      this.#current = isFirst ? space.first : space.queue.next()
      if (this.#current) return this.#current
    }
    return undefined
  }

  /** It gets a node. Those whose turn was before, and who could use that node, were passed over. */
  placed(turn: T, amounts: Amounts, node: Candidate): void {
    const space = this.#spaces[this.#at] as Space<T>
    const short = this.#state.short.get(turn.namespace)
    short?.delete(turn.key)
    for (const each of short?.values() ?? []) {
      const wasBefore = space.keys.has(each.key) ? space.refused.has(each.key) : isBefore(each, turn, space.shares)
      if (wasBefore && couldHold(node, each.demand)) inside(this.#state.passedOver, turn.namespace).set(each.key, each)
    }
    if (turn !== space.first) space.queue.placed(amounts)
  }

  /** No node has room for it. Undefined, or the node that is kept free for it from now on. */
  refused(turn: T, nodes: readonly Candidate[]): string | undefined {
    const space = this.#spaces[this.#at] as Space<T>
    const { short, kept } = this.#state
    const own = inside(short, turn.namespace)
    if (own.size < watched || own.has(turn.key)) {
      own.set(turn.key, turn)
      space.refused.add(turn.key)
    }
    if (turn !== space.first) return undefined
    const before = kept.get(turn.namespace)
    const node = nodeToKeep(turn.demand, nodes, before?.key === turn.key ? before.node : undefined)
    if (node === undefined) kept.delete(turn.namespace)
    else kept.set(turn.namespace, { key: turn.key, node })
    return node
  }
}

/** The one that has most of it free already; once chosen it stays, or nothing would ever be free. */
function nodeToKeep(demand: Demand, nodes: readonly Candidate[], before: string | undefined): string | undefined {
  const able = nodes.filter((node) => node.unfit === undefined && couldHold(node, demand))
  const lacks = ({ cpu, memoryMiB, freeCpu, freeMemoryMiB }: Candidate): number =>
    Math.max(0, demand.cpu - freeCpu) / cpu + Math.max(0, demand.memoryMiB - freeMemoryMiB) / memoryMiB
  const [best] = able.toSorted((a, b) => lacks(a) - lacks(b) || (a.name < b.name ? -1 : 1))
  return able.find(({ name }) => name === before)?.name ?? best?.name
}

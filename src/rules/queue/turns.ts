// One run of the scheduler: the order in which VMs are tried, which ones were overtaken, and for which a node is
// reserved.
import { type Candidate, couldHold, type Demand } from '../placement.ts'
import { isBefore, Queue, type Shares, starving, type Waiting } from './queue.ts'
import { type Amounts, nothing } from './quota.ts'

export interface Turn extends Waiting {
  readonly namespace: string
  readonly demand: Demand
}

/** The number of VMs without room that are watched per namespace, in queue order. */
const watched = 100

interface Reservation {
  readonly key: string
  readonly node: string
}

/** What is kept between runs. A new leader begins without it, and learns it again when a VM is overtaken. */
export class Starvation<T extends Turn> {
  /** VMs that found no room, by namespace. */
  readonly short = new Map<string, Map<string, T>>()
  /** VMs that were overtaken: a later one got a node that they could have used. */
  readonly passedOver = new Map<string, Map<string, T>>()
  /** The reserved node of each namespace. */
  readonly kept = new Map<string, Reservation>()

  /** Forgets a VM that waits no longer. Returns whether a node was reserved for it. */
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
  /** The VMs of this run. */
  readonly keys: ReadonlySet<string>
  /** VMs of this run that found no room. */
  readonly refused: Set<string>
  readonly first: T | undefined
  isFirstTried: boolean
}

/** Call `next` until it returns undefined. Each turn is then `placed`, `refused` for lack of room, or neither. */
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
    this.#spaces = [...Map.groupBy(waiting, ({ namespace }) => namespace)].map(([namespace, own]) => {
      // The VMs of one owner are tried in the order of their creation, whatever the owner uses already.
      const owners = new Set([...own, ...(state.short.get(namespace)?.values() ?? [])].map(({ owner }) => owner))
      const shares = owners.size > 1 ? sharesOf(namespace) : { usage: new Map(), weights: {}, total: nothing }
      const first = starving(state.passedOver.get(namespace)?.values() ?? [], nowMs)
      const others = first ? own.filter(({ key }) => key !== first.key) : own
      const keys = new Set(own.map(({ key }) => key))
      return { queue: new Queue(others, shares), shares, keys, refused: new Set<string>(), first, isFirstTried: false }
    })
  }

  /** An overtaken VM that has waited too long is tried before all others. */
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

  /** Records a placement. VMs that were due earlier and could have used the node were overtaken. */
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

  /** Records that no node has room. Returns the node that is now reserved for the VM, if any. */
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

/**
 * The node with the most free room for the VM. Once chosen it stays reserved, because it would otherwise never become
 * free.
 */
function nodeToKeep(demand: Demand, nodes: readonly Candidate[], before: string | undefined): string | undefined {
  const able = nodes.filter((node) => node.unfit === undefined && couldHold(node, demand))
  const lacks = ({ cpu, memoryMiB, freeCpu, freeMemoryMiB }: Candidate): number =>
    Math.max(0, demand.cpu - freeCpu) / cpu + Math.max(0, demand.memoryMiB - freeMemoryMiB) / memoryMiB
  const [best] = able.toSorted((a, b) => lacks(a) - lacks(b) || (a.name < b.name ? -1 : 1))
  return able.find(({ name }) => name === before)?.name ?? best?.name
}

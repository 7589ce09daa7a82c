// Whose turn it is: the VMs of a namespace that wait, in the order in which they get nodes. The owner with the lowest share
// goes first; among the VMs of one owner the higher priority, then the older one. Pure: the scheduler walks the order and
// says what was placed; a page shows the same order to people.
import { type Amounts, nothing, plus, type Totals } from './quota.ts'
import { shareOf } from './shares.ts'

export interface Waiting {
  /** Of its record. */
  readonly key: string
  readonly owner: string
  /** Higher first, among the owner's own. */
  readonly priority: number
  /** RFC 3339. */
  readonly createdAt: string
  /** What it takes at least. */
  readonly amounts: Amounts
}

export interface Shares {
  /** Of the owners' VMs that have a node. */
  readonly usage: ReadonlyMap<string, Totals>
  readonly weights: Readonly<Record<string, number>>
  /** Of all nodes. */
  readonly total: Amounts
}

interface Owner<W> {
  readonly name: string
  readonly own: readonly W[]
  /** How many of them had their turn. */
  at: number
  used: Totals
  share: number
}

/**
 * The order, as it goes on: `next` is the VM whose turn it is; `placed` tells that the last one has got what it wanted, which
 * makes its owner wait for the others. One that is not placed costs its owner nothing.
 */
export class Queue<W extends Waiting> {
  /** A binary heap: the owner whose turn it is at the top. Only that one ever changes. */
  readonly #owners: Owner<W>[]
  readonly #shares: Shares
  #isBegun = false

  constructor(waiting: Iterable<W>, shares: Shares) {
    this.#shares = shares
    const byOwner = new Map<string, W[]>()
    for (const each of waiting) {
      const own = byOwner.get(each.owner)
      if (own) own.push(each)
      else byOwner.set(each.owner, [each])
    }
    this.#owners = [...byOwner]
      .map(([name, own]) => {
        const used = shares.usage.get(name) ?? nothing
        return { name, own: own.sort(byTurn), at: 0, used, share: this.#shareOf(name, used) }
      })
      .sort((a, b) => (isSooner(a, b) ? -1 : 1))
  }

  next(): W | undefined {
    if (this.#isBegun) this.#advance()
    this.#isBegun = true
    const [owner] = this.#owners
    return owner?.own[owner.at]
  }

  placed(amounts: Amounts): void {
    const [owner] = this.#owners
    if (!owner) return
    owner.used = plus(owner.used, amounts)
    owner.share = this.#shareOf(owner.name, owner.used)
  }

  /** The one at the top had its turn: it sinks to its place, or leaves. */
  #advance(): void {
    const owners = this.#owners
    const [top] = owners
    if (top && ++top.at === top.own.length) {
      const last = owners.pop()
      if (last && last !== top) owners[0] = last
    }
    for (let at = 0; ; ) {
      let soonest = at
      for (const below of [2 * at + 1, 2 * at + 2]) {
        const [a, b] = [owners[below], owners[soonest]]
        if (a && b && isSooner(a, b)) soonest = below
      }
      const [upper, lower] = [owners[at], owners[soonest]]
      if (soonest === at || !upper || !lower) return
      owners[at] = lower
      owners[soonest] = upper
      at = soonest
    }
  }

  #shareOf(owner: string, used: Totals): number {
    return shareOf(used, this.#shares.total, weightOf(this.#shares.weights, owner))
  }
}

const weightOf = (weights: Readonly<Record<string, number>>, owner: string): number =>
  Object.hasOwn(weights, owner) ? (weights[owner] as number) : 1

/** Equal shares: whose next VM is the older one. */
function isSooner<W extends Waiting>(a: Owner<W>, b: Owner<W>): boolean {
  if (a.share !== b.share) return a.share < b.share
  const [first, second] = [a.own[a.at] as W, b.own[b.at] as W]
  if (first.createdAt !== second.createdAt) return first.createdAt < second.createdAt
  return first.key < second.key
}

const byTurn = (a: Waiting, b: Waiting): number => {
  if (a.priority !== b.priority) return b.priority - a.priority
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1
  return a.key < b.key ? -1 : 1
}

/** Whether it is one's turn before another's, by what their owners have. */
export function isBefore(a: Waiting, b: Waiting, { usage, weights, total }: Shares): boolean {
  if (a.owner === b.owner) return byTurn(a, b) < 0
  const share = ({ owner }: Waiting): number => shareOf(usage.get(owner) ?? nothing, total, weightOf(weights, owner))
  return share(a) <= share(b)
}

/** The whole order, as if each had got what it wanted in its turn: a VM's place in it is its position. */
export function orderOf<W extends Waiting>(waiting: Iterable<W>, shares: Shares): W[] {
  const queue = new Queue(waiting, shares)
  const order: W[] = []
  for (let next = queue.next(); next; next = queue.next()) {
    order.push(next)
    queue.placed(next.amounts)
  }
  return order
}

/** So long a VM that is passed over waits before a node is kept free for it. */
export const starveAfterMs = 60_000

/** The longest of those that were passed over by later ones, once it is too long. Undefined: nobody starves. */
export function starving<W extends Pick<Waiting, 'key' | 'createdAt'>>(
  passedOver: Iterable<W>,
  nowMs: number,
): W | undefined {
  let oldest: W | undefined
  for (const each of passedOver)
    if (!oldest || each.createdAt < oldest.createdAt || (each.createdAt === oldest.createdAt && each.key < oldest.key))
      oldest = each
  return oldest && nowMs - Date.parse(oldest.createdAt) >= starveAfterMs ? oldest : undefined
}

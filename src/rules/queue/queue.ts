// The order in which the waiting VMs of a namespace get nodes. The owner with the lowest share goes first; among the
// VMs of one owner the higher priority, then the older one. Used by the scheduler and by the page that shows the queue.
import { type Amounts, nothing, plus, type Totals } from './quota.ts'
import { shareOf } from './shares.ts'

export interface Waiting {
  /** The key of its record. */
  readonly key: string
  readonly owner: string
  /** Compared among VMs of the same owner. */
  readonly priority: number
  readonly createdAt: string
  /** The least that it takes. */
  readonly amounts: Amounts
}

export interface Shares {
  /** What the placed VMs of each owner use. */
  readonly usage: ReadonlyMap<string, Totals>
  readonly weights: Readonly<Record<string, number>>
  /** The capacity of all nodes. */
  readonly total: Amounts
}

interface Owner<W> {
  readonly name: string
  readonly own: readonly W[]
  at: number
  used: Totals
  share: number
}

/**
 * `next` returns the VM whose turn it is. `placed` says that it got a node, which raises the share of its owner. A VM
 * that is not placed does not.
 */
export class Queue<W extends Waiting> {
  /** Owners with waiting VMs. */
  readonly #owners = new Set<Owner<W>>()
  readonly #shares: Shares
  #current: Owner<W> | undefined

  constructor(waiting: Iterable<W>, shares: Shares) {
    this.#shares = shares
    for (const [name, own] of Map.groupBy(waiting, ({ owner }) => owner)) {
      const used = shares.usage.get(name) ?? nothing
      this.#owners.add({ name, own: own.sort(byTurn), at: 0, used, share: this.#shareOf(name, used) })
    }
  }

  next(): W | undefined {
    const current = this.#current
    if (current && ++current.at === current.own.length) this.#owners.delete(current)
    let first: Owner<W> | undefined
    for (const owner of this.#owners) if (!first || isSooner(owner, first)) first = owner
    this.#current = first
    return first?.own[first.at]
  }

  placed(amounts: Amounts): void {
    const owner = this.#current
    if (!owner) return
    owner.used = plus(owner.used, amounts)
    owner.share = this.#shareOf(owner.name, owner.used)
  }

  #shareOf(owner: string, used: Totals): number {
    return shareOf(used, this.#shares.total, weightOf(this.#shares.weights, owner))
  }
}

const weightOf = (weights: Readonly<Record<string, number>>, owner: string): number =>
  Object.hasOwn(weights, owner) ? (weights[owner] as number) : 1

/** With equal shares the owner with the older VM goes first. */
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

/** Whether `a` has its turn before `b`. */
export function isBefore(a: Waiting, b: Waiting, { usage, weights, total }: Shares): boolean {
  if (a.owner === b.owner) return byTurn(a, b) < 0
  const share = ({ owner }: Waiting): number => shareOf(usage.get(owner) ?? nothing, total, weightOf(weights, owner))
  return share(a) <= share(b)
}

/** The whole order, assuming that every VM gets a node in its turn. */
export function orderOf<W extends Waiting>(waiting: Iterable<W>, shares: Shares): W[] {
  const queue = new Queue(waiting, shares)
  const order: W[] = []
  for (let next = queue.next(); next; next = queue.next()) {
    order.push(next)
    queue.placed(next.amounts)
  }
  return order
}

/** After this long a node is reserved for a VM that others have overtaken. */
export const starveAfterMs = 60_000

/** The oldest VM that others have overtaken, if it has waited too long. */
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

// The best node for one kind of VM, as a tournament that is kept: when a node changes, only its own matches are played again. So
// the next VM of that kind costs the same however many nodes there are.
import { type Candidate, type Demand, isBetter, isFit } from './placement.ts'

const nobody = -1

export class Ranking<Node extends Candidate> {
  readonly #demand: Demand
  /** Whoever has the list may put another one in the place of a node, and says so. */
  readonly #nodes: readonly Node[]
  /** A binary tree: node `at` has its leaf at `#leaves + at`, each match the winner of the two below, the first the best. */
  readonly #winners: Int32Array
  readonly #leaves: number
  #changed = new Set<number>()

  /** Without reserved ports: those differ from VM to VM. */
  constructor(demand: Demand, nodes: readonly Node[]) {
    this.#demand = demand
    this.#nodes = nodes
    this.#leaves = 2 ** Math.ceil(Math.log2(Math.max(nodes.length, 1)))
    this.#winners = new Int32Array(2 * this.#leaves).fill(nobody)
    for (const at of nodes.keys()) this.#winners[this.#leaves + at] = this.#leafOf(at)
    for (let match = this.#leaves - 1; match > 0; match--) this.#winners[match] = this.#winnerOf(match)
  }

  /** What the node at this place of the list has is not what it was. */
  changed(at: number): void {
    this.#changed.add(at)
  }

  /** The one that `place` would choose, if it has a port left. */
  best(): Node | undefined {
    for (const at of this.#changed) this.#playAgain(at)
    if (this.#changed.size > 0) this.#changed = new Set()
    return this.#nodes[this.#winners[1] as number]
  }

  #playAgain(at: number): void {
    const leaf = this.#leaves + at
    this.#winners[leaf] = this.#leafOf(at)
    for (let match = leaf >>> 1; match > 0; match >>>= 1) {
      const before = this.#winners[match]
      const now = this.#winnerOf(match)
      this.#winners[match] = now
      // It lost as before: nothing above has seen it.
      if (before !== at && now === before) return
    }
  }

  #leafOf(at: number): number {
    return isFit(this.#nodes[at] as Node, this.#demand) ? at : nobody
  }

  /** Of equals the first. */
  #winnerOf(match: number): number {
    const one = this.#winners[2 * match] as number
    const other = this.#winners[2 * match + 1] as number
    if (one === nobody || other === nobody) return one === nobody ? other : one
    return isBetter(this.#nodes[other] as Node, this.#nodes[one] as Node, this.#demand) ? other : one
  }
}

// Who of the nodes that fetch an image at the same time has which chunk of it, or is fetching it. The first that asks for a
// chunk fetches it from where it comes from; whoever asks later is sent to one that asked before, so that nobody waits in
// a circle. In the memory of this server, and only advice: a node that is sent to the wrong place says so, and asks again.
import type { Clock } from '../../platform/clock.ts'

export interface ChunkHolders {
  /** The node to ask; undefined: this one fetches it for those who come after it. */
  assign(
    wanted: { readonly content: string; readonly chunk: string; readonly node: string },
    options: AssignOptions,
  ): string | undefined
}

interface AssignOptions {
  /** Nodes that did not have it. */
  readonly without: ReadonlySet<string>
  isUsable(node: string): boolean
}

interface Holder {
  readonly node: string
  /** How many were sent to it. */
  sent: number
  /** Somebody did not get it there. It keeps its place all the same: others may be waiting for it. */
  isLeft: boolean
}

/** So many are sent to a node before it is the next one's turn: a tree, in which a chunk is at a thousand nodes after six steps. */
const maxSent = 3
const maxHolders = 64
/** Nobody has asked for a chunk of an image for so long: its nodes have all of it, or gave up. */
const forgottenMs = 10 * 60_000

export function createChunkHolders(clock: Clock): ChunkHolders {
  const contents = new Map<string, { touchedMs: number; readonly chunks: Map<string, Holder[]> }>()
  return {
    assign({ content, chunk, node }, { without, isUsable }) {
      const nowMs = clock.now().getTime()
      const known = contents.get(content)
      if (!known) for (const [key, { touchedMs }] of contents) if (nowMs - touchedMs > forgottenMs) contents.delete(key)
      const { chunks } = known ?? { chunks: new Map<string, Holder[]>() }
      contents.set(content, { touchedMs: nowMs, chunks })
      const holders = chunks.get(chunk) ?? []
      chunks.set(chunk, holders)
      for (const each of holders) if (each.node === node || without.has(each.node)) each.isLeft = each.node !== node
      const place = holders.findIndex((each) => each.node === node)
      const before = (place < 0 ? holders : holders.slice(0, place)).filter(
        (each) => !each.isLeft && isUsable(each.node),
      )
      if (place < 0 && holders.length < maxHolders) holders.push({ node, sent: 0, isLeft: false })
      const chosen =
        before.find(({ sent }) => sent < maxSent) ?? before.toSorted((one, other) => one.sent - other.sent)[0]
      if (chosen) chosen.sent += 1
      return chosen?.node
    },
  }
}

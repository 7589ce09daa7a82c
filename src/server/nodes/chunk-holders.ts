// Which nodes have or fetch which chunk of an image, when several nodes fetch it at the same time. The first node that asks
// for a chunk fetches it from the server. A later one is sent to a node that asked before, so that nodes never wait in a
// circle. This is only advice, in the memory of this server: a node that did not get the chunk asks again.
import type { Clock } from '../../platform/clock.ts'

export interface ChunkHolders {
  /** Returns the node to ask. Undefined: fetch the chunk from the server. */
  assign(
    wanted: { readonly content: string; readonly chunk: string; readonly node: string },
    options: AssignOptions,
  ): string | undefined
}

interface AssignOptions {
  readonly without: ReadonlySet<string>
  isUsable(node: string): boolean
}

interface Holder {
  readonly node: string
  sent: number
  /** It did not deliver to a node. It stays in the list, because other nodes may be waiting for it. */
  isUnreliable: boolean
}

/** A holder serves this many nodes, then the next does. In such a tree, a chunk reaches 1,000 nodes in six steps. */
const maxSent = 3
const maxHolders = 64
/** When no node asked for a chunk of an image for this long, all have finished. */
const forgetAfterMs = 10 * 60_000

export function createChunkHolders(clock: Clock): ChunkHolders {
  const contents = new Map<string, { touchedMs: number; readonly chunks: Map<string, Holder[]> }>()
  return {
    assign({ content, chunk, node }, { without, isUsable }) {
      const nowMs = clock.now().getTime()
      const known = contents.get(content)
      if (!known)
        for (const [key, { touchedMs }] of contents) if (nowMs - touchedMs > forgetAfterMs) contents.delete(key)
      const { chunks } = known ?? { chunks: new Map<string, Holder[]>() }
      contents.set(content, { touchedMs: nowMs, chunks })
      const holders = chunks.get(chunk) ?? []
      chunks.set(chunk, holders)
      for (const each of holders)
        if (each.node === node || without.has(each.node)) each.isUnreliable = each.node !== node
      const position = holders.findIndex((each) => each.node === node)
      const before = (position < 0 ? holders : holders.slice(0, position)).filter(
        (each) => !each.isUnreliable && isUsable(each.node),
      )
      if (position < 0 && holders.length < maxHolders) holders.push({ node, sent: 0, isUnreliable: false })
      const chosen =
        before.find(({ sent }) => sent < maxSent) ?? before.toSorted((one, other) => one.sent - other.sent)[0]
      if (chosen) chosen.sent += 1
      return chosen?.node
    },
  }
}

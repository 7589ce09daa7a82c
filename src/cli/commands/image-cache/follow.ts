// Waits until nodes have an image, or cannot have it, and shows how far they are.
import { type CachedCopy, getCachedImage } from '../../../api/image-cache.ts'
import { listNodes } from '../../../api/nodes.ts'
import type { Context, Session } from '../../context.ts'
import { startProgress } from '../../progress.ts'
import { Failure, Interrupted } from '../../usage.ts'

export interface Awaited {
  readonly image: string
  readonly nodes: readonly string[]
  readonly timeoutMs: number
}

/** Their copies, once none of them is on its way any more. */
export async function untilCached(
  context: Context,
  { client, namespace }: Session,
  { image, nodes, timeoutMs }: Awaited,
): Promise<CachedCopy[]> {
  const { watch } = await import('../../../client/watch.ts')
  const lookAgain = `"${context.host.calledAs} imagecache info ${image}" shows how far it is`
  const late = AbortSignal.timeout(timeoutMs)
  const over = new AbortController()
  const signal = AbortSignal.any([context.signal, late, over.signal])
  const progress = startProgress(context, `image ${image}`)
  try {
    // A node's record changes with every report: each is a reason to look.
    for await (const { type } of watch(client, listNodes, { params: { namespace } }, { signal })) {
      if (type === 'BOOKMARK') continue
      const found = await client.call(getCachedImage, { params: { namespace, image }, signal })
      const copies = found.nodes.filter(({ node }) => nodes.includes(node))
      const open = copies.filter(({ state }) => state === 'Pending' || state === 'Fetching')
      if (open.length === 0) return copies
      progress.show(stepOf(open))
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    progress.end()
    over.abort()
  }
  if (context.signal.aborted) throw new Interrupted('interrupted', `it goes on being fetched; ${lookAgain}`)
  throw new Failure(`image ${image} is not on all nodes yet`, `it goes on being fetched; ${lookAgain}`)
}

function stepOf(open: readonly CachedCopy[]): { text: string; percent?: number } {
  const percents = open.map(({ progress }) => progress?.percent ?? 0)
  const text = `fetching on ${open.map(({ node }) => node).join(', ')}`
  return { text, percent: Math.floor(percents.reduce((sum, each) => sum + each, 0) / percents.length) }
}

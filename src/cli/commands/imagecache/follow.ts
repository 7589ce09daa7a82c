// Waits until nodes have cached an image or failed to, and shows their progress.
import { type CachedCopy, getCachedImage } from '../../../api/images/image-cache.ts'
import { listNodes } from '../../../api/nodes/nodes.ts'
import type { Context, Session } from '../../command.ts'
import { Interrupted, TimedOut } from '../../line/usage.ts'
import { type Board, type Progress, startBoard } from '../../output/progress.ts'

interface Awaited {
  readonly image: string
  readonly nodes: readonly string[]
  readonly timeoutMs: number
}

/** Their copies, once none of them is being fetched any more. */
export async function untilCached(
  context: Context,
  { client, namespace, sameTargetFlags }: Session,
  { image, nodes, timeoutMs }: Awaited,
): Promise<CachedCopy[]> {
  const { followList } = await import('../../../client/follow-list.ts')
  const next = `To follow it: svc3 imagecache info ${image}${sameTargetFlags}`
  const late = AbortSignal.timeout(timeoutMs)
  const signal = AbortSignal.any([context.signal, late])
  const show = linePerNode(startBoard(context), image)
  try {
    // A node's record changes with every report: each is a reason to look.
    for await (const { type } of followList(client, listNodes, { params: { namespace } }, { signal })) {
      if (type === 'BOOKMARK') continue
      const found = await client.call(getCachedImage, { params: { namespace, image }, signal })
      const copies = found.nodes.filter(({ node }) => nodes.includes(node))
      const open = copies.filter(({ state }) => state === 'Pending' || state === 'Fetching')
      if (open.length === 0) return copies
      show(open)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    show.end()
  }
  if (context.signal.aborted) throw new Interrupted('Stopped waiting; nodes continue to fetch it', next)
  throw new TimedOut(`Image ${image} is not on all nodes yet`, next)
}

type Shown = ((open: readonly CachedCopy[]) => void) & { end(): void }

/** A node that has it, or cannot have it, takes its line away. */
function linePerNode(board: Board, image: string): Shown {
  const lines = new Map<string, Progress>()
  const show = (open: readonly CachedCopy[]): void => {
    for (const { node, state, progress } of open) {
      const line = lines.get(node) ?? board.item(`node ${node}`)
      lines.set(node, line)
      const text = state === 'Pending' ? `waiting for image ${image}` : `fetching image ${image}`
      line.show({ text, ...(progress && { percent: progress.percent }) })
    }
    for (const [node, line] of lines) {
      if (open.some((copy) => copy.node === node)) continue
      line.end()
      lines.delete(node)
    }
  }
  return Object.assign(show, { end: () => board.end() })
}

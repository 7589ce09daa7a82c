// What save and commit share: an image that is on its way. Either it is said how to look, or it is followed to its end.
import type { Image } from '../../../api/images.ts'
import { getImage, listImages } from '../../../api/images.ts'
import type { Client } from '../../../client/client.ts'
import { timeLeft } from '../../../rules/durations.ts'
import { roughSize } from '../../../rules/sizes.ts'
import type { Options } from '../../command.ts'
import type { Context } from '../../context.ts'
import { type Step, startProgress } from '../../progress.ts'
import { Failure, Interrupted } from '../../usage.ts'

export const followed = {
  wait: { type: 'boolean', description: 'Follow it until the image is Ready' },
} as const satisfies Options

/** The answer comes at once; it is the image that takes its time. */
export const requestMs = 60_000

export interface CapturedImage {
  readonly client: Client
  readonly namespace: string
  readonly image: Image
  readonly isWaiting: boolean
  /** What happens, up to the name of the image. */
  readonly what: string
}

export async function tellOfImage(context: Context, captured: CapturedImage): Promise<number> {
  const { image, isWaiting, what } = captured
  const { name } = image
  const look = `${context.host.calledAs} image list ${name}`
  if (!isWaiting) {
    await context.done(`${what} image ${name}. "${look}" shows how far it is.`, image)
    return 0
  }
  const ended = await follow(context, captured, look)
  // A commit that failed leaves the image as it was, with the reason.
  if (ended.state === 'Failed' || ended.errorMessage !== undefined)
    throw new Failure(`image ${name}: ${ended.errorMessage ?? 'it failed'}`, `"${look} -o wide" shows it`)
  await context.done(`Image ${name} is Ready.`, ended)
  return 0
}

async function follow(context: Context, { client, namespace, image }: CapturedImage, look: string): Promise<Image> {
  const { signal } = context
  const { watch } = await import('../../../client/watch.ts')
  const progress = startProgress(context, `image ${image.name}`)
  const everyMs = context.host.stderr.isTerminal ? 0 : logMs
  const over = new AbortController()
  const startMs = performance.now()
  let shownMs = Number.NEGATIVE_INFINITY
  const input = { params: { namespace }, query: { fieldSelector: `name=${image.name}` } }
  try {
    for await (const { type, object } of watch(client, listImages, input, {
      signal: AbortSignal.any([signal, over.signal]),
    })) {
      if (type === 'BOOKMARK') continue
      if (type === 'DELETED') throw new Failure(`image ${image.name} was deleted meanwhile`, 'save the VM again')
      if (object.state !== 'Updating')
        return await client.call(getImage, { params: { namespace, image: image.name }, signal })
      const nowMs = performance.now()
      if (nowMs - shownMs < everyMs) continue
      shownMs = nowMs
      progress.show(stepOf(object, (nowMs - startMs) / 1_000))
    }
    throw new Failure('the service ended the watch', `"${look}" shows how far it is`)
  } catch (error) {
    if (signal.aborted) throw new Interrupted('interrupted', `it goes on being saved; "${look}" shows how far it is`)
    throw error
  } finally {
    over.abort()
    progress.end()
  }
}

const logMs = 10_000

/** How far it is says more about the time left than the bytes do: those that are packed are not all sent. */
export function stepOf({ progress }: Image, seconds: number): Step {
  const { percent = 0, bytes = 0 } = progress ?? {}
  if (percent === 0) return { text: 'being saved', percent }
  const left = timeLeft((seconds * (100 - percent)) / percent)
  return { text: `${roughSize(bytes)}, ${roughSize(bytes / Math.max(seconds, 0.001))}/s, ${left} left`, percent }
}

// What save and commit share: an image being captured is followed to its end, or the command to check it is printed.
import { getImage, type Image, listImages } from '../../../../api/images/images.ts'
import { type Context, type Options, type Session, waitingLonger } from '../../../command.ts'
import { Failure, Interrupted, TimedOut } from '../../../line/usage.ts'
import { startProgress, stepOf } from '../../../output/progress.ts'

export const followed = {
  wait: { type: 'boolean', description: 'Wait until the image is Ready' },
  ...waitingLonger,
} as const satisfies Options

interface CapturedImage {
  readonly session: Session
  readonly image: Image
  readonly isWaiting: boolean
  readonly timeoutMs: number
  /** What happens, up to the name of the image. */
  readonly what: string
}

export async function tellOfImage(context: Context, captured: CapturedImage): Promise<number> {
  const { image, isWaiting, what } = captured
  const { name } = image
  const look = `svc3 image list ${name}${captured.session.again}`
  if (!isWaiting) {
    await context.done(`${what} image ${name}. To follow it: ${look}`, image)
    return 0
  }
  const ended = await follow(context, captured, look)
  // A commit that failed leaves the image as it was, with the reason.
  if (ended.state === 'Failed' || ended.errorMessage !== undefined)
    throw new Failure(
      `Image ${name} failed: ${ended.errorMessage ?? 'no reason given'}`,
      `Run svc3 image show ${name}${captured.session.again} to see it`,
    )
  await context.done(`Image ${name} is Ready.`, ended)
  return 0
}

async function follow(context: Context, captured: CapturedImage, look: string): Promise<Image> {
  const { session, image, timeoutMs } = captured
  const { client, namespace } = session
  const { signal } = context
  const { watch } = await import('../../../../client/watch.ts')
  const progress = startProgress(context, `Image ${image.name}`)
  const over = new AbortController()
  const late = AbortSignal.timeout(timeoutMs)
  const input = { params: { namespace }, query: { fieldSelector: `name=${image.name}` } }
  try {
    for await (const { type, object } of watch(client, listImages, input, {
      signal: AbortSignal.any([signal, late, over.signal]),
    })) {
      if (type === 'BOOKMARK') continue
      if (type === 'DELETED') throw new Failure(`Image ${image.name} was deleted`, 'Save the VM again')
      if (object.state !== 'Updating')
        return await client.call(getImage, { params: { namespace, image: image.name }, signal })
      progress.show(stepOf(object.errorMessage ?? 'saving', object.progress))
    }
    late.throwIfAborted()
    throw new Failure('The service closed the connection', `To follow it: ${look}`)
  } catch (error) {
    if (signal.aborted) throw new Interrupted('Stopped waiting; the save continues', `To follow it: ${look}`)
    if (late.aborted)
      throw new TimedOut(`Stopped waiting; image ${image.name} is not Ready yet`, `To follow it: ${look}`)
    throw error
  } finally {
    over.abort()
    progress.end()
  }
}

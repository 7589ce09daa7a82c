// What save and commit share: an image being captured is followed to its end, or the command to check it is printed.
import { getImage, type Image, listImages } from '../../../../api/images/images.ts'
import { type Context, type Options, type Session, waitingLonger } from '../../../command.ts'
import { followRecord } from '../../../follow-record.ts'
import { Failure } from '../../../line/usage.ts'
import { stepOf } from '../../../output/progress.ts'

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

export async function reportImage(context: Context, captured: CapturedImage): Promise<number> {
  const { session, image, isWaiting, timeoutMs, what } = captured
  const { name } = image
  const look = `svc3 image list ${name}${session.sameTargetFlags}`
  if (!isWaiting) {
    await context.done(`${what} image ${name}. To follow it: ${look}`, image)
    return 0
  }
  const done = await followRecord(context, session, listImages, name, {
    label: `Image ${name}`,
    isDone: ({ state }) => state !== 'Updating',
    step: ({ errorMessage, progress }) => stepOf(errorMessage ?? 'saving', progress),
    timeout: { ms: timeoutMs, message: `Stopped waiting; image ${name} is not Ready yet` },
    what: 'the save',
    next: `To follow it: ${look}`,
  })
  if (!done) throw new Failure(`Image ${name} was deleted`, 'Save the VM again')
  const { client, namespace, sameTargetFlags } = session
  const ended = await client.call(getImage, { params: { namespace, image: name }, signal: context.signal })
  // A commit that failed leaves the image as it was, with the reason.
  if (ended.state === 'Failed' || ended.errorMessage !== undefined)
    throw new Failure(
      `Image ${name} failed: ${ended.errorMessage ?? 'no reason given'}`,
      `Run svc3 image show ${name}${sameTargetFlags} to see it`,
    )
  await context.done(`Image ${name} is Ready.`, ended)
  return 0
}

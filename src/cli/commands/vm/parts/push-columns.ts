// The table columns of push jobs.
import type { PushJob } from '../../../../api/vms/push-jobs.ts'
import { timeLeft } from '../../../../rules/durations.ts'
import { nextTryText, waitingText } from '../../../../rules/retry.ts'
import { sizeText } from '../../../../rules/sizes.ts'
import type { Column } from '../../../output/output.ts'

export const columns: readonly Column<PushJob>[] = [
  { header: 'NAME', keep: 'always', cell: (job) => job.name },
  { header: 'IMAGE', cell: (job) => job.image },
  { header: 'STATUS', keep: 'always', cell: (job) => job.status },
  { header: 'PROGRESS', cell: progressOf },
  { header: 'AGE', cell: (job) => ({ time: job.startedAt }) },
  { header: 'VM', wide: true, cell: (job) => job.vm },
  { header: 'DIGEST', wide: true, cell: (job) => job.digest },
  { header: 'ERROR', wide: true, cell: (job) => job.errorMessage ?? job.waiting?.reason },
]

/** `62 % of 8.4 GiB, 18 MiB/s, 3 min left`; what it adds up to is not known before the VM is frozen and packed. */
function progressOf({ status, progress, waiting }: PushJob): string {
  const { bytesTotal, bytesDone, percent, bytesPerSecond, secondsLeft } = progress
  const isMoving = status === 'Running' && bytesPerSecond !== undefined && secondsLeft !== undefined && bytesTotal > 0
  const far =
    bytesTotal > 0
      ? `${percent} % of ${sizeText(bytesTotal)}`
      : bytesDone > 0
        ? `${sizeText(bytesDone)} sent`
        : `${percent} %`
  if (waiting) return `${far}, ${nextTryText(new Date(waiting.nextTryAt))}`
  return isMoving ? `${far}, ${sizeText(bytesPerSecond)}/s, ${timeLeft(secondsLeft)} left` : far
}

export const waitsFor = ({ reason, nextTryAt }: NonNullable<PushJob['waiting']>): string =>
  waitingText(reason, new Date(nextTryAt))

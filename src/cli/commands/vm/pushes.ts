// svc3 vm push, get-push-status and cancel-push

import { pushFormats } from '../../../api/records.ts'
import { cancelPushJob, getPushJob, listPushJobs, type PushJob, pushVm } from '../../../api/vms/push-jobs.ts'
import { nextTryText, waitingText } from '../../../platform/retry.ts'
import { timeLeft } from '../../../rules/durations.ts'
import { parseImageReference } from '../../../rules/image-reference.ts'
import { sizeText } from '../../../rules/sizes.ts'
import { type Context, defineCommand, namespaced, printed, type Session } from '../../command.ts'
import { followRecord } from '../../follow-record.ts'
import { exitCodes, UsageError } from '../../line/usage.ts'
import { type OutputColumn, visible } from '../../output/output.ts'
import type { ProgressStep } from '../../output/progress.ts'
import { changeCommand, listCommand } from '../../record-commands.ts'
import { vmArgument } from './parts/vm-argument.ts'

const columns: readonly OutputColumn<PushJob>[] = [
  { header: 'NAME', keep: 'always', cell: (job) => job.name },
  { header: 'IMAGE', cell: (job) => job.image },
  { header: 'STATUS', keep: 'always', cell: (job) => job.status },
  { header: 'PROGRESS', cell: progressOf },
  { header: 'AGE', cell: (job) => ({ time: job.startedAt }) },
  { header: 'VM', wide: true, cell: (job) => job.vm },
  { header: 'DIGEST', wide: true, cell: (job) => job.digest },
  { header: 'ERROR', wide: true, cell: (job) => job.errorMessage ?? job.waiting?.reason },
]

/** `62 % of 8.4 GiB, 18 MiB/s, 3 min left`. The total is known once the disk is packed. */
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

const waitsFor = ({ reason, nextTryAt }: NonNullable<PushJob['waiting']>): string =>
  waitingText(reason, new Date(nextTryAt))

async function followJob(context: Context, session: Session, name: string): Promise<PushJob> {
  const ended = await followRecord(context, session, listPushJobs, name, {
    label: `Push ${name}`,
    isDone: ({ status }) => status !== 'Pending' && status !== 'Running',
    step: stepOf,
    what: 'the push',
    next: `To follow it: svc3 vm get-push-status ${name}${session.sameTargetFlags}`,
  })
  if (ended) return ended
  const { client, namespace } = session
  return client.call(getPushJob, { params: { namespace, job: name }, signal: context.signal })
}

function stepOf({ progress, phase, waiting }: PushJob): ProgressStep {
  const { bytesDone: done, bytesTotal: total, bytesSkipped: from } = progress
  const isSending = total > 0
  const early = done > 0 ? `, ${sizeText(done)} sent` : ''
  const had = from > 0 ? `${sizeText(from)} already in the registry` : ''
  const text = waiting ? waitsFor(waiting) : isSending ? had : `${phase ?? 'waiting'}${early}`
  return { text, ...(isSending && !waiting && { bytes: { done, total, from } }) }
}

const push = defineCommand({
  description:
    'Apple silicon only. Pushes the disk of the VM to an OCI registry. The VM pauses for a moment and resumes without a\n' +
    'reboot. Store the credentials for the registry in the namespace of the VM first: svc3 regcred add.',
  arguments: {
    ...vmArgument,
    image: {
      value: 'IMAGE[:TAG]',
      description: '<registry_host>/<repository>/<image>; default tag latest',
      required: true,
    },
  },
  options: {
    format: {
      type: 'choice',
      choices: pushFormats,
      default: 'svc3',
      description: 'Image format: svc3, or tart for use with tart',
    },
    wait: { type: 'boolean', description: 'Wait until the push is finished' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 vm push demo ghcr.io/acme/ios/sonoma:1.2', does: 'Start a push and print the name of the job' },
    { line: 'svc3 vm push demo ghcr.io/acme/ios/sonoma --wait', does: 'Push and show the progress' },
  ],
  async run(context, { args: { vm, image }, options: { wait, format } }) {
    const parsed = parseImageReference(image, 'push')
    if (!parsed.ok) throw new UsageError(parsed.problem, parsed.hint)
    const session = await context.connect()
    const { client, namespace } = session
    const params = { namespace, vm }
    const answer = await client.call(pushVm, {
      params,
      body: { imageReference: image, ...(format !== 'svc3' && { format }) },
      signal: context.signal,
    })
    const { jobName } = answer
    if (!wait) {
      await context.done(`Push job ${jobName} started.`, answer)
      context.note(`To follow it: svc3 vm get-push-status ${jobName}${session.sameTargetFlags}`)
      return exitCodes.done
    }
    context.note(`Push job ${jobName} started`)
    return reportEnd(context, await followJob(context, session, jobName))
  },
})

async function reportEnd(context: Context, job: PushJob): Promise<number> {
  await context.print([job], columns, '')
  if (job.status === 'Succeeded') {
    context.note(`Pushed ${job.image}${job.digest === undefined ? '' : ` (${job.digest})`}`)
    return exitCodes.done
  }
  context.note(`Push job ${job.name} ${job.status === 'Failed' ? 'failed' : 'cancelled'}: ${job.errorMessage}`)
  return exitCodes.failed
}

const status = listCommand({
  description: 'Apple silicon only. Finished jobs are listed for an hour.',
  argument: { value: 'JOB', description: 'only these jobs' },
  examples: [
    { line: 'svc3 vm get-push-status', does: 'List push jobs and their progress' },
    { line: 'svc3 vm get-push-status vm-push-4k2vx -o wide', does: 'Show one job with its digest or error' },
  ],
  list: listPushJobs,
  columns,
  scope: 'all',
  notes: ({ note }, jobs) => {
    // The text is too long for a cell.
    for (const { name, waiting } of jobs) if (waiting) note(visible(`Push job ${name}: ${waitsFor(waiting)}`))
  },
})

const cancel = changeCommand({
  description: 'A cancelled push changes no tag in the registry.',
  arguments: { job: { value: 'JOB', description: 'push job to cancel', required: true } },
  examples: [{ line: 'svc3 vm cancel-push vm-push-4k2vx', does: 'Cancel a push; the VM keeps running' }],
  change: cancelPushJob,
  done: (_, job) => `Push job ${job} cancelled.`,
})

export const commands = {
  push,
  'get-push-status': status,
  'cancel-push': cancel,
}

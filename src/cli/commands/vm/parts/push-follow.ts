// Follows a push job to its end by a watch, with bytes, rate and time left. Ctrl-C ends the waiting, not the job.
import { getPushJob, listPushJobs, type PushJob } from '../../../../api/vms/push-jobs.ts'
import { sizeText } from '../../../../rules/sizes.ts'
import type { Context, Session } from '../../../command.ts'
import { followRecord } from '../../../follow-record.ts'
import type { ProgressStep } from '../../../output/progress.ts'
import { waitsFor } from './push-columns.ts'

export async function followJob(context: Context, session: Session, name: string): Promise<PushJob> {
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

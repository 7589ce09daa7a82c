// Follows a push job to its end by a watch, with bytes, rate and time left. Ctrl-C ends the waiting, not the job.
import { getPushJob, listPushJobs, type PushJob } from '../../../../api/vms/push-jobs.ts'
import { roughSize } from '../../../../rules/sizes.ts'
import type { Context, Session } from '../../../command.ts'
import { Interrupted } from '../../../line/usage.ts'
import { startProgress } from '../../../output/progress.ts'
import { waitsFor } from './push-columns.ts'

export async function followJob(
  context: Context,
  { client, namespace, again }: Session,
  name: string,
): Promise<PushJob> {
  const { signal } = context
  const { watch } = await import('../../../../client/watch.ts')
  const progress = startProgress(context, `Push ${name}`)
  const input = { params: { namespace }, query: { fieldSelector: `name=${name}` } }
  try {
    for await (const { type, object: job } of watch(client, listPushJobs, input, { signal })) {
      if (type === 'BOOKMARK') continue
      if (type === 'DELETED') break
      if (isOver(job)) return job
      const { bytesDone: done, bytesTotal: total, bytesSkipped: from } = job.progress
      const isSending = total > 0
      const early = done > 0 ? `, ${roughSize(done)} sent` : ''
      const had = from > 0 ? `${roughSize(from)} already in the registry` : ''
      const text = job.waiting ? waitsFor(job.waiting) : isSending ? had : `${job.phase ?? 'waiting'}${early}`
      progress.show({ text, ...(isSending && !job.waiting && { bytes: { done, total, from } }) })
    }
  } finally {
    progress.end()
  }
  if (signal.aborted)
    throw new Interrupted(
      'Stopped waiting; the push continues',
      `To follow it: svc3 vm get-push-status ${name}${again}`,
    )
  return client.call(getPushJob, { params: { namespace, job: name } })
}

const isOver = ({ status }: PushJob): boolean => status !== 'Pending' && status !== 'Running'

// Follows a push job to its end: by a watch, with bytes, rate and time left. Ctrl-C ends the waiting, not the job.
import { getPushJob, listPushJobs, type PushJob } from '../../../api/push-jobs.ts'
import { roughSize } from '../../../rules/sizes.ts'
import type { Context, Session } from '../../context.ts'
import { startProgress } from '../../progress.ts'
import { stepOf } from '../../transfer.ts'
import { Interrupted } from '../../usage.ts'

export async function followJob(context: Context, { client, namespace }: Session, name: string): Promise<PushJob> {
  const { host, signal } = context
  const { watch } = await import('../../../client/watch.ts')
  const progress = startProgress(context, `push ${name}`)
  const startMs = performance.now()
  let startBytes: number | undefined
  const input = { params: { namespace }, query: { fieldSelector: `name=${name}` } }
  try {
    for await (const { type, object: job } of watch(client, listPushJobs, input, { signal })) {
      if (type === 'BOOKMARK') continue
      if (type === 'DELETED') break
      if (isOver(job)) return job
      const { bytesDone: bytes, bytesTotal: totalBytes, bytesSkipped } = job.progress
      startBytes ??= totalBytes > 0 ? bytes : undefined
      const seconds = (performance.now() - startMs) / 1_000
      const sending = stepOf({ bytes, totalBytes, startBytes: startBytes ?? bytes, seconds })
      const skipped = bytesSkipped > 0 ? `, ${roughSize(bytesSkipped)} were there` : ''
      progress.show(totalBytes === 0 ? { text: job.phase ?? 'waiting' } : { ...sending, text: sending.text + skipped })
    }
  } finally {
    progress.end()
  }
  if (signal.aborted)
    throw new Interrupted(
      'interrupted',
      `the push goes on; "${host.calledAs} vm get-push-status ${name} -n ${namespace}" shows it`,
    )
  return client.call(getPushJob, { params: { namespace, job: name } })
}

const isOver = ({ status }: PushJob): boolean => status !== 'Pending' && status !== 'Running'

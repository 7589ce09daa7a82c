// svc3 vm cancel-push
import { cancelPushJob } from '../../../api/vms/push-jobs.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'

export const command = defineCommand({
  description: 'A cancelled push changes no tag in the registry.',
  arguments: { job: { value: 'JOB', description: 'push job to cancel', required: true } },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm cancel-push vm-push-4k2vx', does: 'Cancel a push; the VM keeps running' }],
  async run(context, { args: { job } }) {
    const { client, namespace } = await context.connect()
    const status = await client.call(cancelPushJob, { params: { namespace, job }, signal: context.signal })
    await context.done(`Push job ${job} cancelled.`, status)
    return 0
  },
})

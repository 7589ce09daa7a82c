// svc3 vm push

import { pushFormats } from '../../../api/records.ts'
import { type PushJob, pushVm } from '../../../api/vms/push-jobs.ts'
import { parseImageReference } from '../../../rules/image-reference.ts'
import { type Context, defineCommand, namespaced, printed } from '../../command.ts'
import { exitCodes, UsageError } from '../../line/usage.ts'
import { columns } from './parts/push-columns.ts'
import { followJob } from './parts/push-follow.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
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
    return tellEnd(context, await followJob(context, session, jobName))
  },
})

async function tellEnd(context: Context, job: PushJob): Promise<number> {
  await context.print([job], columns, '')
  if (job.status === 'Succeeded') {
    context.note(`Pushed ${job.image}${job.digest === undefined ? '' : ` (${job.digest})`}`)
    return exitCodes.done
  }
  context.note(`Push job ${job.name} ${job.status === 'Failed' ? 'failed' : 'cancelled'}: ${job.errorMessage}`)
  return exitCodes.failed
}

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
    'Apple silicon only. Sends the disk of the VM to an OCI registry. Restarts the VM: it is paused for a moment, and goes\n' +
    'on from where it was, not from a boot, while the rest is done. Credentials for the registry have to be in the namespace of the VM: svc3 regcred add.',
  arguments: {
    ...vmArgument,
    image: { value: 'IMAGE[:TAG]', description: '<registry_host>/<repository>/<image>, tag latest', required: true },
  },
  options: {
    format: {
      type: 'choice',
      choices: pushFormats,
      default: 'svc3',
      description: 'Of the image there: of this service, or as tart writes and runs it',
    },
    wait: { type: 'boolean', description: 'Follow the push to its end' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 vm push demo ghcr.io/acme/ios/sonoma:1.2', does: 'Prints the name of the job' },
    { line: 'svc3 vm push demo ghcr.io/acme/ios/sonoma --wait', does: 'Shows how it goes on, until it is there' },
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
      context.note(`"${context.host.calledAs} vm get-push-status ${jobName} -n ${namespace}" shows how it goes on`)
      return exitCodes.done
    }
    context.note(`push job ${jobName} started`)
    return tellEnd(context, await followJob(context, session, jobName))
  },
})

async function tellEnd(context: Context, job: PushJob): Promise<number> {
  await context.print([job], columns, '')
  if (job.status === 'Succeeded') {
    context.note(`${job.image} is ${job.digest ?? 'there'}`)
    return exitCodes.done
  }
  context.note(`push job ${job.name} has ${job.status === 'Failed' ? 'failed' : 'been cancelled'}: ${job.errorMessage}`)
  return exitCodes.failed
}

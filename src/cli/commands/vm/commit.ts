// svc3 vm commit
import { commitVm } from '../../../api/vms/vms.ts'
import { awaitChange } from '../../await-change.ts'
import { defineCommand, millisecondsOf, namespaced, printed } from '../../command.ts'
import { described } from '../image/options.ts'
import { followed, reportImage } from './parts/captured-image.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description:
    'Creates a new version of the image. Other VMs keep the old version; with Intel-based VMs, a commit is refused while other VMs\nuse the image. The VM pauses for a moment and resumes without a reboot.',
  arguments: vmArgument,
  options: { ...described, ...followed, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 vm commit demo', does: 'Start the commit; the image keeps its description' },
    {
      line: 'svc3 vm commit demo -d Tools --wait',
      does: 'Commit with a description, and wait until the image is Ready',
    },
  ],
  async run(context, { args: { vm }, options: { description, wait, timeout } }) {
    const body = description === undefined ? {} : { description }
    const session = await context.connect({ attempts: 1 })
    const { client, namespace, sameTargetFlags } = session
    const timeoutMs = millisecondsOf(timeout)
    const request = { timeoutMs, what: 'the commit', next: `To follow it: svc3 vm show ${vm}${sameTargetFlags}` }
    const image = await awaitChange(context, client, commitVm, { params: { namespace, vm }, body }, request)
    const what = `Committing VM ${vm} to`
    return reportImage(context, { session, image, isWaiting: wait, timeoutMs, what })
  },
})

// svc3 vm commit
import { getImage } from '../../../api/images/images.ts'
import { commitVm, getVm } from '../../../api/vms/vms.ts'
import { isImageReference } from '../../../rules/image-reference.ts'
import { awaitChange } from '../../await-change.ts'
import { defineCommand, millisecondsOf, namespaced, printed } from '../../command.ts'
import { confirmLoss, yesOption } from '../../confirm.ts'
import { described } from '../image/options.ts'
import { followed, reportImage } from './parts/captured-image.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description:
    'Creates a new version of the image. Other VMs keep the old version; with Intel-based VMs, a commit is refused while other VMs\nuse the image. The VM pauses for a moment and resumes without a reboot. A terminal asks before a commit to a protected\nimage.',
  arguments: vmArgument,
  options: { ...described, ...followed, ...yesOption, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 vm commit demo', does: 'Start the commit; the image keeps its description' },
    {
      line: 'svc3 vm commit demo -d Tools --wait',
      does: 'Commit with a description, and wait until the image is Ready',
    },
  ],
  async run(context, { args: { vm }, options: { description, wait, timeout, yes } }) {
    const body = description === undefined ? {} : { description }
    const session = await context.connect({ attempts: 1 })
    const { client, namespace, sameTargetFlags } = session
    const { signal } = context
    await confirmLoss(context, {
      yes,
      question: async () => {
        const { image } = await client.call(getVm, { params: { namespace, vm }, signal })
        if (isImageReference(image)) return undefined
        const found = await client.call(getImage, { params: { namespace, image }, signal })
        return found.protected ? `Image ${image} is protected. Commit VM ${vm} to it?` : undefined
      },
      refused: `VM ${vm} not committed`,
    })
    const timeoutMs = millisecondsOf(timeout)
    const request = { timeoutMs, what: 'the commit', next: `To follow it: svc3 vm show ${vm}${sameTargetFlags}` }
    const image = await awaitChange(context, client, commitVm, { params: { namespace, vm }, body }, request)
    const what = `Committing VM ${vm} to`
    return reportImage(context, { session, image, isWaiting: wait, timeoutMs, what })
  },
})

// svc3 vm save
import { saveVm } from '../../../api/vms/vms.ts'
import { awaitChange } from '../../await-change.ts'
import { defineCommand, millisecondsOf, namespaced, printed } from '../../command.ts'
import { checkName, described } from '../image/options.ts'
import { followed, reportImage } from './parts/captured-image.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description:
    'Saves disk and memory, with running applications. The VM pauses for a moment and resumes without a reboot. VMs deployed\nfrom the image with the same CPU, memory and devices resume from this state.',
  arguments: {
    ...vmArgument,
    image: { value: 'IMAGE', description: 'name of the new image', names: 'new', required: true },
  },
  options: { ...described, ...followed, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 vm save demo demo-tools', does: 'Start the save; image list shows the progress' },
    {
      line: 'svc3 vm save demo demo-tools -d Tools --wait',
      does: 'Save with a description, and wait until the image is Ready',
    },
  ],
  async run(context, { args: { vm, image: name }, options: { description, wait, timeout } }) {
    const body = { imageName: checkName(name, 'image'), ...(description !== undefined && { description }) }
    const session = await context.connect({ attempts: 1 })
    const { client, namespace, sameTargetFlags } = session
    const timeoutMs = millisecondsOf(timeout)
    const request = { timeoutMs, what: 'the save', next: `To follow it: svc3 image list ${name}${sameTargetFlags}` }
    const image = await awaitChange(context, client, saveVm, { params: { namespace, vm }, body }, request)
    const what = `Saving VM ${vm} as`
    return reportImage(context, { session, image, isWaiting: wait, timeoutMs, what })
  },
})

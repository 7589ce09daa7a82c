// svc3 vm save
import { saveVm } from '../../../api/vms/vms.ts'
import { defineCommand, millisecondsOf, namespaced, printed } from '../../command.ts'
import { longRequest } from '../../long-request.ts'
import { checkName, described } from '../image/options.ts'
import { followed, tellOfImage } from './parts/captured-image.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description:
    'Disk and memory as they are now, with the applications that run. Restarts the VM: it is paused for a moment, and goes\non from where it was, not from a boot. VMs of the same shape resume from the image.',
  arguments: {
    ...vmArgument,
    image: { value: 'IMAGE', description: 'name of the new image', names: 'new', required: true },
  },
  options: { ...described, ...followed, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 vm save demo demo-tools', does: 'Answers at once; image list shows how far it is' },
    { line: 'svc3 vm save demo demo-tools -d Tools --wait', does: 'Until the image is Ready' },
  ],
  async run(context, { args: { vm, image: name }, options: { description, wait, timeout } }) {
    const body = { imageName: checkName(name, 'image'), ...(description !== undefined && { description }) }
    const { client, namespace } = await context.connect({ attempts: 1 })
    const timeoutMs = millisecondsOf(timeout)
    const request = { timeoutMs, lookAgain: `image list ${name}` }
    const image = await longRequest(context, client, saveVm, { params: { namespace, vm }, body }, request)
    const what = `VM ${vm} is being saved as`
    return tellOfImage(context, { client, namespace, image, isWaiting: wait, timeoutMs, what })
  },
})

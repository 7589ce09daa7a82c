// svc3 vm save
import { saveVm } from '../../../api/vms.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { longRequest } from '../../long-request.ts'
import { checkName, described } from '../images/options.ts'
import { followed, requestMs, tellOfImage } from './captured-image.ts'
import { vmArgument } from './vm-argument.ts'

export const command = defineCommand({
  description:
    'Disk and memory as they are in one moment; the VM goes on. A VM of the same shape that is deployed from the image ' +
    'goes on from there, with its applications running.',
  arguments: { ...vmArgument, image: { value: 'IMAGE', description: 'name of the new image', required: true } },
  options: { ...described, ...followed, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 vm save demo demo-tools', does: 'Answers at once; svc3 image list demo-tools shows how far it is' },
    { line: 'svc3 vm save demo demo-tools -d "With tools" --wait', does: 'Until the image is Ready' },
  ],
  async run(context, { args: { vm, image: name }, options: { description, wait } }) {
    const body = { imageName: checkName(name, 'image'), ...(description !== undefined && { description }) }
    const { client, namespace } = await context.connect({ attempts: 1 })
    const request = { timeoutMs: requestMs, lookAgain: `image list ${name}` }
    const image = await longRequest(context, client, saveVm, { params: { namespace, vm }, body }, request)
    return tellOfImage(context, { client, namespace, image, isWaiting: wait, what: `VM ${vm} is being saved as` })
  },
})

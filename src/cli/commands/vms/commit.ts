// svc3 vm commit
import { commitVm } from '../../../api/vms.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { longRequest } from '../../long-request.ts'
import { described } from '../images/options.ts'
import { followed, requestMs, tellOfImage } from './captured-image.ts'
import { vmArgument } from './vm-argument.ts'

export const command = defineCommand({
  description:
    'A new version of the image that the VM was deployed from; VMs that run on the old one keep it. Refused for ' +
    'Intel-based VMs while another VM uses the image.',
  arguments: vmArgument,
  options: { ...described, ...followed, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 vm commit demo', does: 'Answers at once; the image keeps its description' },
    { line: 'svc3 vm commit demo -d "With tools" --wait', does: 'Until the new version is there' },
  ],
  async run(context, { args: { vm }, options: { description, wait } }) {
    const body = description === undefined ? {} : { description }
    const { client, namespace } = await context.connect({ attempts: 1 })
    const request = { timeoutMs: requestMs, lookAgain: `vm list ${vm} -o wide -n ${namespace}` }
    const image = await longRequest(context, client, commitVm, { params: { namespace, vm }, body }, request)
    return tellOfImage(context, { client, namespace, image, isWaiting: wait, what: `VM ${vm} is being committed to` })
  },
})

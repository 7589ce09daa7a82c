// svc3 vm commit
import { commitVm } from '../../../api/vms/vms.ts'
import { defineCommand, millisecondsOf, namespaced, printed } from '../../command.ts'
import { longRequest } from '../../long-request.ts'
import { described } from '../image/options.ts'
import { followed, tellOfImage } from './parts/captured-image.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description:
    'A new version of its image; other VMs keep the old one. Intel: refused while there are others. Restarts the VM: it is\npaused for a moment, and goes on from where it was, not from a boot.',
  arguments: vmArgument,
  options: { ...described, ...followed, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 vm commit demo', does: 'Answers at once; the image keeps its description' },
    { line: 'svc3 vm commit demo -d Tools --wait', does: 'Until the new version is there' },
  ],
  async run(context, { args: { vm }, options: { description, wait, timeout } }) {
    const body = description === undefined ? {} : { description }
    const { client, namespace } = await context.connect({ attempts: 1 })
    const timeoutMs = millisecondsOf(timeout)
    const request = { timeoutMs, lookAgain: `vm list ${vm} -o wide -n ${namespace}` }
    const image = await longRequest(context, client, commitVm, { params: { namespace, vm }, body }, request)
    const what = `VM ${vm} is being committed to`
    return tellOfImage(context, { client, namespace, image, isWaiting: wait, timeoutMs, what })
  },
})

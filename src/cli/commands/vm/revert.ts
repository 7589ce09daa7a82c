// svc3 vm revert
import { defineCommand, namespaced, printed, waiting } from '../../command.ts'
import { confirmLoss, yesOption } from '../../confirm.ts'
import { changePower } from './parts/power.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description:
    'Intel-based VMs only. Stops the VM and starts it from the latest version of its image. Changes on its disk that were not\nsaved or committed are lost.',
  arguments: vmArgument,
  options: { ...yesOption, ...waiting, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 vm revert demo', does: 'Go back to the latest version of the image' },
    { line: 'svc3 vm revert demo --yes', does: 'The same, without a question' },
  ],
  async run(context, { args, options }) {
    await confirmLoss(context, {
      yes: options.yes,
      question: () => `Revert VM ${args.vm} to its image? All changes on its disk are lost.`,
      refused: `VM ${args.vm} not reverted`,
    })
    return changePower(context, args.vm, 'revert', options.timeout)
  },
})

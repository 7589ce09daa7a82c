// svc3 vm start, stop, suspend, resume and revert
import { execVm, type vmCommands } from '../../../api/vms/vms.ts'
import { awaitChange } from '../../await-change.ts'
import { type Context, defineCommand, millisecondsOf, namespaced, printed, waiting } from '../../command.ts'
import { confirmLoss, yesOption } from '../../confirm.ts'
import { whileFollowing } from './parts/follow.ts'
import { vmArgument } from './parts/vm-argument.ts'

type PowerCommand = (typeof vmCommands)[number]

const outcomes: Readonly<Record<PowerCommand, string>> = {
  start: 'started',
  stop: 'is stopped (STATUS stays Running; see POWER)',
  suspend: 'is suspended (STATUS stays Running; see POWER)',
  resume: 'resumed',
  revert: 'reverted to its image',
}

/** `minutes` is how long the answer is waited for. */
export async function changePower(
  context: Context,
  name: string,
  power: PowerCommand,
  minutes: number,
): Promise<number> {
  const { client, namespace, sameTargetFlags } = await context.connect({ attempts: 1 })
  const input = { params: { namespace, vm: name }, body: { command: power } }
  const next = `To follow it: svc3 vm show ${name}${sameTargetFlags}`
  const request = { timeoutMs: millisecondsOf(minutes), what: `the ${power}`, next }
  const vm = await whileFollowing(context, { client, namespace, name }, (onRetry) =>
    awaitChange(context, client, execVm, input, { ...request, onRetry }),
  )
  await context.done(`VM ${name} ${outcomes[power]}.`, vm)
  return 0
}

const start = defineCommand({
  description: 'Intel-based VMs only. To reboot a VM, stop it and start it; its disk is kept.',
  arguments: vmArgument,
  options: { ...waiting, ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm start demo', does: 'Start a stopped VM' }],
  run: (context, { args, options }) => changePower(context, args.vm, 'start', options.timeout),
})

const stop = defineCommand({
  description: 'Intel-based VMs only. The guest is asked to shut down, and powered off if it does not.',
  arguments: vmArgument,
  options: { ...waiting, ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm stop demo', does: 'Stop a VM; its disk is kept' }],
  run: (context, { args, options }) => changePower(context, args.vm, 'stop', options.timeout),
})

const suspend = defineCommand({
  description: 'Intel-based VMs only. Pauses the guest without shutting it down.',
  arguments: vmArgument,
  options: { ...waiting, ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm suspend demo', does: 'Suspend a VM' }],
  run: (context, { args, options }) => changePower(context, args.vm, 'suspend', options.timeout),
})

const resume = defineCommand({
  description: 'Intel-based VMs only. The guest continues where it was suspended.',
  arguments: vmArgument,
  options: { ...waiting, ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm resume demo', does: 'Resume a suspended VM' }],
  run: (context, { args, options }) => changePower(context, args.vm, 'resume', options.timeout),
})

const revert = defineCommand({
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

export const commands = {
  start,
  stop,
  suspend,
  resume,
  revert,
}

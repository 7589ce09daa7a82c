// svc3 vm start, stop, suspend, resume and revert
import { execVm, type vmCommands } from '../../../api/vms/vms.ts'
import { awaitChange } from '../../await-change.ts'
import { type Command, defineCommand, millisecondsOf, namespaced, printed, waiting } from '../../command.ts'
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

interface PowerText {
  readonly description: string
  readonly does: string
  /** Asked on a terminal, if the change loses data. */
  readonly question?: (vm: string) => string
}

const powerCommand = (power: PowerCommand, { description, does, question }: PowerText): Command =>
  defineCommand({
    description: `Intel-based VMs only. ${description}`,
    arguments: vmArgument,
    options: { ...((question ? yesOption : {}) as typeof yesOption), ...waiting, ...namespaced, ...printed },
    examples: [
      { line: `svc3 vm ${power} demo`, does },
      ...(question ? [{ line: `svc3 vm ${power} demo --yes`, does: 'The same, without a question' }] : []),
    ],
    async run(context, { args: { vm: name }, options: { timeout, yes } }) {
      if (question)
        await confirmLoss(context, { yes, question: () => question(name), refused: `VM ${name} not ${power}ed` })
      const { client, namespace, sameTargetFlags } = await context.connect({ attempts: 1 })
      const input = { params: { namespace, vm: name }, body: { command: power } }
      const next = `To follow it: svc3 vm show ${name}${sameTargetFlags}`
      const request = { timeoutMs: millisecondsOf(timeout), what: `the ${power}`, next }
      const vm = await whileFollowing(context, { client, namespace, name }, (onRetry) =>
        awaitChange(context, client, execVm, input, { ...request, onRetry }),
      )
      await context.done(`VM ${name} ${outcomes[power]}.`, vm)
    },
  })

export const commands = {
  start: powerCommand('start', {
    description: 'To reboot a VM, stop it and start it; its disk is kept.',
    does: 'Start a stopped VM',
  }),
  stop: powerCommand('stop', {
    description: 'The guest is asked to shut down, and powered off if it does not.',
    does: 'Stop a VM; its disk is kept',
  }),
  suspend: powerCommand('suspend', {
    description: 'Pauses the guest without shutting it down.',
    does: 'Suspend a VM',
  }),
  resume: powerCommand('resume', {
    description: 'The guest continues where it was suspended.',
    does: 'Resume a suspended VM',
  }),
  revert: powerCommand('revert', {
    description:
      'Stops the VM and starts it from the latest version of its image. Changes on its disk that were not saved or committed are lost.',
    does: 'Go back to the latest version of the image',
    question: (vm) => `Revert VM ${vm} to its image? All changes on its disk are lost.`,
  }),
}

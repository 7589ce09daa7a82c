// svc3 vm resize
import { resizeVm, type Vm } from '../../../api/vms/vms.ts'
import { type Context, defineCommand, millisecondsOf, namespaced, printed, waiting } from '../../command.ts'
import { choosePassword } from '../../connect/password.ts'
import { exitCodes, UsageError } from '../../line/usage.ts'
import { longRequest } from '../../long-request.ts'
import { visible } from '../../output/output.ts'
import { whileFollowing } from './parts/follow.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description: 'Enlarges the disk of a running VM and restarts it. Disks only grow.',
  arguments: {
    ...vmArgument,
    gb: { value: 'GB', description: 'new size of its disk in GB, a whole number', required: true },
  },
  options: {
    user: { type: 'string', short: 'u', value: 'USER', description: 'Intel: SSH user, to grow the file system, too' },
    password: {
      type: 'string',
      short: 'p',
      value: 'PASSWORD',
      secret: true,
      description: 'Intel: SSH password; others can see it in the list of processes',
    },
    'password-stdin': { type: 'boolean', description: 'Intel: read the SSH password from standard input' },
    timeout: { ...waiting.timeout, default: 15 },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 vm resize demo 120', does: 'A disk of 120 GB' },
    { line: 'svc3 vm resize demo 120 -u admin --password-stdin < password.txt', does: 'With its file system (Intel)' },
  ],
  async run(context, { args: { vm: name, gb }, options }) {
    const size = /^[1-9]\d{0,6}$/.test(gb) ? Number(gb) : undefined
    if (size === undefined)
      throw new UsageError(`"${gb}" is not a whole number of GB`, 'for example svc3 vm resize demo 120')
    const credentials = await credentialsOf(context, name, options)
    const { client, namespace } = await context.connect({ attempts: 1 })
    const input = { params: { namespace, vm: name }, body: { size, ...credentials } }
    const request = { timeoutMs: millisecondsOf(options.timeout), lookAgain: `vm list ${name} -o json -n ${namespace}` }
    const vm = await whileFollowing(context, { client, namespace, name }, () =>
      longRequest(context, client, resizeVm, input, request),
    )
    await context.done(`VM ${name} has a disk of ${vm.diskGb ?? size} GB.`, vm)
    return tellRest(context, vm, credentials !== undefined)
  },
})

interface CredentialOptions {
  readonly user: string | undefined
  readonly password: string | undefined
  readonly 'password-stdin': boolean
}

async function credentialsOf(context: Context, name: string, options: CredentialOptions) {
  const { user, password: given, 'password-stdin': fromStdin } = options
  if (user === undefined) {
    if (given === undefined && !fromStdin) return undefined
    throw new UsageError('a password needs a user', 'add --user USER')
  }
  const password = await choosePassword(context, { given, fromStdin, question: `Password of ${user} in vm ${name}: ` })
  return { user, password }
}

/** The disk has grown. What is left to do in an Intel-based guest, and why, the service tells. */
function tellRest(context: Context, { warning }: Vm, hadCredentials: boolean): number {
  if (warning === undefined) return exitCodes.done
  for (const line of warning.split('\n')) context.note(visible(line))
  // Who gave credentials asked for the file system, too.
  return hadCredentials ? exitCodes.failed : exitCodes.done
}

// svc3 vm resize
import { resizeVm, type Vm } from '../../../api/vms/vms.ts'
import { awaitChange } from '../../await-change.ts'
import { type Context, defineCommand, millisecondsOf, namespaced, printed, waiting } from '../../command.ts'
import { choosePassword } from '../../connect/password.ts'
import { exitCodes, UsageError } from '../../line/usage.ts'
import { visible } from '../../output/output.ts'
import { whileFollowing } from './parts/follow.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description: 'Enlarges the disk of a running VM and restarts the VM. Disks cannot shrink.',
  arguments: {
    ...vmArgument,
    gb: { value: 'SIZE', description: 'new disk size in GiB (GB means GiB), a whole number', required: true },
  },
  options: {
    user: { type: 'string', short: 'u', value: 'USER', description: 'SSH user, to also grow the file system (Intel)' },
    password: {
      type: 'string',
      short: 'p',
      value: 'PASSWORD',
      secret: true,
      description: 'SSH password (Intel); visible in the process list',
    },
    'password-stdin': { type: 'boolean', description: 'Read the SSH password from standard input (Intel)' },
    timeout: { ...waiting.timeout, default: 15 },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 vm resize demo 120', does: 'Enlarge the disk to 120 GiB' },
    {
      line: 'svc3 vm resize demo 120 -u admin --password-stdin < password.txt',
      does: 'Also grow the file system (Intel)',
    },
  ],
  async run(context, { args: { vm: name, gb }, options }) {
    const size = /^[1-9]\d{0,6}$/.test(gb) ? Number(gb) : undefined
    if (size === undefined)
      throw new UsageError(
        `Invalid size "${gb}": specify a whole number of GiB`,
        'For example: svc3 vm resize demo 120',
      )
    const credentials = await credentialsOf(context, name, options)
    const { client, namespace, sameTargetFlags } = await context.connect({ attempts: 1 })
    const input = { params: { namespace, vm: name }, body: { size, ...credentials } }
    const next = `To follow it: svc3 vm show ${name}${sameTargetFlags}`
    const request = { timeoutMs: millisecondsOf(options.timeout), what: 'the resize', next }
    const vm = await whileFollowing(context, { client, namespace, name }, (onRetry) =>
      awaitChange(context, client, resizeVm, input, { ...request, onRetry }),
    )
    await context.done(`The disk of VM ${name} is now ${vm.diskGb ?? size} GiB.`, vm)
    return reportRest(context, vm, credentials !== undefined)
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
    throw new UsageError('A password requires --user', 'Add --user USER')
  }
  const password = await choosePassword(context, { given, fromStdin, question: `Password for ${user} in VM ${name}: ` })
  return { user, password }
}

/** Prints what is left to do in an Intel-based guest, after its disk has grown. */
function reportRest(context: Context, { warning }: Vm, hadCredentials: boolean): number {
  if (warning === undefined) return exitCodes.done
  for (const line of warning.split('\n')) context.note(visible(line))
  // With credentials, the caller requested that the file system grows as well.
  return hadCredentials ? exitCodes.failed : exitCodes.done
}

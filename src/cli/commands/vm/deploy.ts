// svc3 vm deploy
import { ApiError } from '../../../api/errors.ts'
import { getImage } from '../../../api/images/images.ts'
import { imageStarts, type VmDeployment } from '../../../api/vms/vm-deployment.ts'
import { deployVm, type Vm } from '../../../api/vms/vms.ts'
import { defined } from '../../../platform/defined.ts'
import { retry, retryPolicies } from '../../../platform/retry.ts'
import { timeLeft } from '../../../rules/durations.ts'
import { isImageReference } from '../../../rules/image-reference.ts'
import { isVmName, nameSuffix, vmNameProblem, vmNameRule } from '../../../rules/names.ts'
import { parseReservedPorts } from '../../../rules/ports.ts'
import { awaitChange } from '../../await-change.ts'
import {
  type Context,
  defineCommand,
  millisecondsOf,
  namespaced,
  printed,
  type Session,
  waiting,
} from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import { visible } from '../../output/output.ts'
import { columns } from './parts/columns.ts'
import { estimate } from './parts/estimate.ts'
import { whileFollowing } from './parts/follow.ts'
import { pairsOf } from './parts/pairs.ts'
import { arrivalNotes, reachNotes } from './parts/reasons.ts'
import { requestedShape, shapeOptions } from './parts/shape.ts'
import { readUserdata } from './parts/userdata.ts'

export const command = defineCommand({
  description:
    'Waits until the VM runs. A VM that fails, or gets no node in time, is deleted. So is the VM of a command that ends early in a\n' +
    'pipe or with CI set, unless it runs within 90 seconds; Ctrl-C on a terminal keeps it.',
  arguments: {
    name: { value: 'NAME', description: 'up to 63 lowercase letters, digits and dashes; generated if empty' },
  },
  options: {
    name: { type: 'string', value: 'NAME', names: 'new', description: 'The same as the argument NAME' },
    image: {
      type: 'string',
      short: 'i',
      value: 'IMAGE',
      strays: true,
      description: 'Image name, or OCI reference (arm64)',
    },
    config: { type: 'string', value: 'CONFIG', description: 'VM configuration; other options override its values' },
    'generate-name': { type: 'boolean', description: 'Use NAME as a prefix and add five characters' },
    ...shapeOptions,
    ports: { type: 'string', short: 'p', value: 'NODE:VM[,…]', description: 'Node ports to forward to the VM' },
    metadata: {
      type: 'string',
      value: 'KEY=VALUE[,…]',
      repeatable: true,
      secret: true,
      description: 'Metadata that the guest can read',
    },
    userdata: { type: 'string', value: 'FILE', description: 'Script for the first boot; - for standard input' },
    'image-start': {
      type: 'choice',
      choices: imageStarts,
      description: 'Wait for the whole image, or start before all of it is on the node (default: set by the server)',
    },
    cold: { type: 'boolean', description: 'Boot from disk instead of resuming saved memory' },
    'no-warm': { type: 'boolean', description: 'Do not use a warm VM of a pool' },
    label: { type: 'string', value: 'KEY=VALUE[,…]', repeatable: true, description: 'Labels for the VM' },
    ttl: { type: 'duration', value: 'DURATION', description: 'Delete the VM after this time, such as 2h' },
    priority: {
      type: 'integer',
      value: 'N',
      min: -1_000,
      max: 1_000,
      description: 'Among your own VMs that wait: higher first (default 0)',
    },
    'on-quota': {
      type: 'choice',
      choices: ['wait', 'refuse'],
      default: 'wait',
      description: 'Over the quota of the namespace: wait, or fail',
    },
    ...waiting,
    wait: { type: 'boolean', description: 'Wait until done (default)' },
    'no-wait': { type: 'boolean', description: 'Return at once; a VM that fails is kept' },
    yes: { type: 'boolean', short: 'y', description: 'For scripts of Orka; a deploy asks nothing' },
    'dry-run': { type: 'boolean', description: 'Only show which node and image it would use' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 vm deploy demo -i tiny-amd64', does: 'Deploy a VM from an image' },
    {
      line: 'svc3 vm deploy ci --generate-name --config ios-build --ttl 2h',
      does: 'Deploy with a generated name, for two hours',
    },
    {
      line: 'svc3 vm deploy -i sonoma -c 4 -m 8 -p 9000:80 -o json',
      does: 'Choose size and a forwarded port, print JSON',
    },
  ],
  async run(context, { args, options }) {
    const { image, config: vmConfig, ttl } = options
    if (image === undefined && vmConfig === undefined)
      throw new UsageError('Specify --image or --config', 'Run svc3 image list to see the images')
    if (options.wait && options['no-wait']) throw new UsageError('Specify --wait or --no-wait, not both')
    if (options['tag-required'] && options.tag === undefined && vmConfig === undefined)
      throw new UsageError('--tag-required requires --tag', 'Add --tag TAG')
    const name = args.name ?? options.name
    if (options.name !== undefined && options.name !== name)
      throw new UsageError(`Two names specified: ${name} and --name ${options.name}`, 'Specify the name once')
    const isGenerated = name === undefined || options['generate-name']
    const prefix = checkPrefix(name ?? 'vm', isGenerated)
    const body = defined({
      image,
      vmConfig,
      ...requestedShape(options),
      reservedPorts: checkPorts(options.ports),
      customVMMetadata: pairsOf(options.metadata, { option: '--metadata', isSecret: true }),
      labels: pairsOf(options.label, { option: '--label' }),
      userdata: await readUserdata(context, options.userdata),
      imageStart: options['image-start'],
      ...(options.cold && { cold: true }),
      ...(options['no-warm'] && { noWarm: true }),
      ttl,
      priority: options.priority,
      timeout: options.timeout,
    }) satisfies VmDeployment
    const session = await context.connect({ attempts: 1 })
    if (options['dry-run']) return estimate(context, session, isGenerated ? body : { ...body, name: prefix })
    const how = {
      isWaiting: !options['no-wait'],
      timeoutMs: millisecondsOf(options.timeout) + graceMs,
      query: {
        ...(options['on-quota'] === 'refuse' && { onQuota: options['on-quota'] }),
        // A job that is killed cannot delete its VM. A person who presses Ctrl-C can.
        ...((!context.host.stderr.isTerminal || context.host.env.CI) &&
          !options['no-wait'] && { onDisconnect: 'delete' as const }),
      },
    }
    const vm = isGenerated
      ? await underFreeName(prefix, (name) => deploy(context, session, { ...body, name }, how))
      : await deploy(context, session, { ...body, name: prefix }, how)
    await context.print([vm], columns, '')
    if (context.isTalking) for (const line of [...arrivalNotes(vm), ...reachNotes(vm)]) context.note(visible(line))
    for (const line of vm.warning?.split('\n') ?? []) context.note(visible(line))
    if (context.isTalking && how.isWaiting) await noteImageWarning(context, session, vm.image)
  },
})

/** Prints the warning of the image, for instance why the VM will not boot. Ignores images that cannot be read. */
async function noteImageWarning(context: Context, { client, namespace }: Session, image: string): Promise<void> {
  if (isImageReference(image)) return
  const found = await client.call(getImage, { params: { namespace, image }, signal: context.signal }).catch(() => null)
  if (found?.warning !== undefined) context.note(visible(`Image ${image}: ${found.warning}`))
}

/** The client waits longer than the service, whose timeout reports the reasons. */
const graceMs = 30_000
const suffixLength = 5

interface How {
  readonly isWaiting: boolean
  readonly timeoutMs: number
  readonly query: { readonly onQuota?: 'refuse'; readonly onDisconnect?: 'delete' }
}

/**
 * Sends one request whose response comes when the VM runs. The service then knows that a caller waits, and deletes a VM
 * that fails. The progress comes from a watch, which needs the name, so the name is generated here.
 */
async function deploy(
  context: Context,
  { client, namespace, sameTargetFlags }: Session,
  body: VmDeployment & { readonly name: string },
  { isWaiting, timeoutMs, query }: How,
): Promise<Vm> {
  const { name } = body
  const { timeout = waiting.timeout.default } = body
  const within = query.onDisconnect === 'delete' ? '90 s' : timeLeft(timeout * 60)
  const fate = isWaiting ? `The VM is deleted unless it runs within ${within}. ` : ''
  const next = `${fate}To delete it now: svc3 vm delete ${name}${sameTargetFlags}`
  const request = { timeoutMs, what: 'the deploy', next }
  const params = { namespace }
  if (!isWaiting)
    return awaitChange(context, client, deployVm, { params, query: { ...query, wait: false }, body }, request)
  const announce = once(() => {
    // Scripts look for this exact line.
    if (context.isTalking) context.host.stderr.write(`Waiting for VM ${name} to be deployed.\n`)
  })
  // The line is delayed, so that it does not precede a refusal.
  const timer = setTimeout(announce, silentMs)
  try {
    const followed = { client, namespace, name, onStep: announce }
    return await whileFollowing(context, followed, async (onRetry) => {
      const vm = await awaitChange(context, client, deployVm, { params, query, body }, { ...request, onRetry })
      announce()
      return vm
    })
  } finally {
    clearTimeout(timer)
  }
}

/** How long the announcement waits for a refusal. */
const silentMs = 3_000

function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) work()
    isDone = true
  }
}

function underFreeName(prefix: string, attempt: (name: string) => Promise<Vm>): Promise<Vm> {
  const randomName = () =>
    `${prefix}-${nameSuffix(Uint8Array.from({ length: suffixLength }, () => Math.random() * 256))}`
  const isTaken = (error: unknown): boolean => error instanceof ApiError && error.reason === 'AlreadyExists'
  return retry(() => attempt(randomName()), { policy: retryPolicies.conflict, isRetriable: isTaken })
}

function checkPrefix(name: string, isGenerated: boolean): string {
  const problem = vmNameProblem(name, isGenerated)
  if (problem === undefined) return name
  if (isGenerated && isVmName(name)) throw new UsageError(`Invalid name "${name}": ${problem}`, 'Choose a shorter name')
  throw new UsageError(`Invalid VM name ${isGenerated ? 'prefix ' : ''}"${name}"`, vmNameRule)
}

function checkPorts(text: string | undefined): string | undefined {
  const [cause] = text === undefined ? [] : parseReservedPorts(text).causes
  if (!cause) return text
  throw new UsageError(
    cause.message.replace(/^reservedPorts/, '--ports'),
    'Specify for example --ports 9000:80,5353:53/udp',
  )
}

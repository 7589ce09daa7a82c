// svc3 vm save and commit
import { getImage, listImages } from '../../../api/images/images.ts'
import type { ResponseOf } from '../../../api/operation.ts'
import { commitVm, getVm, saveVm } from '../../../api/vms/vms.ts'
import { defined } from '../../../platform/defined.ts'
import { isImageReference } from '../../../rules/image-reference.ts'
import { memorySaveText } from '../../../rules/memory-save.ts'
import { awaitChange } from '../../await-change.ts'
import {
  type Context,
  defineCommand,
  millisecondsOf,
  namespaced,
  type Options,
  printed,
  type Session,
  waitingLonger,
} from '../../command.ts'
import { confirmLoss, yesOption } from '../../confirm.ts'
import { followRecord } from '../../follow-record.ts'
import { Failure } from '../../line/usage.ts'
import { stepOf } from '../../output/progress.ts'
import { checkName, described } from '../image/options.ts'
import { vmArgument } from './parts/vm-argument.ts'

const followed = {
  wait: { type: 'boolean', description: 'Wait until the image is Ready' },
  ...waitingLonger,
} as const satisfies Options

interface CapturedImage {
  readonly session: Session
  readonly vm: string
  readonly image: ResponseOf<typeof saveVm>
  readonly isWaiting: boolean
  readonly timeoutMs: number
  /** The beginning of the message, before the name of the image. */
  readonly what: string
}

async function reportImage(context: Context, captured: CapturedImage): Promise<number> {
  const { session, vm, image, isWaiting, timeoutMs, what } = captured
  const { name, memory } = image
  const note = memorySaveText(vm, memory)
  if (note !== undefined) context.note(note)
  const look = `svc3 image list ${name}${session.sameTargetFlags}`
  if (!isWaiting) {
    await context.done(`${what} image ${name}. To follow it: ${look}`, image)
    return 0
  }
  const done = await followRecord(context, session, listImages, name, {
    label: `Image ${name}`,
    isDone: ({ state }) => state !== 'Updating',
    step: ({ errorMessage, progress }) => stepOf(errorMessage ?? 'saving', progress),
    timeout: { ms: timeoutMs, message: `Stopped waiting; image ${name} is not Ready yet` },
    what: 'the save',
    next: `To follow it: ${look}`,
  })
  if (!done) throw new Failure(`Image ${name} was deleted`, 'Save the VM again')
  const { client, namespace, sameTargetFlags } = session
  const ended = await client.call(getImage, { params: { namespace, image: name }, signal: context.signal })
  // After a failed commit, the image is unchanged and has the reason.
  if (ended.state === 'Failed' || ended.errorMessage !== undefined)
    throw new Failure(
      `Image ${name} failed: ${ended.errorMessage ?? 'no reason given'}`,
      `Run svc3 image show ${name}${sameTargetFlags} to see it`,
    )
  await context.done(`Image ${name} is Ready.`, ended)
  return 0
}

const save = defineCommand({
  description:
    'Saves disk and memory, with running applications. The VM is paused for a moment instead of restarted. VMs deployed\nfrom the image with the same CPU, memory and devices resume from this state. Memory is not saved for macOS, for VMs on Macs, and for VMs that\nboot by UEFI or have an ISO in their drive; the command says so at once.',
  arguments: {
    ...vmArgument,
    image: { value: 'IMAGE', description: 'name of the new image', names: 'new', required: true },
  },
  options: { ...described, ...followed, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 vm save demo demo-tools', does: 'Start the save; image list shows the progress' },
    {
      line: 'svc3 vm save demo demo-tools -d Tools --wait',
      does: 'Save with a description, and wait until the image is Ready',
    },
  ],
  async run(context, { args: { vm, image: name }, options: { description, wait, timeout } }) {
    const body = { imageName: checkName(name, 'image'), ...defined({ description }) }
    const session = await context.connect({ attempts: 1 })
    const { client, namespace, sameTargetFlags } = session
    const timeoutMs = millisecondsOf(timeout)
    const request = { timeoutMs, what: 'the save', next: `To follow it: svc3 image list ${name}${sameTargetFlags}` }
    const image = await awaitChange(context, client, saveVm, { params: { namespace, vm }, body }, request)
    const what = `Saving VM ${vm} as`
    return reportImage(context, { session, vm, image, isWaiting: wait, timeoutMs, what })
  },
})

const commit = defineCommand({
  description:
    'Creates a new version of the image. Other VMs keep the old version; with Intel-based VMs, a commit is refused while other VMs\nuse the image. The VM is paused for a moment instead of restarted. A terminal asks before a commit to a protected\nimage. Memory is not saved for macOS, for VMs on Macs, and for VMs that boot by UEFI or have an ISO in their drive; the\ncommand says so at once.',
  arguments: vmArgument,
  options: { ...described, ...followed, ...yesOption, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 vm commit demo', does: 'Start the commit; the image keeps its description' },
    {
      line: 'svc3 vm commit demo -d Tools --wait',
      does: 'Commit with a description, and wait until the image is Ready',
    },
  ],
  async run(context, { args: { vm }, options: { description, wait, timeout, yes } }) {
    const body = defined({ description })
    const session = await context.connect({ attempts: 1 })
    const { client, namespace, sameTargetFlags } = session
    const { signal } = context
    await confirmLoss(context, {
      yes,
      question: async () => {
        const { image, memorySave } = await client.call(getVm, { params: { namespace, vm }, signal })
        if (isImageReference(image)) return undefined
        const found = await client.call(getImage, { params: { namespace, image }, signal })
        const note = memorySaveText(vm, memorySave)
        const question = `Image ${image} is protected. Commit VM ${vm} to it?`
        return found.protected ? `${note === undefined ? '' : `${note}. `}${question}` : undefined
      },
      refused: `VM ${vm} not committed`,
    })
    const timeoutMs = millisecondsOf(timeout)
    const request = { timeoutMs, what: 'the commit', next: `To follow it: svc3 vm show ${vm}${sameTargetFlags}` }
    const image = await awaitChange(context, client, commitVm, { params: { namespace, vm }, body }, request)
    const what = `Committing VM ${vm} to`
    return reportImage(context, { session, vm, image, isWaiting: wait, timeoutMs, what })
  },
})

export const commands = {
  save,
  commit,
}

// Fails captures that can never finish, because the VM was deleted, its node was silent for an hour, or a server died
// before it updated the VM. Removes finished captures from VMs, and notes on the image that the node does not respond.
import { timestamp } from '../platform/clock.ts'
import { createSlices } from '../platform/event-loop.ts'
import type { Loop } from '../platform/loop.ts'
import { lostNodeSeconds } from '../rules/retention.ts'
import { changeCaptured, dropCapture, failImage, isWaitedFor } from '../store/records/captures.ts'
import type { ImageRecord, NodeRecord } from '../store/records/fleet-records.ts'
import { changePushJob, isFinished } from '../store/records/push-jobs.ts'
import { type Controller, startController } from './controller.ts'

const everyMs = 20_000
/** A request writes the image or job first, then the VM. After this time, a client has repeated an interrupted one. */
const requestMs = 30_000
/** How long nodes have to connect after a change of the leader. */
const returnMs = 120_000

export function settleCaptures(controller: Controller): Loop {
  const { collections, log } = controller
  const startMs = performance.now()
  return startController(controller, 'settle-captures', {
    everyMs,
    run: async () => {
      const count = await settleOnce(controller, performance.now() - startMs)
      if (count > 0) log.info('gave up captures that cannot finish', { count })
    },
    follow: (loop) => [
      collections.vms.view.subscribe((changes) => {
        if (changes.some((change) => change.type === 'delete' && change.previous.value.captures)) loop.nudge()
      }),
    ],
  })
}

/** Returns how many captures were failed. `upMs` is how long this server has been the leader. */
export async function settleOnce({ collections, clock }: Omit<Controller, 'log'>, upMs = Infinity): Promise<number> {
  const { images, nodes, pushJobs, vms } = collections
  const now = clock.now()
  const at = timestamp(now)
  let count = 0
  for (const { value: image } of images.list()) {
    const { capture, name } = image
    if (!capture) continue
    const problem = problemOf(capture.vm, capture)
    const captured = { ...capture, image: name }
    if (problem === undefined) {
      const note = noteOf(image, lostNodeOf(capture.vm))
      if (note !== image.errorMessage)
        await changeCaptured(collections, captured, ({ errorMessage: _, ...record }) => ({
          ...record,
          ...(note !== undefined && { errorMessage: note }),
        }))
    } else if (await failImage(collections, captured, problem, at)) count += 1
  }
  for (const { key, value: job } of pushJobs.list()) {
    if (isFinished(job)) continue
    const vm = { namespace: job.namespace, name: job.vm, uid: job.vmUid }
    const problem = problemOf(vm, { id: job.capture, requestedAt: job.startedAt })
    if (problem === undefined) continue
    const failed = { status: 'Failed', errorMessage: problem, finishedAt: at } as const
    if (await changePushJob(pushJobs, key, () => failed)) count += 1
  }
  const yieldToOthers = createSlices()
  for (const vm of vms.each()) {
    await yieldToOthers()
    for (const capture of vm.value.captures ?? [])
      if (!isWaitedFor(collections, vm.value.namespace, capture)) await dropCapture(collections, vm, capture.id)
  }
  return count

  /** Returns why the capture can never finish; undefined while it may. */
  function problemOf({ namespace, name, uid }: Captured, { id, requestedAt }: Awaited): string | undefined {
    const record = vms.get(namespace, name)?.value
    if (record?.uid !== uid) return `VM ${name} was removed before the save finished; nothing was kept`
    const isUnderWay = Math.min(upMs, now.getTime() - Date.parse(requestedAt)) < requestMs
    const isTold = record.captures?.some((capture) => capture.id === id)
    if (!isUnderWay && !isTold) return 'The server was interrupted before the save started; try again'
    const node = lostNodeOf({ namespace, name, uid })
    if (node?.lastSeenAt === undefined || upMs < returnMs || now.getTime() < givenUpMs(node.lastSeenAt))
      return undefined
    return `Node ${node.name} has not responded since ${node.lastSeenAt}, before it had sent all of VM ${name}; try again when it is back`
  }

  /** The node of a VM if it does not respond. */
  function lostNodeOf({ namespace, name, uid }: Captured): NodeRecord | undefined {
    const record = vms.get(namespace, name)?.value
    const node = record?.uid === uid && record.place ? nodes.get('', record.place.node)?.value : undefined
    return node?.isReady === false ? node : undefined
  }
}

const givenUpMs = (lastSeenAt: string): number => Date.parse(lastSeenAt) + lostNodeSeconds * 1_000

/** Returns a note for users who wait for the image: when the save is given up, and how to give up now. */
function noteOf({ name, capture }: ImageRecord, node: NodeRecord | undefined): string | undefined {
  if (!node || !capture || node.lastSeenAt === undefined) return undefined
  const ways = {
    save: `svc3 image delete ${name}`,
    commit: `svc3 vm delete ${capture.vm.name} -n ${capture.vm.namespace} --force`,
  } as const
  const end = timestamp(new Date(givenUpMs(node.lastSeenAt)))
  return `Node ${node.name} has not responded since ${node.lastSeenAt}. The save continues when it is back and is given up at ${end}. To give up now: ${ways[capture.kind]}`
}

interface Captured {
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

interface Awaited {
  readonly id: string
  readonly requestedAt: string
}

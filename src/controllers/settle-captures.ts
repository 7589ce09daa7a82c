// Images and push jobs that wait for what nobody will bring: their VM is gone, or a server died before it told the VM. And VMs that name
// what has come to its end. Looks when a VM that was being captured is gone, and every now and then.
import { timestamp } from '../platform/clock.ts'
import { type Loop, startLoop } from '../platform/loop.ts'
import { dropCapture, failImage, isWaitedFor } from '../store/captures.ts'
import { changePushJob, isOver } from '../store/push-jobs.ts'
import type { Controller } from './controller.ts'

const everyMs = 20_000
/** A request writes the image or the job first, and then the VM. */
const requestMs = 30_000

export function settleCaptures(controller: Controller): Loop {
  const { collections, log } = controller
  const loop = startLoop({
    everyMs,
    failed: (error) => log.error('settle-captures failed and will run again', {}, error),
    run: async () => {
      const count = await settleOnce(controller)
      if (count > 0) log.info('captures that nobody will finish were given up', { count })
    },
  })
  const unsubscribe = collections.vms.view.subscribe((changes) => {
    if (changes.some((change) => change.type === 'delete' && change.previous.value.captures)) loop.nudge()
  })
  return {
    nudge: loop.nudge,
    stop: async () => {
      unsubscribe()
      await loop.stop()
    },
  }
}

/** Returns how many were given up. */
export async function settleOnce({ collections, clock }: Omit<Controller, 'log'>): Promise<number> {
  const { images, pushJobs, vms } = collections
  const now = clock.now()
  const at = timestamp(now)
  let count = 0
  for (const { value: image } of images.list()) {
    const { capture, name } = image
    const problem = capture && problemOf(capture.vm, capture)
    if (!capture || problem === undefined) continue
    if (await failImage(collections, { ...capture, image: name }, problem, at)) count += 1
  }
  for (const { key, value: job } of pushJobs.list()) {
    if (isOver(job)) continue
    const vm = { namespace: job.namespace, name: job.vm, uid: job.vmUid }
    const problem = problemOf(vm, { id: job.capture, requestedAt: job.startedAt })
    if (problem === undefined) continue
    const failed = { status: 'Failed', errorMessage: problem, finishedAt: at } as const
    if (await changePushJob(pushJobs, key, () => failed)) count += 1
  }
  for (const vm of vms.list())
    for (const capture of vm.value.captures ?? [])
      if (!isWaitedFor(collections, vm.value.namespace, capture)) await dropCapture(collections, vm, capture.id)
  return count

  /** Why it will not come; undefined while it may. */
  function problemOf({ namespace, name, uid }: Captured, { id, requestedAt }: Awaited): string | undefined {
    const record = vms.get(namespace, name)?.value
    if (record?.uid !== uid) return `vm "${name}" was removed before all of it was there; nothing of it was kept`
    const isUnderWay = now.getTime() - Date.parse(requestedAt) < requestMs
    if (isUnderWay || record.captures?.some((capture) => capture.id === id)) return undefined
    return 'the server was interrupted before it could be begun; try again'
  }
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

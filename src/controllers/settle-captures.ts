// Images that wait for what nobody will bring: their VM is gone, or a server died before it told the VM. And VMs that name
// what has come to its end. Looks when a VM that was being captured is gone, and every now and then.
import { timestamp } from '../platform/clock.ts'
import { type Loop, startLoop } from '../platform/loop.ts'
import { dropCapture, failCaptured } from '../store/captures.ts'
import type { ImageCapture } from '../store/fleet-records.ts'
import type { Controller } from './controller.ts'

const everyMs = 20_000
/** A request writes the image first, and then the VM. */
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
  const { images, vms } = collections
  const now = clock.now()
  let count = 0
  for (const { value: image } of images.list()) {
    const { capture } = image
    if (!capture) continue
    const vm = vmOf(capture)
    if (vm?.captures?.some(({ id }) => id === capture.id)) continue
    const isUnderWay = vm !== undefined && now.getTime() - Date.parse(capture.requestedAt) < requestMs
    if (isUnderWay) continue
    const problem = vm
      ? 'the server was interrupted before it could be begun; try again'
      : `vm "${capture.vm.name}" was removed before it was saved; nothing of it was kept`
    if (await failCaptured(collections, { ...capture, image: image.name }, problem, timestamp(now))) count += 1
  }
  for (const vm of vms.list())
    for (const { id, image } of vm.value.captures ?? [])
      if (images.get('', image)?.value.capture?.id !== id) await dropCapture(collections, vm, id)
  return count

  function vmOf({ vm: { namespace, name, uid } }: ImageCapture) {
    const record = vms.get(namespace, name)?.value
    return record?.uid === uid ? record : undefined
  }
}

// Races in the worker of a single VM.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { it } from 'node:test'
import { desiredVm } from '../../../test/support/rigs/desired-vm.ts'
import { scriptedDriver, World } from '../../../test/support/stand-ins/scripted-driver.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import type { DesiredVm } from '../../api/nodes/agent.ts'
import type { BaseImage } from '../../drivers/driver.ts'
import { silentLog } from '../../platform/log.ts'
import type { ArrivalUser } from '../images/arrival.ts'
import { type Images, pretendImages } from '../images/images.ts'
import { Reports } from '../link/reports.ts'
import { openHandles } from '../state/handles.ts'
import { VmWorker } from './vm.ts'

it('a VM whose image becomes complete while the VM is being deleted leaves no record', async (t) => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-vm-'))
  const world = new World()
  const pretended = pretendImages()
  let user: ArrivalUser | undefined
  const arrive: Images['arrive'] = async (image, given, options) => {
    user = given
    return { ...(await pretended.arrive(image, given, options)), socket: path.join(folder, 'socket') }
  }
  const told: string[] = []
  const send = async (vms: readonly { readonly power: string }[]) => {
    told.push(...vms.map(({ power }) => power))
    return []
  }
  const reports = new Reports({ send, unknown: () => undefined, log: silentLog })
  t.after(async () => {
    await reports.stop()
    await fs.rm(folder, { recursive: true })
  })
  const tools = {
    // As with QEMU, the VM need not run.
    driver: { ...scriptedDriver(world, 'scripted'), arriving: { arrived: async () => undefined } },
    handles: openHandles(folder, 'scripted', 'synced'),
    images: { ...pretended, arrive },
    captures: { pending: () => [], isBusy: () => false, setDesired: () => undefined, forget: async () => undefined },
    isoFolder: folder,
    graceSeconds: 1,
    grow: async () => undefined,
  }
  const ended = Promise.withResolvers<string>()
  const context = { node: 'node-1', tools: tools as never, reports, log: silentLog, stopTimeoutMs: 50 }
  const worker = new VmWorker({ ...context, nodeChanged: () => undefined, ended: ended.resolve }, 'a', 'new')
  const want = (change: Partial<DesiredVm>): void =>
    worker.setDesired(
      { ...desiredVm('a'), imageStart: 'lazy', ...change },
      { store: 's', node: 'n', isNewest: true, isReset: false },
    )
  want({ generation: 1 })
  await eventually(() => assert.equal(told.at(-1), 'running'))
  assert.ok(existsSync(path.join(folder, 'vms', 'a')))
  const destroying = world.block('destroy')
  want({ generation: 2, power: 'deleted' })
  await destroying.reached
  const arrived = user?.arrived({} as BaseImage)
  destroying.release()
  await Promise.all([arrived, ended.promise])
  assert.equal(existsSync(path.join(folder, 'vms', 'a')), false)
})

// Ends a VM's process, gently first, and removes what it leaves.
import { failpoint } from '../../platform/failpoint.ts'
import { hostBootId, type ProcessId, waitForEnd } from '../../platform/processes.ts'
import type { StopOptions } from '../driver.ts'
import { endBySignals, endMs, recordEnding } from '../supervised.ts'
import { askToPowerDown, type Control } from './control/control.ts'
import { forgetRun, type QemuRun, readRun, removeRuntime, runtimeFolder, writeRun } from './control/run.ts'
import { removeMetadata } from './network/metadata.ts'
import { endUplink } from './network/uplink.ts'
import { waitForSupervisor } from './supervisor.ts'

export async function endRun(
  folder: string,
  control: Control,
  run: QemuRun,
  process: ProcessId,
  grace: StopOptions = { graceSeconds: 0 },
): Promise<void> {
  const ending: QemuRun = { ...run, bootId: await hostBootId(), process, isEnding: true }
  await recordEnding(writeRun(folder, ending))
  failpoint('qemu-ending')
  const qmp = await control.connect(run.runtime).catch(() => undefined)
  if (qmp) {
    await askToPowerDown(qmp, grace).catch(() => undefined)
    await qmp.execute('quit').catch(() => undefined)
    if (await waitForEnd(process, endMs)) return
  }
  await endBySignals(process, ['SIGTERM', 'SIGKILL'])
}

export async function clearRun(folder: string): Promise<void> {
  const run = await readRun(folder)
  const runtime = run?.runtime ?? runtimeFolder(folder)
  if (run) await waitForSupervisor(folder, run)
  await endUplink(runtime)
  await removeRuntime(runtime)
  await removeMetadata(folder)
  failpoint('qemu-cleared')
  await forgetRun(folder)
}

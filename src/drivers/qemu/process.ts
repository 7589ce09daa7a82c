// The QEMU process of one VM, found by its record in the VM's folder and reached over its control socket.
import { exclusively } from '../../platform/parallel.ts'
import { waitForEnd } from '../../platform/processes.ts'
import type { Observed, StopOptions } from '../driver.ts'
import type { Running } from '../supervised.ts'
import type { ControlledVm } from './captures/capture.ts'
import type { Control } from './control/control.ts'
import { type QemuRun, readRun } from './control/run.ts'
import { endRun } from './ending.ts'
import { findRunning } from './supervisor.ts'

/** How long a process that no longer answers may take to exit. */
const exitMs = 300

export type RunningQemu = Running<QemuRun>

export class QemuProcess {
  readonly folder: string
  readonly control: Control

  constructor(folder: string, control: Control) {
    this.folder = folder
    this.control = control
  }

  /** Only one piece of work per VM runs at a time in this process. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    return exclusively(this.folder, work)
  }

  async find(): Promise<RunningQemu | undefined> {
    return findRunning(this.folder, await readRun(this.folder))
  }

  async connect({ runtime }: QemuRun): Promise<ControlledVm> {
    return { qmp: await this.control.connect(runtime), runtime }
  }

  /** Undefined if the process has ended. One that lives and does not answer is running. */
  async observe({ run, process }: RunningQemu): Promise<Observed | undefined> {
    const observed = await this.control.observe(run.runtime)
    if (observed || (await waitForEnd(process, exitMs))) return observed
    return { state: 'running' }
  }

  end({ run, process }: RunningQemu, grace?: StopOptions): Promise<void> {
    return endRun(this.folder, this.control, run, process, grace)
  }
}

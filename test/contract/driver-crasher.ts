// A process that does one thing with a driver (QEMU's, unless the task says otherwise), to be killed on the way:
// node driver-crasher.ts start|stop|park|revert|capture|merge FILE [ID].
import fs from 'node:fs/promises'
import { AppleDriver, type AppleOptions } from '../../src/drivers/apple/driver.ts'
import type { Handle, VmSpec } from '../../src/drivers/driver.ts'
import { QemuDriver, type QemuOptions } from '../../src/drivers/qemu/driver.ts'

interface Task {
  readonly handle: Handle
  readonly vm: VmSpec
  readonly options?: QemuOptions
  readonly apple?: AppleOptions
}

const [step, file = '', id = ''] = process.argv.slice(2)
const { handle, vm, options, apple } = JSON.parse(await fs.readFile(file, 'utf8')) as Task
const driver = apple ? new AppleDriver(apple) : new QemuDriver(options)
const signal = AbortSignal.timeout(120_000)
if (step === 'start') await driver.start(handle, vm, signal)
else if (step === 'stop') await driver.stop(handle, { graceSeconds: 0 })
else if (step === 'park' && driver instanceof QemuDriver) await driver.warm?.park(handle, signal)
else if (step === 'capture') await driver.capturing.capture(handle, vm, { id, withMemory: true }, signal)
else if (step === 'merge') {
  await driver.capturing.capture(handle, vm, { id, withMemory: false }, signal)
  // The next steps run beside it.
  await new Promise((resolve) => setTimeout(resolve, 20_000))
} else await driver.reverting.revert(handle, vm)
process.exit(0)

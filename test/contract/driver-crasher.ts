// A process that does one thing with the QEMU driver, to be killed on the way: node driver-crasher.ts start|stop|revert FILE.
import fs from 'node:fs/promises'
import type { Handle, VmSpec } from '../../src/drivers/driver.ts'
import { QemuDriver } from '../../src/drivers/qemu/driver.ts'

const [step, file = ''] = process.argv.slice(2)
const { handle, vm } = JSON.parse(await fs.readFile(file, 'utf8')) as { handle: Handle; vm: VmSpec }
const driver = new QemuDriver()
if (step === 'start') await driver.start(handle, vm, AbortSignal.timeout(20_000))
else if (step === 'stop') await driver.stop(handle, { graceSeconds: 0 })
else await driver.reverting.revert(handle, vm)
process.exit(0)

// The simulated driver keeps the contract.
import path from 'node:path'
import type { Handle, VmSpec } from '../../src/drivers/driver.ts'
import { SimulatedDriver } from '../../src/drivers/simulated.ts'
import { KeyedLog } from '../../src/platform/keyed-log.ts'
import { driverContract } from './driver.ts'

driverContract('simulated', {
  open: () => new SimulatedDriver(),
  architecture: 'arm64',
  image: async (_, digest): Promise<VmSpec['image']> => ({
    name: 'blank',
    digest,
    disk: '/nowhere',
    format: 'raw',
    virtualSizeBytes: 64 * 2 ** 20,
    boot: { kind: 'firmware' },
  }),
  crash: async (driver, handle) => {
    await driver.crash(handle, 'simulated crash')
    return /simulated crash/
  },
  reboot: async (_, handle) => {
    const log = logOf(handle)
    const name = path.basename(handle.folder)
    log.set(name, { power: '', ...log.get(name), bootId: 'an earlier boot' })
    log.close()
  },
  processes: async (handle) => (['running', 'suspended'].includes(stateOf(handle)?.power ?? '') ? 1 : 0),
  traces: async (handle) => (stateOf(handle) ? ['simulated.jsonl'] : []),
})

const logOf = ({ folder }: Handle) =>
  new KeyedLog<{ power: string; bootId?: string }>(path.dirname(folder), 'simulated')
const stateOf = (handle: Handle) => logOf(handle).get(path.basename(handle.folder))

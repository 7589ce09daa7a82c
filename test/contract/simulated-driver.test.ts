// The simulated driver keeps the contract.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Handle, VmSpec } from '../../src/drivers/driver.ts'
import { SimulatedDriver } from '../../src/drivers/simulated.ts'
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
    const file = stateFile(handle)
    const text = await fs.readFile(file, 'utf8')
    await fs.writeFile(file, JSON.stringify({ ...JSON.parse(text), bootId: 'an earlier boot' }))
  },
  processes: async (handle) => {
    const text = await fs.readFile(stateFile(handle), 'utf8').catch(() => '{}')
    return ['running', 'suspended'].includes(JSON.parse(text).power) ? 1 : 0
  },
  traces: async () => [],
})

const stateFile = ({ folder }: Handle): string => path.join(folder, 'simulated.json')

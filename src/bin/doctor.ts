// `svc3 agent doctor`: which checks are made of this host, for the driver that it is to use.
import path from 'node:path'
import {
  type Check,
  examine,
  firmwareCheck,
  folderCheck,
  hypervisorCheck,
  limitsCheck,
  macosCheck,
  nodeCheck,
  portsCheck,
  sizeCheck,
  sleepCheck,
  spaceCheck,
  virtualisationCheck,
} from '../agent/doctor.ts'
import { serverChecks } from '../agent/doctor-server.ts'
import type { DoctorCheck, DoctorOptions, DriverName } from '../cli/programs.ts'
import { openDriver } from '../drivers/index.ts'
import { exec } from '../platform/exec.ts'
import { agentSettingsFile, readAgentSettings } from './agent-settings.ts'
import { remembered } from './remembered-urls.ts'
import { version } from './version.ts'

/** What only one of them needs. */
const own: Readonly<Partial<Record<DriverName, (options: DoctorOptions) => readonly Check[]>>> = {
  qemu: ({ configFile, dataDir }) => [
    virtualisationCheck,
    firmwareCheck,
    macosCheck(async () => {
      const file = configFile ?? path.join(dataDir, agentSettingsFile)
      return (await readAgentSettings(file, configFile !== undefined)).macos
    }),
  ],
}

const askPmset = async (): Promise<string> => (await exec('pmset', ['-g'], { timeoutMs: 10_000 })).stdout

export async function runDoctor(options: DoctorOptions): Promise<readonly DoctorCheck[]> {
  const { dataDir, network, signal } = options
  const driver = openDriver(options.driver, options.driver === 'qemu' ? { network } : {})
  const known = await remembered(dataDir)
  const apiUrls = options.apiUrls.length > 0 ? options.apiUrls : known.apiUrls
  try {
    return await examine(
      [
        nodeCheck(process.versions.node),
        hypervisorCheck(driver),
        ...(own[options.driver]?.(options) ?? []),
        ...(process.platform === 'darwin' ? [sleepCheck(askPmset)] : []),
        sizeCheck,
        folderCheck(dataDir),
        spaceCheck(dataDir),
        portsCheck,
        limitsCheck,
        ...serverChecks(apiUrls, options.trust(apiUrls, known.pin), version),
      ],
      signal,
    )
  } finally {
    await driver.close()
  }
}

// `svc3 agent doctor`: which checks are made of this host, for the driver that it is to use.
import fs from 'node:fs/promises'
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
  spaceCheck,
  virtualisationCheck,
} from '../agent/doctor/doctor.ts'
import { type Ask, macCheck, sleepCheck, softnetCheck } from '../agent/doctor/mac.ts'
import { serverChecks } from '../agent/doctor/server.ts'
import type { DoctorCheck, DoctorOptions, DriverName } from '../cli/programs.ts'
import { version } from '../control-plane/version.ts'
import type { Driver } from '../drivers/driver.ts'
import { openDriver } from '../drivers/index.ts'
import { findProgram } from '../drivers/qemu/probe.ts'
import { exec } from '../platform/exec.ts'
import { type AgentSettings, agentSettingsFile, appleNetwork, readAgentSettings } from './agent-settings.ts'
import { remembered } from './remembered-urls.ts'

const settingsOf = ({ configFile, dataDir }: DoctorOptions): Promise<AgentSettings> =>
  readAgentSettings(configFile ?? path.join(dataDir, agentSettingsFile), configFile !== undefined)

const ask: Ask = async (program, ...words) => (await exec(program, words, { timeoutMs: 10_000 })).stdout

async function findSoftnet() {
  const found = await findProgram('softnet')
  if (!found) return undefined
  // What brew puts into PATH is a link.
  const file = await fs.realpath(found.path)
  const { mode, uid } = await fs.stat(file)
  return { path: file, mode, uid }
}

/** What only one of them needs. */
const own: Readonly<Partial<Record<DriverName, (options: DoctorOptions) => readonly Check[]>>> = {
  apple: (options) => [
    macCheck(ask, process),
    {
      check: 'network',
      async look(signal) {
        const network = appleNetwork(options.network, (await settingsOf(options)).apple)
        if (network.kind === 'sealed') return softnetCheck(findSoftnet).look(signal)
        const found = network.kind === 'bridged' ? `a bridge on ${network.card}` : 'shared with the Mac'
        return { result: 'ok', found }
      },
    },
  ],
  qemu: (options) => [virtualisationCheck, firmwareCheck, macosCheck(async () => (await settingsOf(options)).macos)],
}

export async function runDoctor(options: DoctorOptions): Promise<readonly DoctorCheck[]> {
  const { dataDir, network, signal } = options
  const drivers: Readonly<Record<DriverName, () => Driver>> = {
    apple: () => openDriver('apple', { dataDir }),
    qemu: () => openDriver('qemu', { network }),
    simulated: () => openDriver('simulated'),
  }
  const driver = drivers[options.driver]()
  const known = await remembered(dataDir)
  const apiUrls = options.apiUrls.length > 0 ? options.apiUrls : known.apiUrls
  try {
    return await examine(
      [
        nodeCheck(process.versions.node),
        hypervisorCheck(driver),
        ...(own[options.driver]?.(options) ?? []),
        ...(process.platform === 'darwin' ? [sleepCheck(ask)] : []),
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

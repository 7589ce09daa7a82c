// The checks of a host with the given driver, for `svc3 agent doctor` and for the agent, which repeats them.
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import {
  type Check,
  firmwareCheck,
  folderCheck,
  limitsCheck,
  macosCheck,
  processorCheck,
  spaceCheck,
  virtualisationCheck,
} from '../agent/doctor/doctor.ts'
import { appleChecks, type MacHost, type RunTool, settingChecks } from '../agent/doctor/mac.ts'
import type { DriverName } from '../drivers/index.ts'
import { exec, findProgram } from '../platform/exec.ts'
import type { RunAgentOptions } from './agent-options.ts'
import { appleNetwork, readAgentSettings } from './agent-settings.ts'

export type HostOptions = Pick<RunAgentOptions, 'dataDir' | 'imageDir' | 'driver' | 'network' | 'configFile'>

const runTool: RunTool = async (program, ...words) => (await exec(program, words, { timeoutMs: 10_000 })).stdout

async function findSoftnet() {
  const found = await findProgram('softnet')
  if (!found) return undefined
  // Homebrew puts a link into PATH.
  const file = await fs.realpath(found.path)
  const { mode, uid } = await fs.stat(file)
  return { path: file, mode, uid }
}

const connectMs = 3_000

/** Returns the code of the error. Whether the port is open does not matter. */
async function connect(address: string): Promise<string | undefined> {
  const socket = net.connect({ host: address, port: 53 })
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(connectMs) })
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  } finally {
    socket.destroy()
  }
}

function macHost(options: HostOptions): MacHost {
  const { username: user, uid, homedir: home } = os.userInfo()
  const network = async () => appleNetwork(options.network, (await readAgentSettings(options)).apple)
  const { platform, arch, execPath: node } = process
  return { ...options, ...{ platform, arch, user, uid, home, node }, network, findSoftnet, connect }
}

const checksOfDriver: Readonly<Partial<Record<DriverName, (options: HostOptions) => readonly Check[]>>> = {
  apple: (options) => appleChecks(runTool, macHost(options)),
  qemu: (options) => {
    const macos = async () => (await readAgentSettings(options)).macos
    return [virtualisationCheck, firmwareCheck, macosCheck(macos), processorCheck(macos)]
  },
}

/** A check that wrongly keeps macOS VMs from a node can be ignored in `agent.json`. */
export const ignorable =
  (options: HostOptions) =>
  ({ check, look }: Check): Check => ({
    check,
    async look(signal) {
      const { preventsMacos, ...rest } = await look(signal)
      if (!preventsMacos) return rest
      const { ignoredChecks } = await readAgentSettings(options)
      return ignoredChecks?.includes(check) ? { ...rest, result: 'warning' } : { ...rest, preventsMacos }
    },
  })

export const hostChecks = (options: HostOptions): readonly Check[] => [
  ...(checksOfDriver[options.driver]?.(options) ?? []).map(ignorable(options)),
  ...(process.platform === 'darwin' ? settingChecks(runTool, macHost(options)) : []),
  folderCheck(options.dataDir),
  spaceCheck(options.dataDir),
  limitsCheck,
]

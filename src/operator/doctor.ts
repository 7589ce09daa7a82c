// svc3 agent doctor: checks whether this host can be a node with the given driver.
import fs from 'node:fs/promises'
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
import { macCheck, type RunTool, sleepCheck, softnetCheck } from '../agent/doctor/mac.ts'
import { serverChecks } from '../agent/doctor/server.ts'
import { type Context, defineCommand, type Options, printed } from '../cli/command.ts'
import type { OutputColumn } from '../cli/output/output.ts'
import { version } from '../control-plane/version.ts'
import { type DriverName, openDriver } from '../drivers/index.ts'
import { exec, findProgram } from '../platform/exec.ts'
import { type AgentValues, agentOptions, agentTable, type RunAgentOptions } from './agent-options.ts'
import { appleNetwork, readAgentSettings } from './agent-settings.ts'
import { remembered } from './remembered.ts'

export type DoctorCheck = Awaited<ReturnType<typeof examine>>[number]

const { 'api-url': apiUrl, data, config, driver, network, ca, fingerprint } = agentTable
const options = { 'api-url': apiUrl, data, config, driver, network, ca, fingerprint } satisfies Options

const columns: readonly OutputColumn<DoctorCheck>[] = [
  { header: 'CHECK', keep: 'always', cell: ({ check }) => check },
  { header: 'RESULT', keep: 'always', cell: ({ result }) => result },
  { header: 'FOUND', cell: ({ found }) => found },
  { header: 'ADVICE', wide: true, cell: ({ advice }) => advice },
]

export const command = defineCommand({
  description:
    'Checks hypervisor, ports, disk space, clock, connection to the server and limits. Changes nothing.\nExit code 1 if VMs cannot run here.',
  arguments: {},
  options: { ...options, ...printed },
  examples: [
    { line: 'svc3 agent doctor', does: 'Check this host' },
    { line: 'svc3 agent doctor --api-url https://svc3.example.com -o json', does: 'The same for a program' },
  ],
  async run(context, values) {
    // The cast is safe, because the agent treats a missing option as one that was not given.
    const agent = await agentOptions(context, values.options as unknown as AgentValues)
    return showChecks(context, await examineHost(agent, context.signal))
  },
})

/** Returns exit code 1 if a problem keeps VMs from running. */
export async function showChecks(context: Context, checks: readonly DoctorCheck[]): Promise<number> {
  await context.print(checks, columns, '')
  for (const { check, advice } of checks)
    if (advice !== undefined && context.format === 'table') context.note(`${check}: ${advice}`)
  return checks.some(({ result }) => result === 'problem') ? 1 : 0
}

type DoctorOptions = Pick<RunAgentOptions, 'apiUrls' | 'dataDir' | 'driver' | 'network' | 'configFile' | 'trust'>

const runTool: RunTool = async (program, ...words) => (await exec(program, words, { timeoutMs: 10_000 })).stdout

async function findSoftnet() {
  const found = await findProgram('softnet')
  if (!found) return undefined
  // Homebrew puts a link into PATH.
  const file = await fs.realpath(found.path)
  const { mode, uid } = await fs.stat(file)
  return { path: file, mode, uid }
}

const checksOfDriver: Readonly<Partial<Record<DriverName, (options: DoctorOptions) => readonly Check[]>>> = {
  apple: (options) => [
    macCheck(runTool, process),
    {
      check: 'network',
      async look(signal) {
        const network = appleNetwork(options.network, (await readAgentSettings(options)).apple)
        if (network.kind === 'sealed') return softnetCheck(findSoftnet).look(signal)
        const found = network.kind === 'bridged' ? `a bridge on ${network.card}` : 'shared with the Mac'
        return { result: 'ok', found }
      },
    },
  ],
  qemu: (options) => [
    virtualisationCheck,
    firmwareCheck,
    macosCheck(async () => (await readAgentSettings(options)).macos),
  ],
}

/** Runs the checks. One that throws is reported as a problem. */
async function examineHost(options: DoctorOptions, signal: AbortSignal): Promise<readonly DoctorCheck[]> {
  const { dataDir, network } = options
  const driver = openDriver(options.driver, { dataDir, network })
  const known = await remembered(dataDir)
  const apiUrls = options.apiUrls.length > 0 ? options.apiUrls : known.apiUrls
  try {
    return await examine(
      [
        nodeCheck(process.versions.node),
        hypervisorCheck(driver),
        ...(checksOfDriver[options.driver]?.(options) ?? []),
        ...(process.platform === 'darwin' ? [sleepCheck(runTool)] : []),
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

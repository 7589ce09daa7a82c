// svc3 agent doctor: checks whether this host can be a node with the given driver.
import { examine, hypervisorCheck, nodeCheck, portsCheck, sizeCheck } from '../agent/doctor/doctor.ts'
import { asAgentSaw } from '../agent/doctor/host-checks.ts'
import { serverChecks } from '../agent/doctor/server.ts'
import type { HostCheck } from '../api/nodes/node-report.ts'
import { type Context, defineCommand, type Options, printed } from '../cli/command.ts'
import type { OutputColumn } from '../cli/output/output.ts'
import { version } from '../control-plane/version.ts'
import { openDriver } from '../drivers/index.ts'
import { type AgentValues, agentOptions, agentTable, type RunAgentOptions } from './agent-options.ts'
import { type HostOptions, hostChecks } from './host-checks.ts'
import { remembered } from './remembered.ts'

const { 'api-url': apiUrl, data, config, images, driver, network, ca, fingerprint } = agentTable
const options = { 'api-url': apiUrl, data, config, images, driver, network, ca, fingerprint } satisfies Options

const columns: readonly OutputColumn<HostCheck>[] = [
  { header: 'CHECK', keep: 'always', cell: ({ check }) => check },
  { header: 'RESULT', keep: 'always', cell: ({ result }) => result },
  { header: 'FOUND', cell: ({ found }) => found },
  { header: 'ADVICE', wide: true, cell: ({ advice }) => advice },
]

export const command = defineCommand({
  description:
    'Checks hypervisor, login session, network, ports, disk space, clock, connection to the server and limits. Changes nothing.\nWhere a running agent sees something else, that counts. Exit code 1 if VMs cannot run here.',
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
export async function showChecks(context: Context, checks: readonly HostCheck[]): Promise<number> {
  await context.print(checks, columns, '')
  for (const { check, advice } of checks)
    if (advice !== undefined && context.format === 'table') context.note(`${check}: ${advice}`)
  return checks.some(({ result }) => result === 'problem') ? 1 : 0
}

type DoctorOptions = HostOptions & Pick<RunAgentOptions, 'apiUrls' | 'trust'>

/** Runs the checks. One that throws is reported as a problem. */
async function examineHost(options: DoctorOptions, signal: AbortSignal): Promise<readonly HostCheck[]> {
  const { dataDir, network } = options
  const driver = openDriver(options.driver, { dataDir, network })
  const known = await remembered(dataDir)
  const apiUrls = options.apiUrls.length > 0 ? options.apiUrls : known.apiUrls
  try {
    const found = await examine(
      [
        nodeCheck(process.versions.node),
        hypervisorCheck(driver),
        ...hostChecks(options),
        sizeCheck,
        portsCheck,
        ...serverChecks(apiUrls, options.trust(apiUrls, known.pin), version),
      ],
      signal,
    )
    return await asAgentSaw(found, dataDir)
  } finally {
    await driver.close()
  }
}

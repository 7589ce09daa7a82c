// svc3 agent doctor
import { defineCommand, type Options, printed } from '../../command.ts'
import type { Column } from '../../output/output.ts'
import type { AgentOptions, DoctorCheck } from '../../programs.ts'
import { command as agent } from '../agent.ts'

const asked = ['api-url', 'data', 'config', 'driver', 'network', 'ca', 'fingerprint'] as const
const options: Options = Object.fromEntries(
  asked.flatMap((name) => (agent.options[name] ? [[name, agent.options[name]]] : [])),
)

const columns: readonly Column<DoctorCheck>[] = [
  { header: 'CHECK', keep: 'always', cell: ({ check }) => check },
  { header: 'RESULT', keep: 'always', cell: ({ result }) => result },
  { header: 'FOUND', cell: ({ found }) => found },
  { header: 'ADVICE', wide: true, cell: ({ advice }) => advice },
]

export const command = defineCommand({
  description:
    'Looks at this host as a node: what runs VMs, ports, space, the clock, the way to the service, limits. Changes nothing.\nExit code 1 where something keeps VMs from running here.',
  arguments: {},
  options: { ...options, ...printed },
  examples: [
    { line: 'svc3 agent doctor', does: 'Whether this host can be a node' },
    { line: 'svc3 agent doctor --api-url https://svc3.example.com -o json', does: 'The same for a program' },
  ],
  async run(context, values) {
    const { host, signal } = context
    const taken: AgentOptions[] = []
    // The agent's own command reads the options: what it refuses is refused here.
    const programs = { ...host.programs, agent: async (given: AgentOptions) => taken.push(given) - 1 }
    // Sound, because what is left out here is left out there, too.
    const all = { args: {}, options: values.options } as unknown as typeof values
    await agent.run({ ...context, host: { ...host, programs } }, all)
    const [given] = taken
    if (!given) throw new Error('svc3 agent did not start its program')
    const { apiUrls, dataDir, driver, network, configFile, trust } = given
    const checks = await host.programs.doctor({ apiUrls, dataDir, driver, network, configFile, trust, signal })
    await context.print(checks, columns, '')
    for (const { check, advice } of checks)
      if (advice !== undefined && context.format === 'table') context.note(`${check}: ${advice}`)
    return checks.some(({ result }) => result === 'problem') ? 1 : 0
  },
})

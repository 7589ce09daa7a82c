// svc3 agent acceptance: shows on a Mac that VMs run as promised, and writes a report. It is a client of a server and an agent
// that it starts in a folder, which it deletes afterwards.
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { type Context, defineCommand, type Options } from '../cli/command.ts'
import { readPassword } from '../cli/connect/password.ts'
import { Failure, Interrupted, UsageError } from '../cli/line/usage.ts'
import { version } from '../control-plane/version.ts'
import { readFileIfPresent } from '../platform/files.ts'
import { withLockFile } from '../platform/lock-file.ts'
import { Lab } from './acceptance/lab.ts'
import {
  anonymous,
  countsOf,
  isStandIn,
  type Report,
  reportFiles,
  type StepResult,
  writeReport,
} from './acceptance/report.ts'
import { runSteps, steps, stepsAfterReboot, type Trial } from './acceptance/steps.ts'
import type { OperatorOptionValues } from './options.ts'
import { remembered } from './remembered.ts'

const table = {
  image: {
    type: 'string',
    short: 'i',
    value: 'REFERENCE',
    default: 'ghcr.io/cirruslabs/macos-sequoia-base:latest',
    description: 'Image with SSH, and a user admin with the password admin',
  },
  cpu: { type: 'integer', short: 'c', value: 'CORES', min: 1, max: 64, default: 2, description: 'CPU cores of a VM' },
  memory: { type: 'gibibytes', short: 'm', value: 'GIB', max: 999, default: 4, description: 'Memory of a VM in GiB' },
  registry: { type: 'string', value: '[http://]HOST/PATH', description: 'Registry to push to and pull from' },
  'registry-user': { type: 'string', value: 'USER', description: 'User of the registry, with the password on stdin' },
  'second-volume': { type: 'string', value: 'DIR', description: 'Folder on another volume, to keep images there' },
  data: { type: 'string', value: 'DIR', defaultText: '~/.svc3-acceptance', description: 'Folder, deleted afterwards' },
  'before-reboot': { type: 'boolean', description: 'Keep agent and folder for --after-reboot' },
  'after-reboot': { type: 'boolean', description: 'Continue after a restart of the host' },
} as const satisfies Options

export const command = defineCommand({
  description:
    'Tries with tart what VMs on Apple silicon need, in half an hour besides the download of the image. Writes a report\nwithout names and addresses of the host into the current folder, and removes what it created. Exit code 1 if a step failed.',
  arguments: {},
  options: table,
  examples: [
    { line: 'svc3 agent acceptance --second-volume /Volumes/Images --before-reboot', does: 'Try this Mac' },
    { line: 'svc3 agent acceptance --after-reboot', does: 'Continue after a restart of the Mac' },
  ],
  async run(context, { options }) {
    if (process.platform === 'darwin' && process.getuid?.() === 0)
      throw new UsageError('Root cannot run VMs with tart', 'Run it as the user of the VMs, without sudo')
    const folder = path.resolve(context.host.workingDir, options.data ?? path.join(os.homedir(), '.svc3-acceptance'))
    const lab = new Lab(folder, context.host.self)
    const isUsed = await lab.isUsed()
    if (options['after-reboot'] && !isUsed)
      throw new Failure('No run waits for a restart', 'Run svc3 agent acceptance --before-reboot first')
    const busy = (pid: number) =>
      new Failure(`Another acceptance run uses ${folder}`, `Wait for it, or stop process ${pid}`)
    return await withLockFile(`${folder}.lock`, () => runAcceptance(context, lab, options), busy)
  },
})

async function runAcceptance(context: Context, lab: Lab, options: OperatorOptionValues<typeof table>): Promise<number> {
  const { host, signal, note } = context
  const { 'registry-user': user } = options
  const registry = options.registry === undefined ? undefined : registryOf(options.registry)
  const password = user === undefined ? 'none' : await readPassword(context, 'Password for the registry: ')
  const earlier = options['after-reboot'] ? await readEarlier(host) : undefined
  // A killed run may have left VMs.
  if (!earlier) await lab.cleanUp()
  await fs.mkdir(lab.folder, { recursive: true, mode: 0o700 })
  const trial: Trial = { lab, options, registry }
  let results: readonly StepResult[] = []
  try {
    const [url = 'http://127.0.0.1:0'] = (await remembered(lab.at('node'))).apiUrls
    await lab.serve(signal, Number(new URL(url).port))
    const isPlain = registry?.protocol === 'http:'
    if (registry && (user !== undefined || isPlain)) {
      const words = ['regcred', 'add', registry.origin, '-u', user ?? 'any', '--password-stdin', '--replace']
      await lab.svc3([...words, ...(isPlain ? ['--allow-insecure'] : [])], signal, password)
    }
    results = await runSteps(earlier ? stepsAfterReboot : steps, trial, signal, (one) =>
      host.stdout.write(`${one.result.padEnd(8)} ${one.step} (${one.seconds} s): ${one.text}\n`),
    )
  } finally {
    await (options['before-reboot'] && !signal.aborted ? lab.stop() : lab.cleanUp())
  }
  const report: Report = {
    svc3: version,
    host: [os.type(), os.release(), os.machine(), os.cpus()[0]?.model].join(' '),
    at: host.now().toISOString(),
    image: options.image,
    driver: trial.node?.driver ?? 'unknown',
    checks: trial.node?.checks ?? [],
    ...earlier,
    steps: [...(earlier?.steps ?? []), ...results],
  }
  const names = { [lab.folder]: 'DATA', ...(registry && { [registry.host]: 'REGISTRY' }) }
  const clean = (_: string, value: unknown) => (typeof value === 'string' ? anonymous(value, names) : value)
  await writeReport(host.workingDir, JSON.parse(JSON.stringify(report), clean) as Report)
  if (signal.aborted) throw new Interrupted('Stopped, and removed what the run created', `See ${reportFiles.markdown}`)
  if (isStandIn(report)) note('tart is a stand-in here. The report says nothing about a Mac')
  if (options['before-reboot']) note('Restart this host, then run svc3 agent acceptance --after-reboot')
  host.stdout.write(`${countsOf(report.steps)}. Report: ${reportFiles.markdown}\n`)
  return report.steps.some(({ result }) => result === 'failed') ? 1 : 0
}

function registryOf(text: string): URL {
  const url = URL.parse(/^https?:/.test(text) ? text : `https://${text}`)
  if (url && url.pathname.length > 1) return url
  throw new UsageError(`Invalid --registry "${text}"`, 'For example --registry ghcr.io/team')
}

async function readEarlier({ workingDir, now }: Context['host']): Promise<Report> {
  const text = await readFileIfPresent(path.join(workingDir, reportFiles.json))
  if (text === undefined) throw new Failure(`${workingDir} has no report`, 'Run it in the folder of the first run')
  const report = JSON.parse(text) as Report
  if (now().getTime() - os.uptime() * 1_000 > Date.parse(report.at)) return report
  throw new Failure('This host was not restarted since the run', 'Restart it, then try again')
}

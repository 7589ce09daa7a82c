// `svc3 agent install`, `svc3 server install`, and what goes with them: svc3 as a service of this host.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { ServicePlace, ServiceRequest, ServiceStatus } from '../cli/programs.ts'
import { checkoutFolder } from '../control-plane/checkout.ts'
import { isUserName } from '../host/accounts.ts'
import { type Installation, installedAs, installSteps, type Step, uninstallSteps, upgrade } from '../host/install.ts'
import { NotBuilt } from '../host/program.ts'
import { defaultUsers, type ServiceKind, serviceNames } from '../host/service.ts'
import { runProgram, type Supervisor, supervisors } from '../host/supervisors.ts'

/** In the data folder; the agent removes it when it has joined. */
export const joinTokenFile = 'join-token'

class Refused extends Error {
  readonly hint: string

  constructor(message: string, hint: string) {
    super(message)
    this.hint = hint
  }
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)

export async function runService(request: ServiceRequest): Promise<number> {
  try {
    await carryOut(request)
    return 0
  } catch (error) {
    const [what, next] = explain(error, request)
    process.stderr.write(`svc3: ${what}\nsvc3: ${next}\n`)
    return 1
  }
}

async function carryOut(request: ServiceRequest): Promise<void> {
  const { kind, root, dryRun, action } = request
  const target = await targetOf(request)
  const name = serviceNames[kind]
  if (root === undefined && !dryRun) await requireHost(target.supervisor)
  if (action === 'upgrade') {
    if (dryRun) return say(`${name} would run this program, and be started again; VMs run on`)
    const { from, to } = await upgrade(target)
    return say(`${name}: ${from === to ? `${to}, installed again` : `${from} is now ${to}`}${after(request)}`)
  }
  const { dataDir } = (await installedAs(target)) ?? {}
  if (action === 'uninstall' && dataDir === undefined)
    throw new Refused(`${name} is not installed here`, 'there is nothing to remove')
  await perform(action === 'install' ? await toInstall(target, request) : uninstallSteps(target), dryRun)
  if (dryRun) return say('Nothing was changed.')
  if (action === 'install')
    return say(`${name} is installed${root === undefined ? ' and runs' : ` in ${root}`}.${after(request)}`)
  say(`${name} is removed. Its data stay in ${dataDir}, and VMs that run, run on.`)
}

const after = ({ kind, root }: ServiceRequest): string =>
  root === undefined ? `\n"svc3 ${kind} status" shows how it stands.` : ''

type Install = Extract<ServiceRequest, { action: 'install' }>

async function toInstall(target: Installation, request: Install): Promise<readonly Step[]> {
  const { kind, user = usualUser(kind), dataDir, writes, words, joinToken } = request
  if (!isUserName(user)) throw new Refused(`"${user}" is no name of a user`, 'name one with --user')
  const secrets = joinToken === undefined ? [] : [{ name: joinTokenFile, text: `${joinToken}\n` }]
  return installSteps(target, { user, dataDir, writes, words, secrets })
}

/** On a Mac VMs belong to a person's account: tart keeps them in its home. */
const usualUser = (kind: ServiceKind): string =>
  process.platform === 'darwin' ? (process.env.SUDO_USER ?? 'root') : defaultUsers[kind]

async function perform(steps: readonly Step[], dryRun: boolean): Promise<void> {
  for (const step of steps) {
    if (dryRun) say(step.says)
    else await step.run()
  }
}

async function targetOf({ kind, root }: ServicePlace): Promise<Installation> {
  const supervisor = supervisors[process.platform]
  if (!supervisor)
    throw new Refused(`svc3 can be no service on ${process.platform}`, 'run it under a supervisor of your own')
  const own = { packageDir: checkoutFolder(), node: await stableNode(), run: runProgram, say }
  return { kind, supervisor, root, isLive: root === undefined, ...own }
}

async function requireHost({ name }: Supervisor): Promise<void> {
  const isSystemd = await fs.access('/run/systemd/system').then(
    () => true,
    () => false,
  )
  if (name === 'systemd' && !isSystemd)
    throw new Refused(
      'systemd does not run on this host',
      'run "svc3 agent" or "svc3 server" under the supervisor that does, or use --root DIR to make the files',
    )
  if (process.getuid?.() !== 0) throw new Refused('only root may change the services of this host', 'use sudo')
}

/**
 * Node as others find it: where this process runs from may be the folder of one version, gone with the next update
 * (Homebrew's Cellar is such a place).
 */
async function stableNode(): Promise<string> {
  const own = process.execPath
  // sudo may have taken Homebrew's folders out of the path.
  const usual = ['/opt/homebrew/bin', '/usr/local/bin', '/usr/bin']
  const searched = (process.env.PATH ?? '').split(':').filter((each) => path.isAbsolute(each))
  for (const folder of [...searched, ...usual]) {
    const file = path.join(folder, 'node')
    const real = await fs.realpath(file).catch(() => undefined)
    if (real === own) return file
  }
  return own
}

export async function serviceStatus(place: ServicePlace): Promise<ServiceStatus> {
  const target = await targetOf(place)
  const { kind, supervisor, root, run } = target
  const installed = await installedAs(target)
  const isHere = root === undefined && installed !== undefined
  const state = isHere ? await supervisor.state(kind, run).catch(() => undefined) : undefined
  return {
    name: serviceNames[kind],
    ...installed,
    ...(state ?? { state: installed ? 'stopped' : 'not installed' }),
    log: supervisor.logCommand(kind),
  }
}

function explain(error: unknown, { kind }: ServiceRequest): [what: string, next: string] {
  if (error instanceof Refused) return [error.message, error.hint]
  if (error instanceof NotBuilt) return [error.message, 'run "npm run build" there first']
  const message = error instanceof Error ? error.message : String(error)
  return [message, `"svc3 ${kind} status" shows how it stands; the same command again goes on from there`]
}

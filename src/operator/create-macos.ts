// svc3 image create-macos: an image of macOS from Apple's IPSW, made with tart on a Mac with Apple silicon. Works in the usual
// TART_HOME, where tart caches the IPSW. What a killed run left is found by the name of its VM, which no other home has.
import { hash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { type Context, defineCommand, type Options } from '../cli/command.ts'
import { Failure, UsageError } from '../cli/line/usage.ts'
import { startProgress } from '../cli/output/progress.ts'
import { findTart } from '../drivers/apple/probe.ts'
import { createTart, usualHome } from '../drivers/apple/tart.ts'
import { outputOf } from '../drivers/program-output.ts'
import type { ExecResult } from '../platform/exec.ts'
import { withLockFile } from '../platform/lock-file.ts'
import { everyProcess, kill, startTimeOf, waitForEnd } from '../platform/processes.ts'
import { reasonOf } from '../platform/reason.ts'
import { orAborted, retry } from '../platform/retry.ts'
import { parseImageReference } from '../rules/image-reference.ts'
import { sizeText } from '../rules/sizes.ts'
import type { OperatorOptionValues } from './options.ts'

/** Public, as in tart's own images, because tart takes the password as an argument. */
const user = 'admin'

const table = {
  ipsw: { type: 'string', value: 'FILE|URL|latest', names: 'files', required: true, description: "Apple's IPSW" },
  disk: { type: 'integer', value: 'GIB', min: 30, max: 59_000, default: 80, description: 'Disk size in GiB' },
  unattended: {
    type: 'boolean',
    description: `Create user ${user} with password ${user} and Remote Login (macOS 27 on the Mac and in the VM)`,
  },
  'allow-insecure': { type: 'boolean', description: 'Allow a registry without TLS' },
} as const satisfies Options

interface Creation {
  readonly options: OperatorOptionValues<typeof table>
  readonly reference: string
  /** Of the VM, while it is in tart's home. */
  readonly name: string
}

/** What the command passes to tart. */
export const tartWords = {
  create: (ipsw: string, { name, options: { disk } }: Creation) =>
    ['create', name, `--from-ipsw=${ipsw}`, `--disk-size=${Math.ceil((disk * 2 ** 30) / 1e9)}`],
  firstBoot: ({ name }: Creation) => {
    const account = `fullName=${user},username=${user},password=${user},logsInAutomatically=true,enablesRemoteLogin=true`
    return ['run', name, '--no-graphics', '--no-audio', `--provisioning-opts=${account}`]
  },
  ip: ({ name }: Creation) => ['ip', name],
  push: ({ name, reference, options }: Creation) =>
    ['push', name, reference, ...(options['allow-insecure'] ? ['--insecure'] : [])],
  delete: ({ name }: Creation) => ['delete', name],
} as const // biome-ignore format: one row per command

/** What tart prints, from its sources and from reports of its users. */
const advice: readonly (readonly [RegExp, string])[] = [
  [/software update/i, 'Update macOS, and install the current Xcode and open it once'],
  [/restore ?image/i, 'Use a complete IPSW of a macOS that this Mac supports, or --ipsw latest'],
  [/disk space|no space left/i, 'Free disk space on this Mac'],
  [/exceeds/i, 'Stop a VM with macOS on this Mac'],
  [/host key|Code=1\b/, 'Run security unlock-keychain login.keychain'],
  [/code: 40[13]|AuthFailed/, 'Run tart login HOST'],
]

const tart = createTart()
const [installedBytes, downloadBytes] = [30e9, 20e9]
const maxMs = 24 * 3_600_000
const firstBootMs = 30 * 60_000
const policy = { attempts: Infinity, withinMs: firstBootMs, firstDelayMs: 1_000, maxDelayMs: 5_000 }

export const command = defineCommand({
  description:
    'For a Mac with Apple silicon and tart: installs macOS in a VM, which can take an hour, and pushes it as an image. Run tart login for\nthe registry first. Without --unattended, Setup Assistant waits on the screen of VMs that are deployed from the image.',
  arguments: {
    image: { value: 'IMAGE[:TAG]', description: '<registry_host>/<repository>/<image>', required: true },
  },
  options: table,
  examples: [
    { line: 'svc3 image create-macos ghcr.io/acme/macos:27 --ipsw latest --unattended', does: 'Install the newest' },
    { line: 'svc3 image create-macos ghcr.io/acme/macos:15 --ipsw mac.ipsw --disk 120', does: 'Use a file' },
  ],
  async run(context, { args: { image }, options }) {
    const parsed = parseImageReference(image, 'push')
    if (!parsed.ok) throw new UsageError(parsed.problem, parsed.hint)
    const ipsw = await checkHost(context, options)
    const name = `svc3-macos-${hash('sha256', usualHome()).slice(0, 8)}`
    const { text: reference, registry } = parsed.reference
    const work = () => create(context, ipsw, { options, reference, name }, registry)
    const busy = (pid: number) =>
      new Failure('Another image is being created on this Mac', `Wait for it, or stop process ${pid}`)
    await withLockFile(path.join(usualHome(), `${name}.lock`), work, busy)
    await context.done(`Image ${reference} pushed.`, { image: reference })
    if (options.unattended) context.note(`Deploy a VM: svc3 vm deploy demo -i ${reference}`)
    else
      context.note(`To set macOS up: svc3 vm deploy setup -i ${reference}, svc3 vm vnc setup, then svc3 vm push setup`)
    return 0
  },
})

/** Returns the IPSW as tart takes it. */
async function checkHost({ host, note }: Context, { ipsw, unattended }: Creation['options']): Promise<string> {
  const { version, problem } = await findTart(tart.program)
  if (problem !== undefined && `${process.platform} ${process.arch}` !== 'darwin arm64')
    throw new Failure('This is not a Mac with Apple silicon', 'Run the command on one that has tart')
  if (problem !== undefined) throw new Failure(problem, 'Then try again')
  if (version.includes('stand-in')) note('tart is a stand-in here. This says nothing about a Mac')
  if (unattended && Number.parseInt((await outputOf('sw_vers', '-productVersion')) ?? '', 10) < 27)
    throw new Failure('--unattended needs macOS 27 on this Mac', 'Omit --unattended')
  if (unattended && !(await outputOf(tart.program, 'run --help'))?.includes('--provisioning-opts'))
    throw new Failure(`${version} cannot create users`, 'Run brew upgrade openai/tools/tart, or omit --unattended')
  const isRemote = ipsw === 'latest' || /^https?:\/\//.test(ipsw)
  const file = path.resolve(host.workingDir, ipsw)
  if (!isRemote && !(await fs.stat(file).catch(() => undefined))?.isFile())
    throw new UsageError(`${file} is not a file`, 'Use --ipsw latest, or download an IPSW')
  await fs.mkdir(usualHome(), { recursive: true })
  const { bavail, bsize } = await fs.statfs(usualHome())
  const [free, needed] = [bavail * bsize, installedBytes + (isRemote ? downloadBytes : 0)]
  if (free < needed)
    throw new Failure(`${usualHome()} has ${sizeText(free)} free; ${sizeText(needed)} needed`, 'Free disk space')
  return isRemote ? ipsw : file
}

async function create(context: Context, ipsw: string, creation: Creation, registry: string): Promise<void> {
  const { signal } = context
  const progress = startProgress(context, 'image')
  let text = ''
  const onOutput = (output: string): void => {
    for (const line of output.split('\n').filter((each) => each.trim() !== '')) {
      const [, percent] = /^(\d+)%/.exec(line) ?? []
      if (percent === undefined) text = line
      progress.show({ text, percent: percent === undefined ? undefined : Number(percent) })
    }
  }
  const run = (words: readonly string[], within = signal) =>
    tart.inHome(usualHome(), words, { signal: within, timeoutMs: maxMs, onOutput })
  let isInstalled = false
  await clear(creation)
  try {
    await run(tartWords.create(ipsw, creation))
    isInstalled = true
    if (creation.options.unattended) {
      progress.show({ text: 'Creating the user' })
      await createUser(creation, run, signal)
    }
    await run(tartWords.push(creation))
    await clear(creation)
  } catch (error) {
    if (!isInstalled || signal.aborted) await clear(creation)
    signal.throwIfAborted()
    const hint = advice.find(([pattern]) => pattern.test(reasonOf(error)))?.[1] ?? 'Solve this'
    if (!isInstalled) throw new Failure(`macOS was not installed: ${reasonOf(error)}`, `${hint}, then try again`)
    const rest = [tartWords.push(creation), tartWords.delete(creation)].map((words) => `tart ${words.join(' ')}`)
    throw new Failure(
      `macOS is installed, but was not pushed: ${reasonOf(error)}`,
      `${hint.replace('HOST', registry)}, then run ${rest.join(' && ')}`,
    )
  } finally {
    progress.end()
  }
}

/** Ends what a killed run started, and deletes its VM. tart itself removes temporary files of killed processes. */
async function clear(creation: Creation): Promise<void> {
  const own = new RegExp(` (create|run|push) ${creation.name}( |$)`)
  for (const { pid, words } of await everyProcess()) {
    const startTime = own.test(words.join(' ')) ? await startTimeOf(pid) : undefined
    if (startTime === undefined) continue
    await kill({ pid, startTime }, 'SIGKILL')
    await waitForEnd({ pid, startTime }, 10_000)
  }
  await tart.inHome(usualHome(), tartWords.delete(creation)).catch(() => undefined) // Mostly there is none.
}

type RunTart = (words: readonly string[], within: AbortSignal) => Promise<ExecResult>

/** macOS 27 creates the user at the first boot, and SSH responds when that is done. */
async function createUser(creation: Creation, run: RunTart, signal: AbortSignal): Promise<void> {
  const over = new AbortController()
  const within = AbortSignal.any([signal, over.signal, AbortSignal.timeout(firstBootMs)])
  // The installer holds the VM for some seconds after its end.
  const isRetriable = (error: unknown) => /lock auxiliary storage/i.test(reasonOf(error))
  const ended = retry(() => run(tartWords.firstBoot(creation), within), { policy, signal: within, isRetriable })
  const shutDown = retry(
    async () => {
      const { stdout } = await tart.inHome(usualHome(), tartWords.ip(creation), { signal: within })
      await shutDownGuest(stdout.trim(), within)
    },
    { policy, signal: within, isRetriable: () => true },
  )
  try {
    await Promise.race([ended, shutDown])
    await ended
  } finally {
    over.abort()
    await Promise.allSettled([ended, shutDown])
  }
}

/** From inside, because `tart stop` is like a power cut. */
async function shutDownGuest(host: string, signal: AbortSignal): Promise<void> {
  const { Client } = await import('ssh2').then((module) => module.default ?? module)
  const ssh = new Client()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  ssh.on('error', reject).on('close', resolve)
  ssh.on('ready', () =>
    ssh.exec("sudo -S -p '' shutdown -h now", (error, channel) =>
      error ? reject(error) : channel.on('close', resolve).resume().end(`${user}\n`),
    ),
  )
  ssh.connect({ host, username: user, password: user })
  await orAborted(promise, signal).finally(() => ssh.end())
}

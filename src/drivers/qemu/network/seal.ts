// Tries whether guests can be isolated from this host, which needs programs, namespaces and /dev/net/tun. If they
// cannot, the reason is reported; guests get access to the host's loopback only if an operator allows it.
import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import { childEnvironment, exec, lastLines } from '../../../platform/exec.ts'
import { reasonOf } from '../../../platform/reason.ts'
import { networkPlaces, sealedPrefix } from './network.ts'
import { endUplink, startUplink } from './uplink.ts'

/** Usually a tenth of a second, but more on a host that is booting. */
const tryMs = 30_000

const remedy =
  `install slirp4netns ('apt-get install slirp4netns iproute2 util-linux') and run as root, or start with ` +
  `--network user, which lets guests reach services on this host's loopback`

let known: Promise<string | undefined> | undefined

/** Undefined if sealing works, otherwise the reason and what to do. A success is cached. */
export function canSeal(): Promise<string | undefined> {
  if (process.platform !== 'linux')
    return Promise.resolve(`guests can be isolated only on Linux; start with --network user`)
  known ??= whyNot(trySealing).then((problem) => {
    // Missing programs may be installed later.
    if (problem !== undefined) known = undefined
    return problem
  })
  return known
}

/** Returns why the attempt failed. A timeout proves nothing, because a busy host may still be able to seal. */
export async function whyNot(attempt: (signal: AbortSignal) => Promise<void>, limitMs = tryMs) {
  const signal = AbortSignal.timeout(limitMs)
  try {
    await attempt(signal)
    return undefined
  } catch (error) {
    const cause = reasonOf(error)
    return signal.aborted
      ? `guests could not be isolated from this host within ${limitMs / 1_000} s; it will be retried`
      : `guests cannot be isolated from this host: ${cause}; ${remedy}`
  }
}

/** Seals an empty namespace with an uplink, as for a VM. Throws with the reason. */
async function trySealing(signal: AbortSignal): Promise<void> {
  const runtime = await fs.mkdtemp('/tmp/svc3-try-')
  try {
    await exec('mkfifo', ['-m', '600', networkPlaces(runtime).life], { signal })
    const [program = '', ...args] = sealedPrefix()
    const jailed = spawn(program, [...args, 'cat'], { cwd: runtime, env: childEnvironment, stdio: 'pipe' })
    let said = ''
    jailed.stderr.on('data', (text) => {
      said += text
    })
    jailed.stdin.on('error', () => undefined)
    const { promise: over, reject: end } = Promise.withResolvers<never>()
    over.catch(() => undefined)
    jailed.once('error', () => end(new Error(`${program} is not installed`)))
    jailed.once('close', (code) => end(new Error(lastLines(said, 2) || `${program} ended with exit code ${code}`)))
    signal.addEventListener('abort', () => end(signal.reason), { once: true })
    try {
      // `cat` responds only after all steps of `sealedPrefix` have succeeded.
      jailed.stdin.write('sealed\n')
      await Promise.race([over, new Promise((resolve) => jailed.stdout.once('data', resolve))])
      const doors = { kind: 'sealed', ip: '127.0.0.1', ports: [] } as const
      await Promise.race([over, startUplink(jailed.pid ?? -1, runtime, doors, signal, () => undefined)])
    } finally {
      jailed.kill('SIGKILL')
    }
  } finally {
    await endUplink(runtime)
    await fs.rm(runtime, { recursive: true, force: true })
  }
}

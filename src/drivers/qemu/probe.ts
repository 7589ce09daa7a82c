// What this host can run: the installed programs, their version, and how to get missing ones.
import type { Architecture } from '../../api/architecture.ts'
import { childEnvironment, exec, findProgram } from '../../platform/exec.ts'
import type { Probe } from '../driver.ts'
import { type Accelerator, acceleratorFor, hostArchitecture } from './accel.ts'
import { qemuArchitectures } from './architectures.ts'
import type { NetworkKind } from './network/network.ts'

interface Found {
  readonly architecture: Architecture
  readonly version: string
}

interface Question {
  readonly desired: readonly Architecture[]
  readonly forced: Accelerator | undefined
  readonly network: NetworkKind
  /** Why guests cannot have that network. */
  readonly problem: string | undefined
}

export class QemuProbe {
  readonly #searchPath: string
  readonly #versions = new Map<string, { readonly stamp: string; readonly version: string }>()

  /** The search path of child processes. */
  constructor(searchPath = childEnvironment.PATH ?? '') {
    this.#searchPath = searchPath
  }

  async ask({ desired, forced, network, problem }: Question, signal: AbortSignal): Promise<Probe> {
    const [image, ...programs] = await Promise.all([
      this.#versionOf('qemu-img', signal),
      ...desired.map(async (architecture): Promise<Found | undefined> => {
        const version = await this.#versionOf(qemuArchitectures[architecture].program, signal)
        return version === undefined ? undefined : { architecture, version }
      }),
    ])
    const found = programs.filter((one) => one !== undefined)
    const missing = desired.filter((architecture) => !found.some((one) => one.architecture === architecture))
    const packages = [
      ...missing.map((architecture) => qemuArchitectures[architecture].debianPackage),
      ...(image === undefined ? ['qemu-utils'] : []),
    ]
    const isThere = image !== undefined && found.length > 0
    const problems = [
      ...(packages.length > 0 ? [howToInstall(packages)] : []),
      ...(problem === undefined ? [] : [problem]),
    ]
    const accelerator = hostArchitecture ? await acceleratorFor(hostArchitecture, forced) : 'tcg'
    const ok = isThere && problem === undefined
    return {
      ok,
      ...(problems.length > 0 && { problem: problems.join('; ') }),
      version: isThere
        ? `QEMU ${found[0]?.version} (${accelerator}, ${network === 'sealed' ? 'sealed' : 'unsealed'} network)`
        : 'QEMU is missing',
      architectures: ok ? found.map(({ architecture }) => architecture) : [],
      gpus: 0,
    }
  }

  /** Runs a program only when its file changed: every half minute would cost more than the rest of the probe. */
  async #versionOf(program: string, signal: AbortSignal): Promise<string | undefined> {
    const file = await findProgram(program, this.#searchPath)
    if (!file) return undefined
    const known = this.#versions.get(file.path)
    if (known?.stamp === file.stamp) return known.version
    const answer = await exec(file.path, ['--version'], { signal, timeoutMs: 10_000 }).catch(() => undefined)
    const version = answer && /version (\d+(?:\.\d+)*)/.exec(answer.stdout)?.[1]
    if (version !== undefined) this.#versions.set(file.path, { stamp: file.stamp, version })
    return version
  }
}

function howToInstall(packages: readonly string[]): string {
  const command =
    process.platform === 'darwin'
      ? 'brew install qemu'
      : `apt-get install --no-install-recommends ${[...new Set([...packages, 'seabios', 'slirp4netns'])].join(' ')}`
  return `QEMU is not complete on this host: run '${command}'`
}

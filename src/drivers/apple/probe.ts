// What this host can run: tart, whether it is recent enough, and how many of Apple's macOS VMs are left.
import { exec, findProgram } from '../../platform/exec.ts'
import type { Probe } from '../driver.ts'
import type { Allowance } from './allowance.ts'

/** The oldest version that was tried. Later ones have the same options and files. */
const leastVersion = [2, 35] as const

export class TartProbe {
  readonly #program: string
  readonly #allowance: Pick<Allowance, 'left'>
  #known: { readonly stamp: string; readonly version: string } | undefined

  constructor(program: string, allowance: Pick<Allowance, 'left'>) {
    this.#program = program
    this.#allowance = allowance
  }

  async ask(signal: AbortSignal): Promise<Probe> {
    const version = await this.#version(signal)
    if (version === undefined) return failed('tart is missing', `tart is not on this host, or not in PATH: ${install}`)
    if (!isNewEnough(version))
      return failed(`tart ${version}`, `tart ${version} is too old, ${leastVersion.join('.')} is needed: ${upgrade}`)
    const maxMacosVms = await this.#allowance.left()
    return { ok: true, version: `tart ${version}`, architectures: ['arm64'], maxMacosVms, gpus: 0 }
  }

  /** Runs tart only when its file changed. */
  async #version(signal: AbortSignal): Promise<string | undefined> {
    const isPath = this.#program.includes('/')
    const file = isPath ? { path: this.#program, stamp: this.#program } : await findProgram(this.#program)
    if (!file) return undefined
    if (this.#known?.stamp === file.stamp) return this.#known.version
    const answer = await exec(file.path, ['--version'], { signal, timeoutMs: 15_000 }).catch(() => undefined)
    const version = answer && /(?<!\d)\d+\.\d+[\w.+-]*/.exec(answer.stdout)?.[0]
    if (version !== undefined) this.#known = { stamp: file.stamp, version }
    return version
  }
}

const install = "run 'brew install openai/tools/tart'"
// The former tap has no newer version.
const upgrade = "run 'brew uninstall tart && brew install openai/tools/tart'"

export function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > leastVersion[0] || (major === leastVersion[0] && minor >= leastVersion[1])
}

const failed = (version: string, problem: string): Probe => ({
  ok: false,
  problem,
  version,
  architectures: [],
  gpus: 0,
})

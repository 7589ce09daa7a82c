// What this host can run: tart, whether it is recent enough, and how many of Apple's macOS VMs are left.
import type { Probe } from '../driver.ts'
import { outputOf } from '../program-output.ts'
import type { Allowance } from './allowance.ts'

/** The oldest version whose sources were read. Later ones have the same options and files: interface.ts. */
const leastVersion = [2, 35] as const

export async function findTart(program: string): Promise<{ readonly version: string; readonly problem?: string }> {
  const output = (await outputOf(program, '--version')) ?? ''
  const number = /(?<!\d)\d+\.\d+[\w.+-]*/.exec(output)?.[0]
  if (number === undefined)
    return { version: 'tart is missing', problem: `tart is not on this host, or not in PATH: ${install}` }
  const version = `tart ${number}`
  if (isNewEnough(number)) return { version }
  return { version, problem: `${version} is too old, ${leastVersion.join('.')} is needed: ${upgrade}` }
}

export async function probeTart(program: string, allowance: Pick<Allowance, 'left' | 'refusal'>): Promise<Probe> {
  const { version, problem } = await findTart(program)
  if (problem !== undefined) return { ok: false, problem, version, architectures: [] }
  const [maxMacosVms, refusal] = [await allowance.left(), await allowance.refusal()]
  return {
    ok: true,
    version,
    architectures: ['arm64'],
    maxMacosVms,
    ...(refusal !== undefined && { noMacos: { arm64: refusal } }),
  }
}

const install = "run 'brew install openai/tools/tart'"
// The former tap has no newer version.
const upgrade = "run 'brew uninstall tart && brew install openai/tools/tart'"

export function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > leastVersion[0] || (major === leastVersion[0] && minor >= leastVersion[1])
}

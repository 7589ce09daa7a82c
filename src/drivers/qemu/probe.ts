// What this host can run: the installed programs, their version, and how to get missing ones.
import type { Architecture } from '../../api/architecture.ts'
import type { Probe } from '../driver.ts'
import { outputOf } from '../program-output.ts'
import { acceleratorFor, hostArchitecture } from './accel.ts'
import { qemuArchitectures } from './architectures.ts'
import type { NetworkKind } from './network/network.ts'

interface Question {
  readonly desired: readonly Architecture[]
  readonly network: NetworkKind
  /** Why guests cannot have that network. */
  readonly problem: string | undefined
  /** Tests only. */
  readonly searchPath?: string
}

export async function probeQemu({ desired, network, problem, searchPath }: Question): Promise<Probe> {
  const versionOf = async (program: string): Promise<string | undefined> =>
    /version (\d+(?:\.\d+)*)/.exec((await outputOf(program, '--version', searchPath)) ?? '')?.[1]
  const [image, ...versions] = await Promise.all([
    versionOf('qemu-img'),
    ...desired.map((architecture) => versionOf(qemuArchitectures[architecture].program)),
  ])
  const found = desired.filter((_, index) => versions[index] !== undefined)
  const packages = [
    ...desired
      .filter((architecture) => !found.includes(architecture))
      .map((architecture) => qemuArchitectures[architecture].debianPackage),
    ...(image === undefined ? ['qemu-utils'] : []),
  ]
  const isThere = image !== undefined && found.length > 0
  const problems = [
    ...(packages.length > 0 ? [howToInstall(packages)] : []),
    ...(problem === undefined ? [] : [problem]),
  ]
  const accelerator = hostArchitecture ? await acceleratorFor(hostArchitecture) : 'tcg'
  const version = versions.find((each) => each !== undefined)
  const ok = isThere && problem === undefined
  return {
    ok,
    ...(problems.length > 0 && { problem: problems.join('; ') }),
    version: isThere
      ? `QEMU ${version} (${accelerator}, ${network === 'sealed' ? 'sealed' : 'unsealed'} network)`
      : 'QEMU is missing',
    architectures: ok ? found : [],
  }
}

function howToInstall(packages: readonly string[]): string {
  const command =
    process.platform === 'darwin'
      ? 'brew install qemu'
      : `apt-get install --no-install-recommends ${[...new Set([...packages, 'seabios', 'slirp4netns'])].join(' ')}`
  return `QEMU is not complete on this host: run '${command}'`
}

// What this host can run: the programs that are there, their version, and how to get those that are not.
import { exec } from '../../platform/exec.ts'
import type { Architecture, Probe } from '../driver.ts'
import { type Accelerator, acceleratorFor, hostArchitecture } from './accel.ts'
import { architectures } from './architectures.ts'

interface Found {
  readonly architecture: Architecture
  readonly version: string
}

export async function probeQemu(
  wanted: readonly Architecture[],
  forced: Accelerator | undefined,
  network: string,
  signal: AbortSignal,
): Promise<Probe> {
  const [image, ...programs] = await Promise.all([
    versionOf('qemu-img', signal),
    ...wanted.map(async (architecture): Promise<Found | undefined> => {
      const version = await versionOf(architectures[architecture].program, signal)
      return version === undefined ? undefined : { architecture, version }
    }),
  ])
  const found = programs.filter((one) => one !== undefined)
  const missing = wanted.filter((architecture) => !found.some((one) => one.architecture === architecture))
  const packages = [
    ...missing.map((architecture) => architectures[architecture].debianPackage),
    ...(image === undefined ? ['qemu-utils'] : []),
  ]
  const ok = image !== undefined && found.length > 0
  const accelerator = hostArchitecture ? await acceleratorFor(hostArchitecture, forced) : 'tcg'
  return {
    ok,
    ...(packages.length > 0 && { problem: howToInstall(packages) }),
    version: ok
      ? `QEMU ${found[0]?.version} (${accelerator}, ${network === 'sealed' ? 'sealed' : 'unsealed'} network)`
      : 'QEMU is missing',
    architectures: ok ? found.map(({ architecture }) => architecture) : [],
    gpus: 0,
  }
}

async function versionOf(program: string, signal: AbortSignal): Promise<string | undefined> {
  const answer = await exec(program, ['--version'], { signal, timeoutMs: 10_000 }).catch(() => undefined)
  return answer && /version (\d+(?:\.\d+)*)/.exec(answer.stdout)?.[1]
}

function howToInstall(packages: readonly string[]): string {
  const command =
    process.platform === 'darwin'
      ? 'brew install qemu'
      : `apt-get install --no-install-recommends ${[...new Set([...packages, 'seabios', 'slirp4netns'])].join(' ')}`
  return `QEMU is not complete on this host: run '${command}'`
}

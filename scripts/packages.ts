// `node scripts/packages.ts [full|long]`: installs what the tests of a suite need from Debian, by apt and saying so;
// where that is not possible, lists the missing ones. Imports no npm package, so that both can be installed at once.
import { hostPrograms } from '../src/operator/host-programs.ts'
import { canInstall, type DebianProgram, install, installLine, missingOf } from '../src/platform/debian.ts'

export type Suite = 'fast' | 'full' | 'long'

export const suiteOf = (argv: readonly string[]): Suite =>
  argv.includes('long') ? 'long' : argv.includes('full') ? 'full' : 'fast'

const fast: readonly DebianProgram[] = [
  ...hostPrograms,
  { name: 'mount', program: 'mount', why: 'small file systems for the tests of a full disk' },
  { name: 'bash', program: 'bash', why: 'completion of commands and names' },
  { name: 'groff-base', program: 'groff', why: 'checking the man pages' },
  { name: 'procps', program: 'ps', why: 'looking for secrets in the arguments of processes' },
  { name: 'curl', program: 'curl', why: 'the requests of documents and old scripts' },
  { name: 'etcd-server', program: 'etcd', why: 'the store of several servers' },
  { name: 'chromium-headless-shell', program: 'chromium-headless-shell', why: 'looking at pages as a person does' },
  { name: 'skopeo', program: 'skopeo', why: 'another client of registries' },
  { name: 'systemd', program: 'systemd-analyze', why: 'judging the units of services' },
  { name: 'docker-registry', program: 'docker-registry', why: 'a registry to push to and pull from' },
]

const full: readonly DebianProgram[] = [
  ...fast,
  { name: 'bsdutils', program: 'script', why: 'a terminal for the tests of questions and answers' },
  { name: 'zsh', program: 'zsh', why: 'completion of commands and names' },
  { name: 'fish', program: 'fish', why: 'the same' },
  { name: 'strace', program: 'strace', why: 'slow disks' },
  { name: 'kubernetes-client', program: 'kubectl', why: 'a client of the Kubernetes API' },
  { name: 'rsync', program: 'rsync', why: 'copying files to guests' },
]

const long: readonly DebianProgram[] = [
  ...full,
  { name: 'haproxy', program: 'haproxy', why: 'the load balancer of the operating page' },
]

/** Returns the exit code. */
async function ensurePackages(suite: Suite): Promise<number> {
  const missing = missingOf({ fast, full, long }[suite])
  if (missing.length === 0) return 0
  const list = missing.map(({ name, why }) => `  ${name}: ${why}`).join('\n')
  if (!canInstall()) {
    console.error(`svc3: the tests need these programs, and only root may install them (with Debian's apt):\n${list}`)
    console.error(`svc3: install them and run the tests again, for example: sudo ${installLine(missing)}`)
    return 1
  }
  console.error(`svc3: installing with apt what the tests need:\n${list}`)
  try {
    await install(missing)
    return 0
  } catch (error) {
    console.error(`svc3: ${(error as Error).message}`)
    return 1
  }
}

if (import.meta.main) process.exit(await ensurePackages(suiteOf(process.argv)))

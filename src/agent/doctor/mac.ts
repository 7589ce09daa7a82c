// Checks of a Mac: whether it can run VMs, stays awake and can isolate guests. The output of macOS's programs is passed in,
// so that the checks can be tested on any host.
import { type Check, ok, problem, warning } from './doctor.ts'

/** Runs a program and returns its output. */
export type RunTool = (program: string, ...words: string[]) => Promise<string>

const minMacos = 13
/** The first version that can suspend VMs, which is how a running VM is saved. */
const suspendingMacos = 14

interface Host {
  readonly platform: string
  readonly arch: string
}

export const macCheck = (ask: RunTool, { platform, arch }: Host): Check => ({
  check: 'virtualisation',
  async look() {
    if (platform !== 'darwin' || arch !== 'arm64')
      return problem(`${platform} on ${arch}`, 'Use --driver qemu here; tart runs on Macs with Apple silicon')
    const version = (await ask('sw_vers', '-productVersion')).trim()
    if ((await ask('sysctl', '-n', 'kern.hv_support')).trim() !== '1')
      return problem(`macOS ${version}, none`, 'Use a physical Mac; this macOS is a VM')
    const found = `macOS ${version}, Apple's Virtualization framework`
    const major = Number(version.split('.')[0])
    if (!(major >= minMacos)) return problem(found, `Update this Mac to macOS ${minMacos} or newer`)
    return major < suspendingMacos
      ? warning(found, `Update to macOS ${suspendingMacos} to suspend VMs; until then, saving a VM restarts it`)
      : ok(found)
  },
})

/** When a Mac sleeps, its VMs stop, too. */
export const sleepCheck = (ask: RunTool): Check => ({
  check: 'sleep',
  async look() {
    const minutes = Number(/^[ \t]*sleep\s+(\d+)/m.exec(await ask('pmset', '-g'))?.[1] ?? 0)
    return minutes === 0
      ? ok('never')
      : warning(`after ${minutes} minutes`, 'sudo pmset -a sleep 0 disksleep 0 displaysleep 0 womp 1 autorestart 1')
  },
})

/** Softnet needs root. Without the set-user-id bit it asks for a password at every start, which a service cannot answer. */
export const softnetCheck = (
  find: () => Promise<{ readonly path: string; readonly mode: number; readonly uid: number } | undefined>,
): Check => ({
  check: 'network',
  async look() {
    const file = await find()
    if (!file)
      return problem('softnet not found', 'Run brew reinstall openai/tools/tart, which includes it, or omit --network')
    if (file.uid === 0 && (file.mode & 0o4000) !== 0) return ok(`isolated by ${file.path}`)
    return problem(
      `${file.path} cannot become root`,
      `Run sudo chown root ${file.path} && sudo chmod u+s ${file.path}, again after each update`,
    )
  },
})

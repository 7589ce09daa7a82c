// Checks of a Mac: whether it can run VMs, stays awake and can isolate guests. The output of macOS's programs is passed in,
// so that the checks can be tested on any host.
import type { Check, Finding } from './doctor.ts'

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
  async look(): Promise<Finding> {
    if (platform !== 'darwin' || arch !== 'arm64')
      return {
        result: 'problem',
        found: `${platform} on ${arch}`,
        advice: 'Use --driver qemu here; tart runs on Macs with Apple silicon',
      }
    const version = (await ask('sw_vers', '-productVersion')).trim()
    const isSupported = (await ask('sysctl', '-n', 'kern.hv_support')).trim() === '1'
    const found = `macOS ${version}, Apple's Virtualization framework`
    const major = Number(version.split('.')[0])
    if (!isSupported)
      return {
        result: 'problem',
        found: `macOS ${version}, none`,
        advice: 'Use a physical Mac; this macOS is a VM',
      }
    if (!(major >= minMacos))
      return { result: 'problem', found, advice: `Update this Mac to macOS ${minMacos} or newer` }
    if (major < suspendingMacos)
      return {
        result: 'warning',
        found,
        advice: `Update to macOS ${suspendingMacos} to suspend VMs; until then, saving a VM restarts it`,
      }
    return { result: 'ok', found }
  },
})

/** When a Mac sleeps, its VMs stop, too. */
export const sleepCheck = (ask: RunTool): Check => ({
  check: 'sleep',
  async look(): Promise<Finding> {
    const minutes = Number(/^[ \t]*sleep\s+(\d+)/m.exec(await ask('pmset', '-g'))?.[1] ?? 0)
    if (minutes === 0) return { result: 'ok', found: 'never' }
    const advice = 'sudo pmset -a sleep 0 disksleep 0 displaysleep 0 womp 1 autorestart 1'
    return { result: 'warning', found: `after ${minutes} minutes`, advice }
  },
})

/** Softnet needs root. Without the set-user-id bit it asks for a password at every start, which a service cannot answer. */
export const softnetCheck = (
  find: () => Promise<{ readonly path: string; readonly mode: number; readonly uid: number } | undefined>,
): Check => ({
  check: 'network',
  async look(): Promise<Finding> {
    const file = await find()
    if (!file)
      return {
        result: 'problem',
        found: 'softnet not found',
        advice: 'Run brew reinstall openai/tools/tart, which includes it, or omit --network',
      }
    if (file.uid === 0 && (file.mode & 0o4000) !== 0) return { result: 'ok', found: `isolated by ${file.path}` }
    const advice = `Run sudo chown root ${file.path} && sudo chmod u+s ${file.path}, again after each update`
    return { result: 'problem', found: `${file.path} cannot become root`, advice }
  },
})

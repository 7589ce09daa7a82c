// What is looked at on a Mac only: whether it can run VMs, whether it stays awake, and whether guests can be sealed off. What
// the programs of macOS say is passed in, so that each answer can be tested anywhere.
import type { Check, Finding } from './doctor.ts'

/** What a program printed. */
export type RunTool = (program: string, ...words: string[]) => Promise<string>

const leastMacos = 13
/** From here on VMs can be suspended, which is how a running one is saved. */
const suspendingMacos = 14

interface Host {
  readonly platform: string
  readonly arch: string
}

/** tart has no other way than Apple's framework. */
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
    if (!(major >= leastMacos))
      return { result: 'problem', found, advice: `Update this Mac to macOS ${leastMacos} or newer` }
    if (major < suspendingMacos)
      return {
        result: 'warning',
        found,
        advice: `Update to macOS ${suspendingMacos} to suspend VMs; until then, saving a VM restarts it`,
      }
    return { result: 'ok', found }
  },
})

/** A Mac that falls asleep takes its VMs with it. */
export const sleepCheck = (ask: RunTool): Check => ({
  check: 'sleep',
  async look(): Promise<Finding> {
    const minutes = Number(/^[ \t]*sleep\s+(\d+)/m.exec(await ask('pmset', '-g'))?.[1] ?? 0)
    if (minutes === 0) return { result: 'ok', found: 'never' }
    const advice = 'sudo pmset -a sleep 0 disksleep 0 displaysleep 0 womp 1 autorestart 1'
    return { result: 'warning', found: `after ${minutes} minutes`, advice }
  },
})

/** Softnet asks for root at every start, which nobody can answer for a service, unless its file says so. */
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

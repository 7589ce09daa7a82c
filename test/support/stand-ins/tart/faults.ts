// What goes wrong in the stand-in for tart: a test writes `stand-in.faults` (JSON) into TART_HOME. Texts and exit codes are
// those of tart and of Apple's framework, from tart's sources and reports of its users.
import fs from 'node:fs'
import path from 'node:path'
import { StandInError } from './folder.ts'
import type { InstallFault } from './installation.ts'

export interface Faults {
  /** Why `create` from an IPSW fails, or that it never ends. */
  readonly install?: InstallFault
  /** Why a start fails. `late`: after this time, in which tart calls the VM running. */
  readonly start?: StartFault | { readonly fault: StartFault; readonly late?: number; readonly times?: number }
  /** Why the memory cannot be saved. tart prints it to its standard output, and ends the VM. */
  readonly suspend?: string
  /** The suspended state does not fit. */
  readonly restore?: true
  /** The guest has an address, and its agent runs, this many seconds after the start (minutes on a Mac). */
  readonly bootSeconds?: number
  /** Which resolver finds the address. Default: `arp` on a bridge, otherwise `dhcp`. */
  readonly resolver?: 'dhcp' | 'arp' | 'agent'
  /** The ARP table has another guest at this VM's address, as after a lease that macOS gave twice. */
  readonly arp?: string
  /** The guest's agent does not answer: `exec` never ends. */
  readonly execHangs?: true
  /** Milliseconds between the start and the line with the address of the screen. */
  readonly vncLate?: number
}

const invalid = (reason: string, code: number, under = ''): string =>
  `Error Domain=VZErrorDomain Code=${code} "${reason}" UserInfo={NSLocalizedFailureReason=${reason}${under}}`

const startTexts = {
  limit: 'The number of VMs exceeds the system limit',
  'keychain-1': invalid('The virtual machine failed to start.', 1),
  'keychain-9':
    'Error Domain=VZErrorDomain Code=-9 "Failed to create security key" UserInfo={NSDebugDescription=Failed to get current host key}',
  storage: invalid(
    'Failed to lock auxiliary storage.',
    2,
    ', NSUnderlyingError=0x6 {Error Domain=NSPOSIXErrorDomain Code=35 "Resource temporarily unavailable"}',
  ),
  softnet: 'InitializationFailed(why: "softnet not found in PATH")',
  bridge: 'Error: no bridge interfaces matched "["en9"]", available interfaces: ["en0 (or \\"Ethernet\\")"]',
  host: 'error: host macOS version is outdated to run this virtual machine',
} as const
type StartFault = keyof typeof startTexts

const file = (): string => path.join(process.env.TART_HOME ?? '', 'stand-in.faults')

export function readFaults(): Faults {
  return fs.existsSync(file()) ? (JSON.parse(fs.readFileSync(file(), 'utf8')) as Faults) : {}
}

export async function failStart(): Promise<void> {
  const faults = readFaults()
  if (!faults.start) return
  const {
    fault,
    late = 0,
    times = Infinity,
  } = typeof faults.start === 'string' ? { fault: faults.start } : faults.start
  if (times <= 0) return
  if (times !== Infinity)
    fs.writeFileSync(file(), JSON.stringify({ ...faults, start: { fault, late, times: times - 1 } }))
  await new Promise((resolve) => setTimeout(resolve, late))
  throw new StandInError(startTexts[fault])
}

export const restoreText = invalid('The virtual machine failed to restore.', 12)

// What tart, Softnet and Apple's framework print when a VM does not start, and what the user is told about it. The texts are
// from tart's sources and from reports of its users; no Mac has shown them to svc3.

type StartErrorKind = 'limit' | 'keychain' | 'storage' | 'softnet' | 'bridge' | 'host' | 'running' | 'unnamed'

interface KnownError {
  readonly kind: StartErrorKind
  readonly pattern: RegExp
  readonly advice: string
}

const unlock =
  "log in as the agent's user at the screen of this Mac and turn on automatic login, or run " +
  "'security unlock-keychain login.keychain' as that user; then start the VM again"

/** The first row that matches counts. */
const knownErrors: readonly KnownError[] = [
  {
    kind: 'limit',
    pattern: /number of (VMs|virtual machines) exceeds|maximum supported number of active virtual machines/i,
    advice: 'this Mac runs as many VMs with macOS as Apple allows: stop one of them, then start this one again',
  },
  {
    kind: 'keychain',
    pattern: /current host key|SecKeyCreateRandomKey|Failed to generate keypair|not allowed with the Security Server/i,
    advice: `macOS guests need the unlocked login keychain of the agent's user: ${unlock}`,
  },
  {
    kind: 'storage',
    pattern: /Failed to lock auxiliary storage/i,
    advice:
      "another process holds the VM's NVRAM: find it with 'lsof -c com.apple.Virtualization', end it, then start the VM again",
  },
  {
    kind: 'softnet',
    pattern: /softnet not found/i,
    advice:
      "Softnet is not installed: run 'brew trust openai/tools && brew install openai/tools/softnet', then " +
      `'sudo chown root "$(realpath "$(which softnet)")" && sudo chmod u+s "$(realpath "$(which softnet)")"'`,
  },
  {
    kind: 'softnet',
    pattern: /Softnet (failed|process terminated)/i,
    advice:
      "Softnet did not run, most often because it cannot become root: run 'sudo chown root " +
      `"$(realpath "$(which softnet)")" && sudo chmod u+s "$(realpath "$(which softnet)")"'`,
  },
  {
    kind: 'bridge',
    pattern: /no bridge interfaces matched/i,
    advice:
      "this Mac has no such network interface: choose one of 'networksetup -listallhardwareports' as apple.bridge in agent.json, " +
      "then run 'sudo launchctl kickstart -k system/io.svc3.agent'",
  },
  {
    kind: 'host',
    pattern: /host macOS version is outdated/i,
    advice:
      "the image needs a newer macOS on this Mac: drain the node and run 'sudo softwareupdate --install --all --restart'",
  },
  {
    kind: 'running',
    pattern: /is already running!/i,
    advice:
      'a process that the agent did not start runs this VM: find it with \'ps -axo pid,user,command | grep "tart run"\', and end it',
  },
  {
    kind: 'unnamed',
    pattern: /VZErrorDomain Code=1\b/,
    advice: `Apple's framework gives no reason. Most often the login keychain is locked: ${unlock}`,
  },
]

export class StartError extends Error {
  override readonly name = 'StartError'
  /** Undefined for an error that is not in the table. */
  readonly kind: StartErrorKind | undefined

  /** `said`: the last output of tart. */
  constructor(said: string) {
    const known = knownErrors.find(({ pattern }) => pattern.test(said))
    const output = said === '' ? '' : `tart: ${said}`
    super(known ? `${known.advice} (${output})` : `tart did not start the VM${said === '' ? '' : `: ${said}`}`)
    this.kind = known?.kind
  }

  /** Whether the host has to be mended first: neither another attempt nor a boot without the suspended state helps. */
  get isOfHost(): boolean {
    return this.kind !== undefined && this.kind !== 'unnamed'
  }
}

/** The framework holds the files of a VM, and may count it, for some seconds after its end. */
export const mayPass = (error: unknown): boolean =>
  error instanceof StartError && (error.kind === 'storage' || error.kind === 'limit')

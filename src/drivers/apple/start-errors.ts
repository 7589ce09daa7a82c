// What tart, Softnet and Apple's framework print when a VM does not start, and what the user is told about it. The texts are
// from tart's sources and from reports of its users; no Mac has shown them to svc3.

const unlock =
  "log in as the agent's user at the screen of this Mac and turn on automatic login, or run " +
  "'security unlock-keychain login.keychain' as that user; then start the VM again"

const softnet = '"$(realpath "$(which softnet)")"'
const makeRoot = `'sudo chown root ${softnet} && sudo chmod u+s ${softnet}'`

type Kind = 'limit' | 'storage' | 'unnamed'

/** Advice for each pattern. The first that matches counts. */
const knownErrors: readonly (readonly [RegExp, string, Kind?])[] = [
  [
    /number of (VMs|virtual machines) exceeds|maximum supported number of active virtual machines/i,
    'this Mac runs as many VMs with macOS as Apple allows: stop one of them, then start this one again',
    'limit',
  ],
  [
    /current host key|SecKeyCreateRandomKey|Failed to generate keypair|not allowed with the Security Server/i,
    `macOS guests need the unlocked login keychain of the agent's user: ${unlock}`,
  ],
  [
    /Failed to lock auxiliary storage/i,
    "another process holds the VM's NVRAM: find it with 'lsof -c com.apple.Virtualization', end it, then start the VM again",
    'storage',
  ],
  [
    /softnet not found/i,
    `Softnet is not installed: run 'brew trust openai/tools && brew install openai/tools/softnet', then ${makeRoot}`,
  ],
  [
    /Softnet (failed|process terminated)/i,
    `Softnet did not run, most often because it cannot become root: run ${makeRoot}`,
  ],
  [
    /no bridge interfaces matched/i,
    "this Mac has no such network interface: choose one of 'networksetup -listallhardwareports' as apple.bridge in agent.json, " +
      "then run 'sudo launchctl kickstart -k system/io.svc3.agent'",
  ],
  [
    /host macOS version is outdated/i,
    "the image needs a newer macOS on this Mac: drain the node and run 'sudo softwareupdate --install --all --restart'",
  ],
  [
    /is already running!/i,
    'a process that the agent did not start runs this VM: find it with \'ps -axo pid,user,command | grep "tart run"\', and end it',
  ],
  [
    /VZErrorDomain Code=1\b/,
    `Apple's framework gives no reason. Most often the login keychain is locked: ${unlock}`,
    'unnamed',
  ],
]

export class StartError extends Error {
  override readonly name = 'StartError'
  readonly kind: Kind | undefined
  /** Whether the host has to be mended first: neither another attempt nor a boot without the suspended state helps. */
  readonly isOfHost: boolean

  /** `said`: the last output of tart. */
  constructor(said: string) {
    const [, advice, kind] = knownErrors.find(([pattern]) => pattern.test(said)) ?? []
    super(
      advice === undefined ? `tart did not start the VM${said === '' ? '' : `: ${said}`}` : `${advice} (tart: ${said})`,
    )
    this.kind = kind
    this.isOfHost = advice !== undefined && kind !== 'unnamed'
  }
}

/** The framework holds the files of a VM, and may count it, for some seconds after its end. */
export const mayPass = (error: unknown): boolean =>
  error instanceof StartError && (error.kind === 'storage' || error.kind === 'limit')

// Checks of a Mac: whether it can run VMs, what the agent's session may do there, and what stops VMs after a while. The
// output of macOS's programs is passed in, so that the checks can be tested on any host.
import fs from 'node:fs/promises'
import path from 'node:path'
import { missingInTart } from '../../drivers/apple/interface.ts'
import { succeeds } from '../../platform/succeeds.ts'
import { counted } from '../../rules/sizes.ts'
import { type Check, type CheckResult, ok, problem, warning } from './doctor.ts'

/** Runs a program and returns its output. */
export type RunTool = (program: string, ...words: string[]) => Promise<string>

const minMacos = 13
/** The first version that can suspend VMs, which is how a running VM is saved. */
const suspendingMacos = 14
/** tart's formula depends on that of Softnet, which requires this version. */
const formulaMacos = 15
/** Since this version macOS VMs need an unlocked keychain, and programs need leave for the local network. */
const guardedMacos = 15
/** Macs with these processors do not boot macOS before 13.4. */
const minChipOfNewGuests = 4

export interface MacHost {
  readonly platform: string
  readonly arch: string
  readonly dataDir: string
  readonly imageDir: string
  /** The account that VMs run in. */
  readonly user: string
  readonly uid: number
  readonly home: string
  /** The program that listens on the ports of VMs. */
  readonly node: string
  /** The network of guests. */
  network(): Promise<{ readonly kind: 'shared' | 'sealed' } | { readonly kind: 'bridged'; readonly card: string }>
  findSoftnet(): Promise<{ readonly path: string; readonly mode: number; readonly uid: number } | undefined>
  /** Returns the code of the error. */
  connect(address: string): Promise<string | undefined>
}

const majorOf = (version: string): number => Number(version.split('.')[0])
const macosVersion = async (ask: RunTool): Promise<string> => (await ask('sw_vers', '-productVersion')).trim()

/** Undefined if the setting does not exist, or cannot be read. */
const setting = (ask: RunTool, domain: string, key: string): Promise<string | undefined> =>
  ask('defaults', 'read', `/Library/Preferences/${domain}`, key).then(
    (text) => text.trim(),
    () => undefined,
  )

const maxLeaseSeconds = 3_600
const defaultLeaseSeconds = 86_400
const sharingSettings = 'SystemConfiguration/com.apple.InternetSharing.default.plist'

const privateAddress = /^(10|192\.168|172\.(1[6-9]|2\d|3[01]))\./
const ranges = '"10.0.0.0/8" "172.16.0.0/12" "192.168.0.0/16"'
const localNetwork = 'sudo defaults write com.apple.network.local-network'
const allowLocal = ['Ethernet', 'WiFi']
  .map((kind) => `${localNetwork} Allowed${kind}LocalNetworkAddresses -array ${ranges}`)
  .join(' && ')

const firewall = '/usr/libexec/ApplicationFirewall/socketfilterfw'

const machineProcess = 'com.apple.Virtualization.VirtualMachine'

type Looks = Readonly<Record<string, (ask: RunTool, mac: MacHost) => Promise<CheckResult>>>

const appleLooks: Looks = {
  async virtualisation(ask, { platform, arch }) {
    if (platform !== 'darwin' || arch !== 'arm64')
      return problem(`${platform} on ${arch}`, 'Use --driver qemu here; tart runs on Macs with Apple silicon')
    const version = await macosVersion(ask)
    if ((await ask('sysctl', '-n', 'kern.hv_support')).trim() !== '1')
      return { ...problem(`macOS ${version}, none`, 'Use a physical Mac; this macOS is a VM'), preventsMacos: true }
    const chip = await ask('sysctl', '-n', 'machdep.cpu.brand_string').catch(() => '')
    const isNew = Number(/Apple M(\d+)/.exec(chip)?.[1] ?? 0) >= minChipOfNewGuests
    const guests = isNew ? `; ${chip.trim()} boots guests with macOS 13.4 or newer only` : ''
    const found = `macOS ${version}, Apple's Virtualization framework${guests}`
    const major = majorOf(version)
    if (!(major >= minMacos)) return problem(found, `Update this Mac to macOS ${formulaMacos} or newer`)
    if (major >= formulaMacos) return ok(found)
    const saving = major < suspendingMacos ? '. Until then, saving a VM restarts it' : ''
    return warning(found, `Update to macOS ${formulaMacos}: Homebrew installs tart and Softnet only there${saving}`)
  },

  /**
   * Apple's framework makes a key for each macOS VM in the login keychain. The keychain is unlocked by a login at the screen
   * or by its password. The question about the keychain fails at once in the session of a daemon, which cannot ask back.
   */
  async 'login session'(ask, { user, uid, home }) {
    const keychain = path.join(home, 'Library/Keychains/login.keychain-db')
    const [version, screen, session, isLoggedIn, isUnlocked] = await Promise.all([
      macosVersion(ask),
      ask('stat', '-f', '%Su', '/dev/console'),
      ask('launchctl', 'managername').catch(() => 'unknown'),
      // Exists for a login behind that of another user, too: by Screen Sharing or fast user switching.
      succeeds(ask('launchctl', 'print', `gui/${uid}`)),
      succeeds(ask('security', 'show-keychain-info', keychain)),
    ])
    const atScreen = screen.trim() === 'root' ? 'no user' : screen.trim()
    const words = `${atScreen} at the screen, login keychain ${isUnlocked ? 'unlocked' : 'locked or missing'}`
    const found = `${words} (${session.trim()} session of ${user})`
    if (atScreen === user || isLoggedIn || isUnlocked || majorOf(version) < guardedMacos) return ok(found)
    const advice = `Log in as ${user} at the screen or by Screen Sharing. Without a screen, run as ${user} after each restart: security unlock-keychain ${keychain}`
    return { ...problem(found, advice), preventsMacos: true }
  },

  async 'automatic login'(ask, { user }) {
    const name = await setting(ask, 'com.apple.loginwindow', 'autoLoginUser')
    // Over SSH, sysadminctl may set the name without the password.
    const hasPassword = await succeeds(ask('stat', '/etc/kcpassword'))
    if (name === user && hasPassword) return ok(user)
    const found = name === undefined ? 'off' : hasPassword ? `as ${name}` : `as ${name}, without a stored password`
    return warning(
      found,
      `At the Mac's screen, run sudo sysadminctl -autologin set -userName ${user} -password - (asks for the password)`,
    )
  },

  /** tart lists only the VMs of the account that it runs in. */
  async 'other accounts'(ask, { uid }) {
    const lines = (await ask('ps', '-axo', 'uid=,user=,comm='))
      .split('\n')
      .filter((line) => line.endsWith(machineProcess))
    const owners = lines.map((line) => line.trim().split(/\s+/)).filter(([owner]) => Number(owner) !== uid)
    if (owners.length === 0) return ok('run no VMs')
    const names = [...new Set(owners.map(([, name]) => name))].join(', ')
    return warning(
      `${names} ${owners.length === 1 ? 'runs' : 'run'} ${counted(owners.length, 'VM')}`,
      'Stop these VMs. Apple allows two macOS VMs per Mac, over all accounts',
    )
  },

  /** About 253 guests have addresses of the Mac, each until its lease ends. Softnet and bridges have other leases. */
  async 'dhcp leases'(ask, { network }) {
    if ((await network()).kind !== 'shared') return ok('not needed by this network')
    const bootpd = await setting(ask, sharingSettings, 'bootpd')
    const seconds = Number(/DHCPLeaseTimeSecs"? = "?(\d+)/.exec(bootpd ?? '')?.[1] ?? defaultLeaseSeconds)
    if (seconds <= maxLeaseSeconds) return ok(`${seconds} s`)
    return warning(
      `${seconds} s: after some 250 VMs in that time, new ones get no address, or that of another`,
      `Run sudo defaults write /Library/Preferences/${sharingSettings} bootpd -dict DHCPLeaseTimeSecs -int 600`,
    )
  },

  /** macOS refuses what it blocks as if there were no route. */
  async 'local network'(ask, { connect }) {
    if (majorOf(await macosVersion(ask)) < guardedMacos) return ok('not guarded by this macOS')
    const route = await ask('route', '-n', 'get', 'default').catch(() => '')
    const [, gateway = ''] = /gateway: (\S+)/.exec(route) ?? []
    const [, card = ''] = /interface: (\S+)/.exec(route) ?? []
    if (!privateAddress.test(gateway)) return ok('not tried: no private address of a router is known')
    return (await connect(gateway)) === 'EHOSTUNREACH'
      ? problem(
          `${gateway} on ${card} cannot be reached (EHOSTUNREACH), very probably because of Local Network privacy: VMs cannot either`,
          `Run ${allowLocal}, and restart the Mac`,
        )
      : ok(`${gateway} on ${card} can be reached`)
  },

  /** The parser of tart's arguments can list commands and options. */
  async 'tart options'(ask) {
    const missing = await ask('tart', '--experimental-dump-help')
      .then(missingInTart)
      .catch(() => undefined)
    if (missing === undefined) return ok('not told by this version of tart')
    return missing.length === 0
      ? ok('all that svc3 uses')
      : warning(`tart has no ${missing.join(', ')}`, 'Run brew upgrade openai/tools/tart, or report this to svc3')
  },

  /** Softnet needs root. Without the set-user-id bit it asks for a password at every start, which a service cannot answer. */
  async network(_, { network, findSoftnet }) {
    const chosen = await network()
    if (chosen.kind === 'bridged') return ok(`a bridge on ${chosen.card}`)
    if (chosen.kind === 'shared') return ok('shared with the Mac')
    const file = await findSoftnet()
    if (!file)
      return problem(
        'softnet not found',
        'Run brew trust openai/tools (Homebrew 6 or newer), then brew install openai/tools/softnet (macOS 15 or newer); or omit --network',
      )
    if (file.uid === 0 && (file.mode & 0o4000) !== 0) return ok(`isolated by ${file.path}`)
    return problem(
      `${file.path} cannot become root`,
      `Run sudo chown root ${file.path} && sudo chmod u+s ${file.path}, again after each update`,
    )
  },

  /** macOS keeps daemons from external volumes. Between volumes APFS cannot clone files. */
  async volumes(_, { dataDir, imageDir }) {
    const folders = await Promise.all([dataDir, imageDir].map((each) => fs.realpath(each).catch(() => each)))
    const outside = folders.find((each) => each.startsWith('/Volumes/'))
    if (outside !== undefined)
      return warning(
        `${outside} is on another volume than macOS, which keeps services from external disks`,
        'Move it to the internal disk, or allow node in System Settings → Privacy & Security → Full Disk Access',
      )
    const [data, images] = await Promise.all(folders.map((each) => fs.stat(each).catch(() => undefined)))
    return data && images && data.dev !== images.dev
      ? warning(
          `${imageDir} and ${dataDir} are on different volumes: each VM copies its whole image`,
          'Use one volume for --images and --data',
        )
      : ok('one volume for images and VMs')
  },
}

/** Of any Mac, whatever runs the VMs. */
const settingLooks: Looks = {
  /** When a Mac sleeps, its VMs stop, too. */
  async sleep(ask) {
    const minutes = Number(/^[ \t]*sleep\s+(\d+)/m.exec(await ask('pmset', '-g'))?.[1] ?? 0)
    if (minutes === 0) return ok('never')
    return warning(
      `after ${minutes} minutes`,
      'Run sudo pmset -a sleep 0 disksleep 0 displaysleep 0 womp 1 autorestart 1',
    )
  },

  async filevault(ask) {
    if (!/FileVault is On/.test(await ask('fdesetup', 'status'))) return ok('off')
    const found = 'on: after a restart the Mac waits for a password, and no login is automatic'
    return warning(found, 'Run sudo fdesetup disable. To keep it, restart the Mac with sudo fdesetup authrestart')
  },

  async 'automatic updates'(ask) {
    const [domain, key] = ['com.apple.SoftwareUpdate', 'AutomaticallyInstallMacOSUpdates']
    if ((await setting(ask, domain, key)) !== '1') return ok('off')
    const command = `sudo defaults write /Library/Preferences/${domain} ${key} -bool false`
    return warning('on: macOS restarts this Mac and its VMs', `Run ${command}`)
  },

  async firewall(ask, { node }) {
    if (/disabled/i.test(await ask(firewall, '--getglobalstate'))) return ok('off')
    if (/enabled/i.test(await ask(firewall, '--getblockall')))
      return warning('blocks all connections to this Mac, and so to its VMs', `Run sudo ${firewall} --setblockall off`)
    if (/permitted|allowed/i.test(await ask(firewall, '--getappblocked', node))) return ok(`on, allows ${node}`)
    return warning(
      `on, and does not allow ${node}, through which VMs are reached`,
      `Run sudo ${firewall} --add ${node} && sudo ${firewall} --unblockapp ${node}`,
    )
  },
}

const checksOf =
  (looks: Looks) =>
  (ask: RunTool, mac: MacHost): readonly Check[] =>
    Object.entries(looks).map(([check, look]) => ({ check, look: () => look(ask, mac) }))

export const appleChecks = checksOf(appleLooks)
export const settingChecks = checksOf(settingLooks)

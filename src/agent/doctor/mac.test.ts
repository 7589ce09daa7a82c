// Checks of a Mac, on the output that macOS's programs write. No Mac was here: the texts are those that other projects quote.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { type Check, examine } from './doctor.ts'
import { appleChecks, type MacHost, type RunTool, settingChecks } from './mac.ts'

const one = async (check: Check) => {
  const [found] = await examine([check], new AbortController().signal)
  assert.ok(found)
  return found
}

const host: MacHost = {
  platform: 'darwin',
  arch: 'arm64',
  user: 'admin',
  uid: 501,
  home: '/Users/admin',
  node: '/opt/homebrew/bin/node',
  dataDir: '/var/lib/svc3-agent',
  imageDir: '/var/lib/svc3-agent/images',
  network: async () => ({ kind: 'shared' }),
  findSoftnet: async () => undefined,
  connect: async () => undefined,
}

/** Programs of a Mac by their command lines. One that is not listed fails, as `defaults` does for a missing key. */
const tools =
  (outputs: Readonly<Record<string, string>>): RunTool =>
  async (...words) => {
    const output = outputs[words.join(' ')]
    if (output === undefined) throw new Error(`${words.join(' ')} failed with exit code 1`)
    return output
  }

type Case = readonly [
  name: string,
  outputs: Readonly<Record<string, string>>,
  result: 'ok' | 'warning' | 'problem',
  found: RegExp,
  advice?: RegExp,
]

async function hold(checkOf: (ask: RunTool) => Check | undefined, cases: readonly Case[]): Promise<void> {
  for (const [name, outputs, result, found, advice] of cases) {
    const check = checkOf(tools(outputs))
    assert.ok(check, name)
    const seen = await one(check)
    assert.equal(seen.result, result, `${name}: ${seen.found}`)
    assert.match(seen.found, found, name)
    if (advice) assert.match(seen.advice ?? '', advice, name)
    else assert.equal(seen.advice, undefined, name)
  }
}

const named = (checks: readonly Check[], name: string) => checks.find(({ check }) => check === name)
const apple =
  (name: string, change: Partial<MacHost> = {}) =>
  (ask: RunTool) =>
    named(appleChecks(ask, { ...host, ...change }), name)
const look = (name: string, change: Partial<MacHost>, outputs: Readonly<Record<string, string>> = {}) => {
  const check = apple(name, change)(tools(outputs))
  assert.ok(check)
  return one(check)
}
const version = (text: string) => ({ 'sw_vers -productVersion': `${text}\n` })

describe('checks of a Mac', () => {
  it('the check of virtualisation names the version that Homebrew needs, and what new processors boot', async () => {
    const support = { 'sysctl -n kern.hv_support': '1\n' }
    await hold(apple('virtualisation'), [
      ['current', { ...version('15.6'), ...support }, 'ok', /^macOS 15\.6, Apple's Virtualization framework$/],
      [
        'M4',
        { ...version('15.6'), ...support, 'sysctl -n machdep.cpu.brand_string': 'Apple M4 Pro\n' },
        'ok',
        /Apple M4 Pro boots guests with macOS 13\.4 or newer only$/,
      ],
      [
        'M1',
        { ...version('15.6'), ...support, 'sysctl -n machdep.cpu.brand_string': 'Apple M1\n' },
        'ok',
        /framework$/,
      ],
      [
        '14',
        { ...version('14.7'), ...support },
        'warning',
        /14\.7/,
        /macOS 15: Homebrew installs tart and Softnet only there$/,
      ],
      ['13', { ...version('13.6'), ...support }, 'warning', /13\.6/, /saving a VM restarts it$/],
      ['12', { ...version('12.7'), ...support }, 'problem', /12\.7/, /Update this Mac to macOS 15/],
      ['guest', { ...version('15.6'), 'sysctl -n kern.hv_support': '0\n' }, 'problem', /none/, /this macOS is a VM/],
    ])
    const guest = await look('virtualisation', {}, { ...version('15.6'), 'sysctl -n kern.hv_support': '0\n' })
    assert.equal(guest.preventsMacos, true)
    for (const other of [
      { ...host, arch: 'x64' },
      { ...host, platform: 'linux' },
    ])
      assert.match((await look('virtualisation', other)).advice ?? '', /Use --driver qemu/)
  })

  it('the check of the login session prevents macOS VMs only without a login and without a keychain', async () => {
    const keychain = 'security show-keychain-info /Users/admin/Library/Keychains/login.keychain-db'
    const screen = (user: string) => ({ 'stat -f %Su /dev/console': `${user}\n`, 'launchctl managername': 'System\n' })
    const check = apple('login session')
    const sequoia = version('15.1')
    await hold(check, [
      ['at the screen', { ...sequoia, ...screen('admin') }, 'ok', /^admin at the screen, .* \(System session of admin\)$/],
      ['keychain only', { ...sequoia, ...screen('root'), [keychain]: '' }, 'ok', /^no user at the screen, login keychain unlocked/],
      ['older macOS', { ...version('14.7'), ...screen('root') }, 'ok', /locked or missing/],
      ['behind another user', { ...sequoia, ...screen('guest'), 'launchctl print gui/501': 'gui/501 = {' }, 'ok', /^guest at/],
      ['neither', { ...sequoia, ...screen('root') }, 'problem', /locked or missing/, /Log in as admin .*security unlock-keychain \/Users/],
      ['another user', { ...sequoia, ...screen('guest') }, 'problem', /^guest at the screen/, /Log in as admin/],
    ]) // biome-ignore format: a table
    const blocked = check(tools({ ...sequoia, ...screen('root') }))
    assert.equal(blocked && (await one(blocked)).preventsMacos, true)
  })

  it('the check of automatic login requires the account of the VMs and its stored password', async () => {
    const login = 'defaults read /Library/Preferences/com.apple.loginwindow autoLoginUser'
    const stored = { 'stat /etc/kcpassword': '' }
    const mend = /sudo sysadminctl -autologin set -userName admin -password -/
    await hold(apple('automatic login'), [
      ['on', { [login]: 'admin\n', ...stored }, 'ok', /^admin$/],
      ['off', {}, 'warning', /^off$/, mend],
      ['another', { [login]: 'guest\n', ...stored }, 'warning', /^as guest$/, mend],
      ['half', { [login]: 'admin\n' }, 'warning', /without a stored password/, mend],
    ])
  })

  it('the check of other accounts counts their VMs, which tart does not list', async () => {
    const vm = '/System/Library/Frameworks/Virtualization.framework/Versions/A/XPCServices/com.apple.Virtualization.VirtualMachine.xpc/Contents/MacOS/com.apple.Virtualization.VirtualMachine' // biome-ignore format: a path
    const ps = (...owners: string[]) => ({
      'ps -axo uid=,user=,comm=': ['    0 root     /sbin/launchd', ...owners.map((owner) => `${owner} ${vm}`), ''].join(
        '\n',
      ),
    })
    await hold(apple('other accounts'), [
      ['own', ps('  501 admin   '), 'ok', /^run no VMs$/],
      ['one other', ps('  501 admin', '  502 mia'), 'warning', /^mia runs 1 VM$/, /Stop these VMs/],
    ])
  })

  it('the check of leases warns beyond an hour, where guests share the network', async () => {
    const line = 'defaults read /Library/Preferences/SystemConfiguration/com.apple.InternetSharing.default.plist bootpd'
    const mend = /sudo defaults write .*InternetSharing\.default\.plist bootpd -dict DHCPLeaseTimeSecs -int 600$/
    await hold(apple('dhcp leases'), [
      ['default', {}, 'warning', /^86400 s/, mend],
      ['long', { [line]: '{\n    DHCPLeaseTimeSecs = 7200;\n}\n' }, 'warning', /^7200 s/, mend],
      ['set', { [line]: '{\n    DHCPLeaseTimeSecs = 600;\n}\n' }, 'ok', /^600 s$/],
    ])
    assert.equal((await look('dhcp leases', { network: async () => ({ kind: 'sealed' }) })).result, 'ok')
  })

  it('the check of the options of tart names what the installed version lacks, where it tells', async () => {
    const line = 'tart --experimental-dump-help'
    await hold(apple('tart options'), [
      ['silent', {}, 'ok', /not told/],
      ['no JSON', { [line]: 'OVERVIEW: tart' }, 'ok', /not told/],
      ['other', { [line]: '{"command":{"commandName":"tart"}}' }, 'warning', /^tart has no run, set/, /brew upgrade/],
    ])
  })

  it('the check of the local network takes only EHOSTUNREACH of a private router for the privacy of macOS', async () => {
    const route = (gateway: string) => ({
      'route -n get default': `   route to: default\n    gateway: ${gateway}\n  interface: en0\n      flags: <UP,GATEWAY>\n`,
    })
    const at = (code: string | undefined) => apple('local network', { connect: async () => code })
    const here = { ...version('15.1'), ...route('192.168.1.1') }
    await hold(at('EHOSTUNREACH'), [
      ['blocked', here, 'problem', /^192\.168\.1\.1 on en0 cannot be reached/, /AllowedEthernet.* && .*AllowedWiFi.*restart the Mac$/],
      ['older macOS', { ...version('14.7'), ...route('192.168.1.1') }, 'ok', /not guarded/],
      ['public router', { ...version('15.1'), ...route('203.0.113.1') }, 'ok', /not tried/],
      ['no route', version('15.1'), 'ok', /not tried/],
    ]) // biome-ignore format: a table
    for (const code of ['ECONNREFUSED', 'EHOSTDOWN', 'ABORT_ERR', undefined])
      assert.equal((await look('local network', { connect: async () => code }, here)).result, 'ok', code)
  })

  it('checks of settings name the command that changes each', async () => {
    const setting = (name: string) => (ask: RunTool) => named(settingChecks(ask, host), name)
    const said = (minutes: number) => ({
      'pmset -g': `System-wide power settings:\n sleep                ${minutes} (sleep prevented)\n`,
    })
    await hold(setting('sleep'), [
      ['never', said(0), 'ok', /^never$/],
      ['soon', said(10), 'warning', /^after 10 minutes$/, /^Run sudo pmset -a sleep 0/],
    ])
    await hold(setting('filevault'), [
      ['off', { 'fdesetup status': 'FileVault is Off.\n' }, 'ok', /^off$/],
      ['on', { 'fdesetup status': 'FileVault is On.\n' }, 'warning', /^on/, /sudo fdesetup disable/],
    ])
    const updates = 'defaults read /Library/Preferences/com.apple.SoftwareUpdate AutomaticallyInstallMacOSUpdates'
    await hold(setting('automatic updates'), [
      ['unset', {}, 'ok', /^off$/],
      ['off', { [updates]: '0\n' }, 'ok', /^off$/],
      ['on', { [updates]: '1\n' }, 'warning', /^on/, /AutomaticallyInstallMacOSUpdates -bool false$/],
    ])
    const program = '/usr/libexec/ApplicationFirewall/socketfilterfw'
    const [state, all, app] = [
      `${program} --getglobalstate`,
      `${program} --getblockall`,
      `${program} --getappblocked ${host.node}`,
    ]
    const on = {
      [state]: 'Firewall is enabled. (State = 1)\n',
      [all]: 'Firewall has block all state set to disabled.\n',
    }
    const answer = 'Incoming connection to the application is'
    await hold(setting('firewall'), [
      ['off', { [state]: 'Firewall is disabled. (State = 0)\n' }, 'ok', /^off$/],
      ['allowed', { ...on, [app]: `${answer} permitted\n` }, 'ok', /^on, allows/],
      [
        'blocked',
        { ...on, [app]: `${answer} blocked\n` },
        'warning',
        /does not allow/,
        /--add \S+node && .*--unblockapp/,
      ],
      [
        'unknown',
        { ...on, [app]: 'The application is not part of the firewall\n' },
        'warning',
        /does not allow/,
        /--add/,
      ],
      [
        'all',
        { ...on, [all]: 'Firewall has block all state set to enabled.\n' },
        'warning',
        /all/,
        /--setblockall off/,
      ],
    ])
  })

  it('the check of volumes knows external disks, and images apart from VMs', async () => {
    assert.match((await look('volumes', { dataDir: '/Volumes/fast/svc3' })).advice ?? '', /Full Disk Access/)
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-volumes-'))
    assert.equal((await look('volumes', { dataDir: folder, imageDir: path.join(folder, 'none') })).result, 'ok')
    assert.match((await look('volumes', { dataDir: folder, imageDir: '/proc' })).found, /different volumes/)
    await fs.rmdir(folder)
  })

  it('the check of the network requires a Softnet that can become root', async () => {
    const file = (mode: number, uid: number) => async () => ({ path: '/opt/softnet', mode, uid })
    const sealed = (findSoftnet: MacHost['findSoftnet']) =>
      look('network', { network: async () => ({ kind: 'sealed' }), findSoftnet })
    assert.equal((await look('network', {})).found, 'shared with the Mac')
    assert.equal((await sealed(file(0o104755, 0))).result, 'ok')
    const missing = await sealed(async () => undefined)
    assert.match(missing.advice ?? '', /brew trust openai\/tools .*brew install openai\/tools\/softnet \(macOS 15/)
    for (const found of [file(0o100755, 0), file(0o104755, 501)])
      assert.match((await sealed(found)).advice ?? '', /sudo chown root \/opt\/softnet && sudo chmod u\+s/)
  })
})

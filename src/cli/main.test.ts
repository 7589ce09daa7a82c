// Dispatch, usage errors, and commands that need no service.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { run } from '../../test/support/rigs/cli-host.ts'
import { startFakeService } from '../../test/support/stand-ins/api.ts'
import { commands } from './commands/index.ts'

const lines = (text: string): string[] => text.split('\n').slice(0, -1)

describe('dispatch', () => {
  it('help is shown, and exits 0', async () => {
    const root = await run([])
    assert.equal(root.exitCode, 0)
    assert.match(root.stdout, /registrycredential, regcred/)
    for (const words of [['--help'], ['-h'], ['help'], ['--no-color'], ['-n', 'x', '--help']]) {
      assert.equal((await run(words)).stdout, root.stdout)
    }
    const group = await run(['regcred'])
    for (const words of ['regcred --help', 'regcred -h', 'help regcred', '-h regcred']) {
      assert.equal((await run(words.split(' '))).stdout, group.stdout, words)
    }
    const add = await run(['regcred', 'add', '--help'])
    assert.match(add.stdout, /Usage: svc3 regcred add SERVER \[OPTIONS\]/)
    for (const words of [
      'help regcred add',
      'regcred -h add',
      'regcred add https://x -u a -h',
      'regcred add --bad -h',
    ]) {
      assert.equal((await run(words.split(' '))).stdout, add.stdout, words)
    }
  })

  it('svc3 --help shows every command, those of VMs with the VMs and those of the cluster with the cluster', async () => {
    const { stdout } = await run(['--help'])
    const listed = (title: string) =>
      (stdout.split(`\n${title}:\n`)[1]?.split('\n\n')[0] ?? '')
        .split('\n')
        .flatMap((line) => /^ {2}([a-z-]+)/.exec(line)?.[1] ?? [])
    const all = ['Virtual machines', 'Access', 'Cluster', 'This program'].map(listed)
    const visible = Object.entries(commands).flatMap(([word, { hidden }]) => (hidden ? [] : [word]))
    assert.deepEqual(all.flat().sort(), visible.sort())
    assert.deepEqual(all.at(-1), ['config', 'completion', 'migrate', 'version', 'help'])
  })

  it('help shows the name that the program was called by', async () => {
    const { stdout } = await run(['regcred', 'list', '-h'], { calledAs: 'orka3' })
    assert.match(stdout, /Usage: orka3 regcred list/)
    assert.match(stdout, / {2}orka3 regcred list -n/)
    assert.match(
      (await run(['nope'], { calledAs: 'orka3' })).stderr,
      /^orka3: .*\norka3: Run orka3 --help to see the commands\n$/,
    )
  })

  const usage = [
    ['regcrd', 'Unknown command "regcrd". Did you mean regcred?'],
    ['xyzzy', 'Unknown command "xyzzy"'],
    ['regcred ad', 'Unknown command "ad" for svc3 regcred. Did you mean add?'],
    ['vm restart', 'Unknown command "restart" for svc3 vm. Did you mean stop?'],
    ['vm upload', 'Unknown command "upload" for svc3 vm. Did you mean svc3 image upload?'],
    ['quota list', 'Unknown command "list" for svc3 quota. Did you mean show?'],
    ['quota delete', 'Unknown command "delete" for svc3 quota. Did you mean set?'],
    ['deploy', 'Unknown command "deploy". Did you mean svc3 vm deploy?'],
    ['ls', 'Unknown command "ls". Did you mean svc3 vm list?'],
    ['--hlep', 'Unknown option --hlep before the command. Did you mean --help?'],
    ['regcred --nope list', 'Unknown option --nope after regcred'],
    ['regcred list --outptu json', 'Unknown option --outptu. Did you mean --output?'],
    ['regcred list -x', 'Unknown option -x'],
    ['vm extend demo -1h', 'Unknown option -1'],
    ['vm resize demo -1h', 'Unknown option -1'],
    ['regcred list -o jsn', 'Invalid --output "jsn": choose from table, wide, json, yaml. Did you mean json?'],
    ['regcred list -o', '-o requires a value: -o table|wide|json|yaml'],
    [
      'regcred list -n --output json',
      '-n requires a value. If the value begins with a dash, write --namespace=NAMESPACE',
    ],
    ['regcred list --quiet=yes', '--quiet takes only true or false'],
    ['regcred list -o=jsn', 'Invalid --output "jsn": choose from table, wide, json, yaml. Did you mean json?'],
    ['ns delete svc-x -t 1x', 'Invalid --timeout "1x": specify minutes from 1 to 1440, or a time such as 90s or 1h30m'],
    ['regcred list -n a -n b', '--namespace specified twice'],
    ['regcred list --namespace=', '--namespace must not be empty'],
    ['regcred add', 'Specify SERVER: address of the registry, <scheme>://<hostname>[:<port>]'],
    ['regcred add https://ghcr.io', 'Specify --username USERNAME'],
    ['regcred remove https://a https://b', 'Unexpected argument "https://b" (expected SERVER)'],
    ['ns list -- --token=x', 'An argument begins with a dash. Put options before "--"'],
    ['vm deploy --display-dpi 400', 'Invalid --display-dpi "400": specify a whole number from 60 to 320'],
    ['version now', 'Unexpected argument "now" (expected no arguments)'],
    ['help regcrd', 'Unknown command "regcrd". Did you mean regcred?'],
    ['version --namespace x', 'Unknown option --namespace'],
    ['server --help', undefined],
    ['server --listen 0.0.0.0:80 --plain-http', '--plain-http needs a loopback address, and 0.0.0.0 is not one'],
    ['server --store sqlite:/d', 'Invalid --store: not an etcd address'],
    ['server --url ftp://x', 'Invalid --url "ftp://x": use https://HOST[:PORT]'],
    [
      'server --url http://svc3.example.com',
      'Invalid --url "http://svc3.example.com": this server does not serve plain HTTP',
    ],
    [
      'server --plain-http --listen 127.0.0.1:80 --internal-url http://a',
      'Invalid --internal-url "http://a": servers reach each other over HTTPS only',
    ],
    ['server now', 'Unknown command "now" for svc3 server'],
    ['dev --listen 8080', 'Invalid --listen "8080": use HOST:PORT'],
    ['dev --listen 1.2.3.4:65536', 'Invalid --listen "1.2.3.4:65536": use HOST:PORT'],
    [
      'dev --listen 0.0.0.0:8080',
      'Invalid --listen "0.0.0.0:8080": svc3 dev uses plain HTTP and listens on loopback addresses only',
    ],
    [
      'dev --listen [::]:8080',
      'Invalid --listen "[::]:8080": svc3 dev uses plain HTTP and listens on loopback addresses only',
    ],
    ['dev --listen ::1:80', 'Invalid --listen "::1:80": use HOST:PORT'],
    ['dev --driver vmware', 'Invalid --driver "vmware": choose from qemu, simulated'],
    ['dev --nodes mips=1', 'Invalid --nodes "mips=1": use arm64=COUNT or amd64=COUNT'],
    ['dev --nodes arm64=1,arm64=2', 'Invalid --nodes "arm64=1,arm64=2": arm64 is specified twice'],
    ['dev --nodes arm64=1001', 'Invalid --nodes "arm64=1001": more than 1000 nodes'],
    ['dev --nodes arm64=-1', 'Invalid --nodes "arm64=-1": use arm64=COUNT or amd64=COUNT'],
    ['dev now', 'Unexpected argument "now" (expected no arguments)'],
  ] as const
  for (const [words, message] of usage) {
    it(`svc3 ${words} prints ${message ?? 'help'}`, async () => {
      const { exitCode, stdout, stderr } = await run(words.split(' '))
      assert.equal(exitCode, message ? 2 : 0)
      assert.equal(lines(stderr)[0], message && `svc3: ${message}`)
      assert.equal(stdout === '', message !== undefined)
      assert.ok(lines(stderr).length <= 2)
    })
  }
})

describe('other words for commands', () => {
  const same: Readonly<Record<string, string>> = {
    'vm ls': 'vm list',
    'vm rm': 'vm delete',
    'vm describe': 'vm show',
    'vm create': 'vm deploy',
    'node describe': 'node show',
    'image rm': 'image delete',
    'ns ls': 'ns list',
    'sa rm': 'sa delete',
    'regcred rm': 'regcred remove',
    'regcred delete': 'regcred remove',
    'rb ls': 'rb list-subjects',
    'ic show': 'ic info',
    'config show': 'config view',
    'server users ls': 'server users list',
    'vm help deploy': 'vm deploy',
  }
  for (const [words, command] of Object.entries(same))
    it(`svc3 ${words} is svc3 ${command}, with the same help`, async () => {
      const wanted = await run([...command.split(' '), '--help'])
      assert.deepEqual(await run([...words.split(' '), '--help']), wanted)
      assert.match(wanted.stdout, new RegExp(`Usage: svc3 ${command}`))
    })

  it('svc3 logout is svc3 user logout, and GROUP help is the help of the group', async () => {
    const [top, user] = [await run(['logout', '--help']), await run(['user', 'logout', '--help'])]
    assert.equal(top.stdout.replace('Usage: svc3 logout', 'Usage: svc3 user logout'), user.stdout)
    for (const group of ['vm', 'image', 'server', 'ns'])
      assert.equal((await run([group, 'help'])).stdout, (await run([group, '--help'])).stdout)
  })

  it('a wrong word in a group points to the help of the group', async () => {
    assert.equal(lines((await run(['vm', 'xyzzy'])).stderr)[1], 'svc3: Run svc3 vm --help to see the commands')
    assert.equal(lines((await run(['xyzzy'])).stderr)[1], 'svc3: Run svc3 --help to see the commands')
  })
})

describe('version', () => {
  it('svc3 version shows both versions', async () => {
    await using service = await startFakeService()
    const env = { SVC3_API_URL: service.apiUrl }
    for (const word of ['version', '--version', '-v']) {
      assert.equal((await run([word], { env })).stdout, 'client 3.0.0-here\nserver 3.0.0-test\n')
    }
    const { stdout } = await run(['version', '-o', 'json'], { env })
    assert.deepEqual(JSON.parse(stdout), [{ client: '3.0.0-here', server: '3.0.0-test', agents: [] }])
  })

  it('svc3 version shows its own when no server answers, with a note', async () => {
    const { exitCode, stdout, stderr } = await run(['--version'])
    assert.deepEqual([exitCode, stdout, lines(stderr).length], [0, 'client 3.0.0-here\n', 1])
    const json = await run(['version', '-o', 'json'])
    assert.deepEqual([JSON.parse(json.stdout), json.stderr], [[{ client: '3.0.0-here', server: null, agents: [] }], ''])
  })
})

// Dispatch, usage errors, and the commands that need no service.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { run } from '../../test/support/rigs/cli-host.ts'
import { startFakeService } from '../../test/support/stand-ins/api.ts'

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

  it('help shows the name that the program was called by', async () => {
    const { stdout } = await run(['regcred', 'list', '-h'], { calledAs: 'orka3' })
    assert.match(stdout, /Usage: orka3 regcred list/)
    assert.match(stdout, / {2}orka3 regcred list -n/)
    assert.match((await run(['nope'], { calledAs: 'orka3' })).stderr, /^orka3: .*\norka3: "orka3 --help"/)
  })

  const usage = [
    ['regcrd', 'unknown command "regcrd"; did you mean "regcred"?'],
    ['xyzzy', 'unknown command "xyzzy"'],
    ['regcred ad', 'unknown command "ad" of "regcred"; did you mean "add"?'],
    ['--hlep', 'unknown option --hlep before a command; did you mean "--help"?'],
    ['regcred --nope list', 'unknown option --nope after "regcred"'],
    ['regcred list --outptu json', 'unknown option --outptu; did you mean "--output"?'],
    ['regcred list -x', 'unknown option -x'],
    ['regcred list -o jsn', '--output "jsn" is not one of table, wide, json, yaml; did you mean "json"?'],
    ['regcred list -o', '-o needs a value: -o table|wide|json|yaml'],
    [
      'regcred list -n --output json',
      '-n needs a value, and what follows looks like an option; write --namespace=NAMESPACE when it begins with a dash',
    ],
    ['regcred list --quiet=yes', '--quiet takes no value but true and false'],
    ['regcred list -o=jsn', '--output "jsn" is not one of table, wide, json, yaml; did you mean "json"?'],
    [
      'ns delete svc-x -t 1x',
      '--timeout "1x" is not a number of minutes from 1 to 1440, nor a time such as 90s or 1h30m',
    ],
    ['regcred list -n a -n b', '--namespace is given twice'],
    ['regcred list --namespace=', '--namespace is empty'],
    ['regcred add', 'SERVER is missing: address of the registry, <scheme>://<hostname>[:<port>]'],
    ['regcred add https://ghcr.io', '--username USERNAME is missing'],
    ['regcred remove https://a https://b', 'unexpected argument "https://b" (expected SERVER)'],
    ['version now', 'unexpected argument "now" (expected no arguments)'],
    ['help regcrd', 'unknown command "regcrd"; did you mean "regcred"?'],
    ['version --namespace x', 'unknown option --namespace'],
    ['server --help', undefined],
    [
      'server --listen 0.0.0.0:80 --plain-http',
      '--plain-http would send tokens in clear over the network: 0.0.0.0 is not a loopback address',
    ],
    ['server --store sqlite:/d', '--store names no cluster of etcd'],
    ['server --url ftp://x', '--url "ftp://x" is not of the form https://HOST[:PORT]'],
    [
      'server --url http://svc3.example.com',
      '--url "http://svc3.example.com" is plain HTTP, which this server does not serve',
    ],
    ['server now', 'unknown command "now" of "server"'],
    ['dev --listen 8080', '--listen "8080" is not of the form HOST:PORT'],
    ['dev --listen 1.2.3.4:65536', '--listen "1.2.3.4:65536" is not of the form HOST:PORT'],
    [
      'dev --listen 0.0.0.0:8080',
      '--listen "0.0.0.0:8080" is not a loopback address, and "dev" would send passwords and tokens in clear over the network',
    ],
    [
      'dev --listen [::]:8080',
      '--listen "[::]:8080" is not a loopback address, and "dev" would send passwords and tokens in clear over the network',
    ],
    ['dev --listen ::1:80', '--listen "::1:80" is not of the form HOST:PORT'],
    ['dev --driver vmware', '--driver "vmware" is not one of qemu, simulated'],
    ['dev --nodes mips=1', '--nodes "mips=1" is not a list of arm64=COUNT or amd64=COUNT'],
    ['dev --nodes arm64=1,arm64=2', '--nodes "arm64=1,arm64=2" names arm64 twice'],
    ['dev --nodes arm64=1001', '--nodes "arm64=1001" asks for more than 1000 nodes'],
    ['dev --nodes arm64=-1', '--nodes "arm64=-1" is not a list of arm64=COUNT or amd64=COUNT'],
    ['dev now', 'unexpected argument "now" (expected no arguments)'],
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

describe('version', () => {
  it('svc3 version shows both versions', async () => {
    await using service = await startFakeService()
    const env = { SVC3_API_URL: service.apiUrl }
    for (const word of ['version', '--version']) {
      assert.equal((await run([word], { env })).stdout, 'client 3.0.0-here\nserver 3.0.0-test\n')
    }
    const { stdout } = await run(['version', '-o', 'json'], { env })
    assert.deepEqual(JSON.parse(stdout), [{ client: '3.0.0-here', server: '3.0.0-test' }])
  })

  it('svc3 version shows its own when no server answers, with a note', async () => {
    const { exitCode, stdout, stderr } = await run(['--version'])
    assert.deepEqual([exitCode, stdout, lines(stderr).length], [0, 'client 3.0.0-here\n', 1])
    const json = await run(['version', '-o', 'json'])
    assert.deepEqual([JSON.parse(json.stdout), json.stderr], [[{ client: '3.0.0-here', server: null }], ''])
  })
})

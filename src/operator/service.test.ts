// svc3 agent install, svc3 server install and related commands: the arguments of a service, which have no secrets.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { given, run } from '../../test/support/rigs/cli-host.ts'
import type { HostCheck } from '../api/nodes/node-report.ts'
import { showChecks } from './doctor.ts'
import { type Install, installRequest, noSystemd, showStatus } from './service.ts'

async function asked(line: string, options: Parameters<typeof run>[1] = {}): Promise<Install & { stderr: string }> {
  const [kind, ...words] = line.split(' ') as ['agent' | 'server', ...string[]]
  const { context, options: values, written } = await given([kind, ...words], options)
  const request = await installRequest(kind, context, { args: {}, options: values } as never)
  return { ...request, stderr: written.stderr }
}

describe('svc3 agent install', () => {
  it('svc3 agent install passes its options to the service, and the join token in a file', async () => {
    const line =
      'agent install --api-url https://a.example --api-url https://b.example --name n1 --cpu 8 --ca ca.pem --join-token-stdin'
    const options = { input: 'the-token\n', workingDir: import.meta.dirname }
    // A CA file that cannot be read is refused, as by the agent.
    assert.match((await run(line.split(' '), options)).stderr, /ca\.pem/)
    const given = await asked(line.replace(' --ca ca.pem', ''), options)
    assert.equal(given.joinToken, 'the-token')
    const expected =
      'agent --data /var/lib/svc3-agent --api-url https://a.example --api-url https://b.example --name n1 --cpu 8 --join-token-file /var/lib/svc3-agent/join-token'
    assert.equal(given.words.join(' '), expected)
    assert.deepEqual([given.kind, given.root, given.dryRun, given.user], ['agent', undefined, false, undefined])
  })

  it('svc3 agent install makes paths absolute, omits defaults, and makes the folder of images writable', async () => {
    const given = await asked(
      'agent install --data d --images /srv/images --config c.json --driver qemu --network user',
    )
    assert.equal(
      given.words.join(' '),
      'agent --data /nowhere/else/d --config /nowhere/else/c.json --images /srv/images --network user',
    )
    assert.deepEqual([given.dataDir, given.writes], ['/nowhere/else/d', ['/srv/images']])
    assert.deepEqual((await asked('agent install --data /d --images /d/images')).writes, [])
  })

  it('svc3 agent install never puts a join token on the command line of the service', async () => {
    const given = await asked('agent install --join very-secret --api-url https://a.example')
    assert.equal(given.joinToken, 'very-secret')
    assert.ok(!given.words.join(' ').includes('very-secret'))
  })

  it('svc3 agent install takes the join token from one source only', async () => {
    const typed = await asked('agent install --join abc --api-url http://10.0.0.7')
    assert.match(typed.stderr, /is sent unencrypted[\s\S]*Other users of this machine can see --join/)
    const piped = await asked('agent install --join-token-stdin', { input: 'abc' })
    assert.equal(piped.stderr, '')
    const two = await run('agent install --join a --join-token-stdin'.split(' '), { input: 'b' })
    assert.equal(two.exitCode, 2)
    const missing = await run('agent install --join-token-file none.txt'.split(' '))
    assert.equal(missing.exitCode, 2)
    assert.match(missing.stderr, /\/nowhere\/else\/none\.txt \(ENOENT\)/)
    assert.equal((await asked('agent install --join-token-stdin', { input: ' abc.def \n' })).joinToken, 'abc.def')
  })

  it('svc3 agent install refuses an empty standard input as an empty join token', async () => {
    const { exitCode, stderr } = await run('agent install --join-token-stdin'.split(' '))
    assert.equal(exitCode, 2)
    assert.match(stderr, /The join token is empty\n.*Create one with svc3 node join-token/)
  })

  it('svc3 agent install and svc3 server install refuse what the foreground commands refuse', async () => {
    for (const line of ['agent install --ip 300.1.1.1', 'agent install --api-url ftp://x', 'agent install --nope'])
      assert.equal((await run(line.split(' '))).exitCode, 2, line)
    assert.equal((await run('server install --listen 0.0.0.0:80 --plain-http'.split(' '))).exitCode, 2)
  })
})

describe('svc3 server install', () => {
  it('svc3 server install passes its options to the service', async () => {
    const given = await asked('server install --url https://svc3.example.com --root r --dry-run --user www')
    assert.equal(given.words.join(' '), 'server --data /var/lib/svc3 --url https://svc3.example.com')
    assert.deepEqual(
      [given.kind, given.root, given.dryRun, given.user, given.joinToken],
      ['server', '/nowhere/else/r', true, 'www', undefined],
    )
  })
})

describe('svc3 agent and server install without systemd', () => {
  it('without systemd the line to run instead is shown, without the join token', async () => {
    const server = noSystemd(await asked('server install --url https://svc3.example.com --data /srv/my+data'))
    assert.equal(server.message, 'This host does not run systemd')
    assert.match(
      server.hint ?? '',
      /^Run this under a supervisor of your own: \S*svc3 server --data \/srv\/my\+data --url https:\/\/svc3\.example\.com$/,
    )
    const agent = noSystemd(await asked('agent install --join very-secret --api-url https://a.example --dry-run'))
    assert.match(
      agent.hint ?? '',
      /with --join-token-file FILE at its first start: \S*svc3 agent --data \S+ --api-url https:\/\/a\.example$/,
    )
    assert.ok(!agent.hint?.includes('very-secret'))
    assert.match(
      noSystemd({ action: 'upgrade', kind: 'server', root: undefined, dryRun: true }).hint ?? '',
      /--root DIR/,
    )
  })

  it('the help of install, upgrade, uninstall and status describes --root', async () => {
    for (const [action, text] of Object.entries({
      install: 'Write',
      upgrade: 'Write',
      uninstall: 'Remove',
      status: 'Look',
    }))
      assert.match((await run(['server', action, '--help'])).stdout, new RegExp(`--root DIR\\s+${text} `), action)
  })
})

describe('svc3 agent and server status, upgrade, uninstall', () => {
  it('svc3 agent upgrade and svc3 server upgrade name the service that they would change', async () => {
    for (const kind of ['agent', 'server']) {
      const { exitCode, stdout } = await run([kind, 'upgrade', '--dry-run', '--root', '/nowhere/at/all'])
      assert.deepEqual([exitCode, stdout.split(' ')[0]], [0, `svc3-${kind}`])
    }
  })

  it('svc3 agent status exits with 0 only if the service runs', async () => {
    const { context, written } = await given(['agent', 'status'])
    const status = { name: 'svc3-agent', state: 'running', pid: 7, version: '3.0.0', log: 'journalctl -u x' } as const
    assert.equal(await showStatus(context, status), 0)
    assert.equal(written.stdout, 'NAME\tSTATE\tVERSION\tPID\nsvc3-agent\trunning\t3.0.0\t7\n')
    assert.equal(await showStatus(context, { ...status, state: 'failed' }), 1)
    assert.equal((await run(['server', 'status', '--root', '/nowhere/at/all'])).exitCode, 1)
  })
})

describe('svc3 agent doctor', () => {
  const checks: readonly HostCheck[] = [
    { check: 'node', result: 'ok', found: 'Node 24.1.0' },
    { check: 'virtualisation', result: 'warning', found: 'none', advice: 'turn it on' },
  ]

  it('svc3 agent doctor shows checks with advice, and exits with 1 only if VMs cannot run', async () => {
    const shown = await given(['agent', 'doctor', '--api-url', 'https://a.example'])
    assert.equal(await showChecks(shown.context, checks), 0)
    assert.equal(shown.written.stdout, 'CHECK\tRESULT\tFOUND\nnode\tok\tNode 24.1.0\nvirtualisation\twarning\tnone\n')
    assert.match(shown.written.stderr, /virtualisation: turn it on/)
    const json = await given(['agent', 'doctor', '-o', 'json'])
    const problem = { check: 'disk space', result: 'problem', found: '1 GiB', advice: 'free some' } as const
    assert.equal(await showChecks(json.context, [...checks, problem]), 1)
    assert.equal(JSON.parse(json.written.stdout)[2].advice, 'free some')
  })
})

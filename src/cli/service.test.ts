// svc3 agent install and its like: the words that a service is started with, and the secrets that are not among them.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { run } from '../../test/support/rigs/cli-host.ts'
import type { DoctorCheck, ServiceRequest } from './programs.ts'

type Install = Extract<ServiceRequest, { action: 'install' }>

async function asked(line: string, options: Parameters<typeof run>[1] = {}): Promise<Install> {
  const outcome = await run(line.split(' '), options)
  assert.equal(outcome.exitCode, 0, outcome.stderr)
  return outcome.started[0] as Install
}

describe('svc3 agent install', () => {
  it('gives the service the words that were given here, and the token by a file', async () => {
    const line =
      'agent install --api-url https://a.example --api-url https://b.example --name n1 --cpu 8 --ca ca.pem --join-token-stdin'
    const options = { input: 'the-token\n', workingDir: import.meta.dirname }
    // An authority that cannot be read is refused here, as the agent would.
    assert.match((await run(line.split(' '), options)).stderr, /ca\.pem/)
    const given = await asked(line.replace(' --ca ca.pem', ''), options)
    assert.equal(given.joinToken, 'the-token')
    const expected =
      'agent --data /var/lib/svc3-agent --api-url https://a.example --api-url https://b.example --name n1 --cpu 8 --join-token-file /var/lib/svc3-agent/join-token'
    assert.equal(given.words.join(' '), expected)
    assert.deepEqual([given.kind, given.root, given.dryRun, given.user], ['agent', undefined, false, undefined])
  })

  it('makes paths absolute, leaves defaults out, and lets the service write where images are', async () => {
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

  it('never passes on a token as a word, whichever way it came', async () => {
    const given = await asked('agent install --join very-secret --api-url https://a.example')
    assert.equal(given.joinToken, 'very-secret')
    assert.ok(!given.words.join(' ').includes('very-secret'))
  })

  it('keeps what was given as it was given, and takes it one way only', async () => {
    const typed = await run('agent install --join abc --api-url http://10.0.0.7'.split(' '))
    assert.match(typed.stderr, /travels in clear[\s\S]*--join can be seen by others/)
    const piped = await run('agent install --join-token-stdin'.split(' '), { input: 'abc' })
    assert.equal(piped.stderr, '')
    const two = await run('agent install --join a --join-token-stdin'.split(' '), { input: 'b' })
    assert.deepEqual([two.exitCode, two.started], [2, []])
    const missing = await run('agent install --join-token-file none.txt'.split(' '))
    assert.equal(missing.exitCode, 2)
    assert.match(missing.stderr, /\/nowhere\/else\/none\.txt \(ENOENT\)/)
    assert.equal((await asked('agent install --join-token-stdin', { input: ' abc.def \n' })).joinToken, 'abc.def')
  })

  it('refuses what the agent would refuse', async () => {
    for (const line of ['agent install --ip 300.1.1.1', 'agent install --api-url ftp://x', 'agent install --nope'])
      assert.equal((await run(line.split(' '))).exitCode, 2, line)
    assert.equal((await run('server install --listen 0.0.0.0:80 --plain-http'.split(' '))).exitCode, 2)
  })
})

describe('svc3 server install', () => {
  it('gives the service the words that were given here', async () => {
    const given = await asked('server install --url https://svc3.example.com --root r --dry-run --user www')
    assert.equal(given.words.join(' '), 'server --data /var/lib/svc3 --url https://svc3.example.com')
    assert.deepEqual(
      [given.kind, given.root, given.dryRun, given.user, given.joinToken],
      ['server', '/nowhere/else/r', true, 'www', undefined],
    )
  })
})

describe('status, upgrade, uninstall', () => {
  it('ask for the service that is meant', async () => {
    for (const kind of ['agent', 'server'])
      for (const action of ['upgrade', 'uninstall'])
        assert.deepEqual((await run([kind, action])).started, [{ action, kind, root: undefined, dryRun: false }])
  })

  it('end with 0 where it runs alone', async () => {
    const status = { name: 'svc3-agent', state: 'running', pid: 7, version: '3.0.0', log: 'journalctl -u x' } as const
    const running = await run(['agent', 'status'], { status })
    assert.deepEqual(
      [running.exitCode, running.stdout],
      [0, 'NAME\tSTATE\tVERSION\tPID\nsvc3-agent\trunning\t3.0.0\t7\n'],
    )
    assert.equal((await run(['agent', 'status'], { status: { ...status, state: 'failed' } })).exitCode, 1)
    assert.equal((await run(['server', 'status'])).exitCode, 1)
  })
})

describe('svc3 agent doctor', () => {
  const checks: readonly DoctorCheck[] = [
    { check: 'node', result: 'ok', found: 'Node 24.1.0' },
    { check: 'virtualisation', result: 'warning', found: 'none', advice: 'turn it on' },
  ]

  it('shows what was found, with advice, and ends with 1 only where VMs cannot run', async () => {
    const shown = await run(['agent', 'doctor', '--api-url', 'https://a.example'], { checks })
    assert.equal(shown.exitCode, 0)
    assert.equal(shown.stdout, 'CHECK\tRESULT\tFOUND\nnode\tok\tNode 24.1.0\nvirtualisation\twarning\tnone\n')
    assert.match(shown.stderr, /virtualisation: turn it on/)
    const json = await run(['agent', 'doctor', '-o', 'json'], {
      checks: [...checks, { check: 'disk space', result: 'problem', found: '1 GiB', advice: 'free some' }],
    })
    assert.equal(json.exitCode, 1)
    assert.equal(JSON.parse(json.stdout)[2].advice, 'free some')
  })
})

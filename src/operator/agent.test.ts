// How svc3 agent reads its options, and join tokens from sources that other users cannot see.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type FakeHostOptions, given as givenTo, run } from '../../test/support/rigs/cli-host.ts'
import { encodeJoinString } from '../rules/join-string.ts'
import { type AgentValues, agentOptions } from './agent-options.ts'

const url = ['--api-url', 'http://127.0.0.1:8080']

async function start(words: readonly string[], options: FakeHostOptions = {}) {
  const { context, options: values, written } = await givenTo(['agent', ...words], options)
  return { given: await agentOptions(context, values as unknown as AgentValues), stderr: written.stderr }
}

describe('svc3 agent', () => {
  let folder: string
  before(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-agent-cli-'))
  })
  after(() => fs.rm(folder, { recursive: true, force: true }))

  it('svc3 agent has sensible defaults', async () => {
    const { given } = await start([])
    assert.deepEqual(given.apiUrls, [])
    assert.equal(given.dataDir, '/var/lib/svc3-agent')
    assert.equal(given.imageDir, '/var/lib/svc3-agent/images')
    assert.equal(given.driver, 'qemu')
    assert.match(given.name, /^[a-z0-9-]+$/)
    assert.deepEqual(
      [given.architecture, given.ip, given.cpu, given.memoryGib, given.maxVms, given.joinToken],
      [undefined, undefined, undefined, undefined, undefined, undefined],
    )
  })

  it('svc3 agent passes its options on to the agent', async () => {
    const words =
      '--name n1 --data d --images i --driver simulated --architecture arm64 --ip 10.0.0.7 --cpu 8 --memory 16 --max-vms 2'
    const { given } = await start([...url, '--api-url', 'http://127.0.0.1:8081', ...words.split(' ')])
    assert.deepEqual(given.apiUrls, ['http://127.0.0.1:8080', 'http://127.0.0.1:8081'])
    const { name, dataDir, imageDir, driver, architecture, ip, cpu, memoryGib, maxVms } = given
    assert.deepEqual(
      [name, dataDir, imageDir, driver, architecture, ip, cpu, memoryGib, maxVms],
      ['n1', '/nowhere/else/d', '/nowhere/else/i', 'simulated', 'arm64', '10.0.0.7', 8, 16, 2],
    )
  })

  it('svc3 agent takes the join token from a file or standard input, and not from the environment', async () => {
    const file = path.join(folder, 'token')
    await fs.writeFile(file, 'from-file\n')
    const byFile = await start([...url, '--join-token-file', file])
    assert.equal(await byFile.given.joinToken?.(), 'from-file')
    const byStdin = await start([...url, '--join-token-stdin'], { input: 'from-stdin\n' })
    assert.equal(await byStdin.given.joinToken?.(), 'from-stdin')
    const byEnvironment = await start(url, { env: { SVC3_JOIN_TOKEN: 'from-environment' } })
    assert.equal(byEnvironment.given.joinToken, undefined)
  })

  it('svc3 agent explains an invalid join token if no server address is known', async () => {
    const refused = async (...words: readonly string[]) => {
      const { exitCode, stderr } = await run(['agent', '--data', folder, ...words], { input: '\n' })
      assert.notEqual(exitCode, 0)
      return stderr
    }
    const file = path.join(folder, 'garbage')
    await fs.writeFile(file, 'no-token-at-all\n')
    const create = 'Create one with svc3 node join-token'
    const missing = path.join(folder, 'none')
    assert.match(
      await refused('--join-token-file', missing),
      new RegExp(`Cannot read the join token from ${missing} \\(ENOENT\\)\\n.*${create}`),
    )
    assert.match(await refused('--join-token-file', file), new RegExp(`${file} is not a join token\\n.*${create}`))
    assert.match(await refused('--join-token-stdin'), new RegExp(`The join token is empty\\n.*${create}`))
    assert.match(await refused(), /No server address known/)
  })

  it('svc3 agent keeps the name of a node that has joined, unless --name is given', async () => {
    const data = path.join(folder, 'joined')
    await fs.mkdir(data)
    await fs.writeFile(path.join(data, 'node.json'), JSON.stringify({ version: 1, name: 'n1', uid: 'u' }))
    assert.equal((await start(['--data', data])).given.name, 'n1')
    assert.equal((await start(['--data', data, '--name', 'n2'])).given.name, 'n2')
  })

  it('svc3 agent refuses --simulate without --driver simulated', async () => {
    await assert.rejects(() => start(['--simulate', 'boot=2s']), /--simulate needs --driver simulated/)
  })

  it('svc3 agent deletes VMs that the server does not list only with --remove-unknown', async () => {
    assert.equal((await start(url)).given.removeUnknown, false)
    assert.equal((await start([...url, '--remove-unknown'])).given.removeUnknown, true)
    const { stdout } = await run(['agent', '--help'])
    assert.match(stdout, /--remove-unknown +Delete VMs that the server does not list/)
  })

  it('svc3 agent warns about a join token that all users of the host can see', async () => {
    const { given, stderr } = await start([...url, '--join', 'token-canary'])
    assert.equal(await given.joinToken?.(), 'token-canary')
    assert.match(stderr, /Other users of this machine can see --join/)
    assert.ok(!stderr.includes('canary'))
  })

  it('svc3 agent refuses options that exclude each other and malformed addresses', async () => {
    const refused = async (words: readonly string[]): Promise<string> => {
      const { exitCode, stderr } = await run(['agent', ...words])
      assert.equal(exitCode, 2, stderr)
      return stderr
    }
    assert.match(await refused(['--join', 'a', '--join-token-file', 'b']), /Use only one of --join/)
    assert.match(await refused(['--ip', 'fe80::1']), /Invalid --ip "fe80::1"/)
    assert.match(await refused(['--api-url', 'ftp://x']), /--api-url/)
    assert.match(await refused(['--api-url', 'https://x', '--fingerprint', 'zz']), /fingerprint/)
  })

  it('svc3 agent trusts an https server with the given fingerprint only', async () => {
    const own = `${'AB:'.repeat(31)}AB`
    const { given } = await start(['--api-url', 'https://svc3.example.com', '--fingerprint', own])
    const trust = given.trust(given.apiUrls)
    const peer = { origin: 'https://svc3.example.com', problem: 'SELF_SIGNED' }
    assert.equal(trust?.judge({ ...peer, fingerprint: own }), undefined)
    assert.match(trust?.judge({ ...peer, fingerprint: `${'CD:'.repeat(31)}CD` })?.message ?? '', /HAS CHANGED/)
    assert.equal((await start(url)).given.trust(['http://127.0.0.1:8080']), undefined)
  })

  it('svc3 agent trusts an https server with the key in its join string, and no other with a self-signed certificate', async () => {
    const pin = `${'AB:'.repeat(31)}AB`
    const { given } = await start(['--join', encodeJoinString({ urls: ['https://a.example.com'], pin, token: 't' })])
    assert.deepEqual([given.joinUrls, given.pin], [['https://a.example.com'], pin])
    const trust = given.trust(given.joinUrls, given.pin)
    const peer = { origin: 'https://a.example.com', problem: 'SELF_SIGNED' }
    assert.equal(trust?.judge({ ...peer, fingerprint: pin }), undefined)
    const refusal = trust?.judge({ ...peer, fingerprint: `${'CD:'.repeat(31)}CD` })
    assert.match(refusal?.message ?? '', /a\.example\.com/)
    assert.match(refusal?.hint ?? '', /^If the server has a certificate of your own CA, start the agent with --ca FILE/)
  })

  it('svc3 agent warns when tokens would be sent unencrypted', async () => {
    const { stderr } = await start(['--api-url', 'http://svc3.example.com'])
    assert.match(stderr, /is sent unencrypted/)
  })
})

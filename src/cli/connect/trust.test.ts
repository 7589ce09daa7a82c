// Which https servers commands trust: pinned on first use, pinned by hand, or by a CA. Nothing is sent to others.
import assert from 'node:assert/strict'
import { createPublicKey } from 'node:crypto'
import fs from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import tls from 'node:tls'
import { type FakeHostOptions, type Outcome, run } from '../../../test/support/rigs/cli-host.ts'
import { keyFingerprintOf, makePair, type TestPair } from '../../../test/support/tools/certificates.ts'

const token = 'a-token-that-must-not-leak'
let folder: string
let authority: TestPair
let own: TestPair
let other: TestPair
let signed: TestPair
let server: tls.Server
let origin: string
/** The data that reached the server through TLS. */
let received: string[]

before(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-trust-'))
  authority = await makePair({ name: 'Test CA', isAuthority: true })
  own = await makePair({ name: 'own.example' })
  other = await makePair({ name: 'other.example' })
  signed = await makePair({ name: 'signed.example', issuer: authority })
  // Not an HTTP server, so that the test sees every byte and not only complete requests.
  server = tls.createServer({ key: own.key, cert: own.cert }, (socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      received.push(chunk.toString())
      const body = '{"items":[]}'
      const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`
      socket.end(`${head}\r\nconnection: close\r\n\r\n${body}`)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
  origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
})
after(async () => {
  server.close()
  fs.rmSync(folder, { recursive: true })
})

let home: string
beforeEach(() => {
  home = fs.mkdtempSync(path.join(folder, 'home-'))
  received = []
  serve(own)
})

const serve = ({ cert, key }: TestPair): void => server.setSecureContext({ cert, key })
const fingerprintOf = ({ cert }: TestPair): string => keyFingerprintOf(cert)
const configFile = (): string => path.join(home, 'svc3/config.json')
const config = () => JSON.parse(fs.readFileSync(configFile(), 'utf8'))
const list = ['namespace', 'list', '-o', 'json']
const call = (words: readonly string[], options: FakeHostOptions = {}): Promise<Outcome> => {
  const env = { XDG_CONFIG_HOME: home, SVC3_API_URL: origin, SVC3_TOKEN: token, ...options.env }
  return run(words, { ...options, env })
}
const typing = (input: string): FakeHostOptions => ({ input, terminal: { stdin: true, stdout: true } })
/** Makes the system trust this CA. */
const withAuthority = async <T>({ cert }: TestPair, work: () => Promise<T>): Promise<T> => {
  const before = tls.getCACertificates('default')
  tls.setDefaultCACertificates([...before, cert])
  try {
    return await work()
  } finally {
    tls.setDefaultCACertificates(before)
  }
}
const assertSaidNothing = (): void => assert.deepEqual(received, [])

describe('unknown server', () => {
  it('a server with an untrusted certificate is refused in a pipe, with its fingerprint and how to accept it', async () => {
    const { exitCode, stdout, stderr } = await call(list)
    assert.deepEqual([exitCode, stdout], [1, ''])
    const [what, next] = stderr.split('\n')
    assert.ok(what?.includes(`SHA-256 fingerprint of its public key: ${fingerprintOf(own)}`), what)
    assert.ok(what?.includes(origin))
    assert.ok(next?.endsWith(`run svc3 config set --api-url ${origin} --fingerprint ${fingerprintOf(own)}`), next)
    assertSaidNothing()
    assert.ok(!fs.existsSync(configFile()))
  })

  for (const method of ['GET', 'POST', 'DELETE'] as const) {
    it(`a server with an untrusted certificate gets no ${method} either, nor what comes with it`, async () => {
      const words = { GET: list, POST: ['namespace', 'create', 'svc-x'], DELETE: ['namespace', 'delete', 'svc-x'] }[
        method
      ]
      const { exitCode, stderr } = await call(words)
      assert.equal(exitCode, 1)
      assert.match(stderr, /is self-signed/)
      assertSaidNothing()
    })
  }

  it('a server with an untrusted certificate needs a confirmation on a terminal, once, which is stored privately', async () => {
    const asked = await call(list, typing('yes\n'))
    assert.equal(asked.exitCode, 0, asked.stderr)
    assert.ok(asked.stderr.includes(`\n  ${fingerprintOf(own)}\n`) && asked.stderr.includes(origin))
    assert.match(asked.stderr, /Trust this server\? \[yes\/no\] /)
    assert.equal(asked.stdout, '[]\n')
    assert.ok(received.join('').includes(token))
    assert.deepEqual(config(), { pins: { [origin]: fingerprintOf(own) } })
    assert.equal(fs.statSync(configFile()).mode & 0o777, 0o600)
    const again = await call(list, { terminal: { stdin: true, stdout: true } })
    assert.ok(!again.stderr.includes('Accept'))
    assert.equal((await call(list)).stdout, '[]\n')
  })

  for (const answer of ['no\n', '\n', '', 'yesterday\n']) {
    it(`a server with an untrusted certificate is not accepted by the answer ${JSON.stringify(answer)}`, async () => {
      const { exitCode, stderr } = await call(list, typing(answer))
      assert.equal(exitCode, 1)
      assert.match(stderr, /did not accept the certificate of .*; nothing was sent/)
      assertSaidNothing()
      assert.ok(!fs.existsSync(configFile()))
    })
  }

  it('a server with an untrusted certificate is accepted by SVC3_FINGERPRINT, however it is written', async () => {
    const fingerprint = fingerprintOf(own)
    for (const text of [fingerprint, fingerprint.toLowerCase(), ` ${fingerprint.replaceAll(':', '')}\n`]) {
      const { exitCode, stderr } = await call(list, { env: { SVC3_FINGERPRINT: text } })
      assert.deepEqual([exitCode, stderr], [0, ''])
    }
    assert.equal((await call(list, { env: { SVC3_FINGERPRINT: 'AB:CD' } })).exitCode, 2)
    assert.equal((await call(list, { env: { SVC3_FINGERPRINT: fingerprintOf(other) } })).exitCode, 1)
  })

  it('a server with an untrusted certificate is accepted by config set --fingerprint, which keeps the rest of the file', async () => {
    fs.mkdirSync(path.dirname(configFile()))
    const before = {
      theme: 'dark',
      pins: { 'https://else:1': 'x' },
      contexts: { old: { apiUrl: 'http://old', token: 't' } },
    }
    fs.writeFileSync(configFile(), JSON.stringify(before))
    const env = { SVC3_API_URL: undefined }
    const words = [
      'config',
      'set',
      '--api-url',
      origin,
      '--context',
      'work',
      '--fingerprint',
      fingerprintOf(own),
      '-n',
      'svc-x',
    ]
    assert.equal((await call(words, { env })).exitCode, 0)
    assert.deepEqual(config(), {
      ...before,
      currentContext: 'work',
      contexts: { ...before.contexts, work: { apiUrl: origin, namespace: 'svc-x' } },
      pins: { ...before.pins, [origin]: fingerprintOf(own) },
    })
    assert.equal((await call(list, { env })).exitCode, 0)
    const { stdout } = await call(['config', 'view', '-o', 'wide'], { env })
    assert.ok(stdout.includes(`work\tyes\t${origin}\tsvc-x\t\t${fingerprintOf(own)}`), stdout)
  })
})

describe('pinned server', () => {
  it('a pinned server may renew its certificate, when it keeps its key', async () => {
    await call(list, typing('yes\n'))
    const publicKey = createPublicKey(own.key).export({ type: 'spki', format: 'pem' }).toString()
    const renewed = await makePair({ name: 'own.example', keyPair: { privateKey: own.key, publicKey } })
    assert.notEqual(renewed.cert, own.cert)
    serve({ cert: renewed.cert, key: own.key })
    const { exitCode, stderr } = await call(list)
    assert.deepEqual([exitCode, stderr], [0, ''])
  })

  it('a pinned server has to have the pinned key, even if another has a trusted certificate, until the pin is removed', async () => {
    await call(list, typing('yes\n'))
    serve(signed)
    received = []
    const refused = await withAuthority(authority, () => call(list))
    assert.equal(refused.exitCode, 1)
    assert.match(
      refused.stderr,
      /HAS CHANGED.* \(with a certificate of a trusted CA\)\n.*config set .* --fingerprint none/,
    )
    assertSaidNothing()
    assert.equal((await call(['config', 'set', '--api-url', origin, '--fingerprint', 'none'])).exitCode, 0)
    assert.deepEqual(config().pins, {})
    const { exitCode, stderr } = await withAuthority(authority, () => call(list))
    assert.deepEqual([exitCode, stderr], [0, ''])
    const env = { SVC3_FINGERPRINT: fingerprintOf(own) }
    received = []
    const wrong = await withAuthority(authority, () => call(list, { env }))
    assert.match(wrong.stderr, /HAS CHANGED.*\n.*correct or unset SVC3_FINGERPRINT\n/)
    assertSaidNothing()
  })

  it('a pinned server with another key is refused loudly, also on a terminal, and nothing is sent to it', async () => {
    await call(list, typing('yes\n'))
    serve(other)
    received = []
    for (const options of [{}, typing('yes\n')]) {
      const { exitCode, stderr } = await call(list, options)
      assert.equal(exitCode, 1)
      assert.match(stderr, /HAS CHANGED/)
      assert.ok(stderr.includes(fingerprintOf(own)) && stderr.includes(fingerprintOf(other)))
      assert.match(stderr.split('\n')[1] ?? '', /config set --api-url \S+ --fingerprint [0-9A-F:]{95}$/)
    }
    assertSaidNothing()
    await call(['config', 'set', '--api-url', origin, '--fingerprint', fingerprintOf(other)])
    assert.equal((await call(list)).exitCode, 0)
  })
})

describe('server of an authority', () => {
  const setCa = (file: string) => call(['config', 'set', '--api-url', origin, '--ca', file])

  it('a server with a certificate of a trusted CA needs no pin', async () => {
    serve(signed)
    const file = path.join(home, 'ca.pem')
    fs.writeFileSync(file, authority.cert)
    assert.equal((await setCa(file)).exitCode, 0)
    const { exitCode, stderr } = await call(list, typing(''))
    assert.deepEqual([exitCode, stderr], [0, ''])
    assert.equal(config().pins, undefined)
  })

  it('a server of another CA is refused, even if it was pinned', async () => {
    const file = path.join(home, 'ca.pem')
    fs.writeFileSync(file, authority.cert)
    await call(list, typing('yes\n'))
    await setCa(file)
    received = []
    const { exitCode, stderr } = await call(list)
    assert.equal(exitCode, 1)
    assert.match(stderr, /is not signed by a CA in .*ca\.pem/)
    assertSaidNothing()
    assert.equal((await setCa('none')).exitCode, 0)
    assert.equal((await call(list)).exitCode, 0)
  })

  it('a server whose certificate is for another name is refused', async () => {
    serve(signed)
    const file = path.join(home, 'ca.pem')
    fs.writeFileSync(file, authority.cert)
    const env = { SVC3_API_URL: origin.replace('127.0.0.1', '127.0.0.2') }
    await call(['config', 'set', '--api-url', env.SVC3_API_URL, '--ca', file])
    const { exitCode, stderr } = await call(list, { env })
    assert.equal(exitCode, 1)
    assert.match(stderr, /127\.0\.0\.2:\d+ is not signed by a CA in .*ERR_TLS_CERT_ALTNAME_INVALID/)
    assertSaidNothing()
  })

  it('a CA file that is missing or has no certificate is refused with the reason', async () => {
    assert.match((await setCa('missing.pem')).stderr, /Cannot read .*missing\.pem \(ENOENT\)/)
    fs.writeFileSync(path.join(home, 'odd'), 'x')
    assert.match((await setCa(path.join(home, 'odd'))).stderr, /contains no PEM certificate/)
  })
})

describe('server without TLS', () => {
  let plain: http.Server
  let port: number
  before(async () => {
    plain = http.createServer((_request, response) => {
      response.setHeader('content-type', 'application/json').end('{"items":[]}')
    })
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve))
    port = (plain.address() as AddressInfo).port
  })
  after(() => plain.close())
  const listAt = (host: string, words: readonly string[] = [], more: Record<string, string | undefined> = {}) =>
    call(['namespace', 'list', ...words], { env: { SVC3_API_URL: `http://${host}:${port}`, ...more } })

  // 0.0.0.0 leads to this machine on Linux and macOS, but is not a loopback address.
  it('a remote server without TLS is warned about once, where a token is sent to it', async () => {
    const { exitCode, stderr } = await listAt('0.0.0.0')
    const note = `svc3: The token is sent unencrypted to http://0.0.0.0:${port}; use https:// to protect it\n`
    assert.deepEqual([exitCode, stderr], [0, note])
  })

  it('a server without TLS is not mentioned on loopback, without a token, or with --quiet, JSON or YAML', async () => {
    assert.equal((await listAt('127.0.0.1')).stderr, '')
    assert.equal((await listAt('localhost')).stderr, '')
    assert.equal((await listAt('0.0.0.0', [], { SVC3_TOKEN: undefined })).stderr, '')
    for (const words of [['-o', 'json'], ['-o', 'yaml'], ['--quiet']])
      assert.equal((await listAt('0.0.0.0', words)).stderr, '')
  })
})

describe('config set', () => {
  it('config set says what is missing or invalid', async () => {
    const env = { SVC3_API_URL: undefined }
    const cases = [
      [['config', 'set'], /Nothing to set/],
      [['config', 'set', '--namespace', 'svc-x'], /Specify --api-url/],
      [['config', 'set', '--api-url', 'http://h:1', '--fingerprint', fingerprintOf(own)], /--fingerprint needs https/],
      [['config', 'set', '--api-url', origin, '--fingerprint', 'zz'], /--fingerprint is not the SHA-256/],
      [['config', 'set', '--api-url', 'h:1'], /Invalid address in --api-url/],
    ] as const
    for (const [words, message] of cases) {
      const { exitCode, stderr } = await call(words, { env })
      assert.equal(exitCode, 2, stderr)
      assert.match(stderr, message)
    }
    assert.ok(!fs.existsSync(configFile()))
  })

  it('config set forgets a login when the context moves to another server', async () => {
    fs.mkdirSync(path.dirname(configFile()))
    const context = { apiUrl: 'http://old:1', token: 't', refreshToken: 'r', namespace: 'svc-y' }
    fs.writeFileSync(configFile(), JSON.stringify({ currentContext: 'work', contexts: { work: context } }))
    await call(['config', 'set', '--api-url', 'http://old:1', '--namespace', 'svc-z'], {
      env: { SVC3_API_URL: undefined },
    })
    assert.equal(config().contexts.work.token, 't')
    await call(['config', 'set', '--api-url', 'http://new:1'], { env: { SVC3_API_URL: undefined } })
    assert.deepEqual(config().contexts.work, { apiUrl: 'http://new:1', namespace: 'svc-z' })
  })
})

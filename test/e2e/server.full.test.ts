// `svc3 server` as an operator runs it: HTTPS from the first start, a certificate of one's own that outlives a restart,
// and a command line that asks before it trusts.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import fs from 'node:fs/promises'
import http from 'node:http'
import https from 'node:https'
import path from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { type DevServer, filesWith, makeFolder, program, startDev, svc3 } from '../support/processes/dev-server.ts'
import { formOf, keyFingerprintOf, makePair, uploadPath } from '../support/tools/certificates.ts'

let data: string
let home: string
beforeEach(async () => {
  ;[data, home] = [await makeFolder(), await makeFolder()]
})
afterEach(async () => {
  for (const folder of [data, home]) await fs.rm(folder, { recursive: true, force: true })
})

const startServer = (...args: string[]): Promise<DevServer> => startDev(data, { command: [program, 'server'], args })
const env = (server: DevServer, more: Record<string, string> = {}) => ({
  XDG_CONFIG_HOME: home,
  SVC3_API_URL: server.apiUrl,
  SVC3_DATA: data,
  ...more,
})

interface Answer {
  readonly status: number
  readonly text: string
  readonly fingerprint: string
  readonly keyFingerprint: string
}

function request(
  url: string,
  options: { method?: string; headers?: Record<string, string>; body?: string; ca?: string } = {},
): Promise<Answer> {
  const { method = 'GET', headers = {}, body, ca } = options
  const trust = ca === undefined ? { rejectUnauthorized: false } : { ca }
  return new Promise((resolve, reject) => {
    const sent = url.startsWith('https:')
      ? https.request(url, { method, headers, agent: false, ...trust })
      : http.request(url, { method, headers, agent: false })
    sent.on('error', reject).on('response', async (response) => {
      const { getPeerX509Certificate: peer } = response.socket as import('node:tls').TLSSocket
      const leaf = peer?.call(response.socket)
      const fingerprint = leaf?.fingerprint256 ?? ''
      const keyFingerprint = leaf ? keyFingerprintOf(leaf.toString()) : ''
      const text = Buffer.concat(await response.toArray()).toString()
      resolve({ status: response.statusCode ?? 0, text, fingerprint, keyFingerprint })
    })
    sent.end(body)
  })
}

/** A token of the administrator, signed with keys that are in the data folder. */
async function adminToken(): Promise<string> {
  const dev = await startDev(data)
  await dev.kill('SIGTERM')
  return dev.token
}

describe('svc3 server', () => {
  it('svc3 server serves HTTPS only, says its fingerprint and how to make a user, and leaves a note without a token', async () => {
    await using server = await startServer()
    assert.match(server.apiUrl, /^https:\/\/127\.0\.0\.1:\d+$/)
    const info = await request(`${server.apiUrl}/api/v1/cluster-info`)
    assert.equal(info.status, 200)
    const { apiEndpoint, certData } = JSON.parse(info.text)
    assert.equal(apiEndpoint, server.apiUrl)
    const leaf = new X509Certificate(certData)
    assert.equal(leaf.fingerprint256, info.fingerprint)
    assert.equal(leaf.checkIP('127.0.0.1'), '127.0.0.1')
    const shown = `SHA-256 fingerprint of its public key:\n  ${info.keyFingerprint}\n`
    assert.ok(server.output().includes(shown), server.output())
    assert.match(server.output(), /svc3 server users add EMAIL --admin --data \//)
    const note = path.join(data, 'connection.json')
    assert.deepEqual(JSON.parse(await fs.readFile(note, 'utf8')), { apiUrl: server.apiUrl, pid: server.process.pid })
    const plain = await request(`${server.apiUrl.replace('https:', 'http:')}/api/v1/cluster-info`)
    assert.equal(plain.status, 400)
    assert.match(JSON.parse(plain.text).hint, /Use https:\/\//)
    assert.deepEqual(await server.kill('SIGTERM'), { code: 0, signal: null })
    await assert.rejects(fs.stat(note))
    await using again = await startServer()
    assert.equal((await request(`${again.apiUrl}/healthz`)).fingerprint, info.fingerprint)
  })

  it('svc3 server serves an uploaded certificate at once and after kill -9 and a rotation; its key is nowhere in clear', async () => {
    const headers = { authorization: `Bearer ${await adminToken()}` }
    const authority = await makePair({ name: 'Test CA', isAuthority: true })
    const pair = await makePair({ issuer: authority })
    const secret = pair.key.split('\n')[1] ?? ''
    const { fingerprint256 } = new X509Certificate(pair.cert)
    const isSealed = async (): Promise<void> => assert.deepEqual(await filesWith(data, secret), [])
    {
      await using server = await startServer()
      const form = await formOf(pair)
      const before = await request(`${server.apiUrl}/healthz`)
      const uploaded = await request(`${server.apiUrl}${uploadPath}`, {
        method: 'POST',
        body: form.body,
        headers: { ...headers, ...form.headers },
      })
      assert.equal(uploaded.status, 200, uploaded.text)
      assert.equal(uploaded.fingerprint, before.fingerprint)
      assert.ok(!uploaded.text.includes(secret))
      const after = await request(`${server.apiUrl}/healthz`, { ca: authority.cert })
      assert.equal(after.fingerprint, fingerprint256)
      const rotated = await svc3(['server', 'rotate-master-key', '--data', data])
      assert.equal(rotated.code, 0, rotated.stderr)
      await isSealed()
      assert.ok(!server.output().includes(secret))
    }
    await using again = await startServer()
    assert.equal((await request(`${again.apiUrl}/healthz`, { ca: authority.cert })).fingerprint, fingerprint256)
    assert.ok(again.output().includes(keyFingerprintOf(pair.cert)))
    await isSealed()
    const file = path.join(home, 'ca.pem')
    await fs.writeFile(file, authority.cert)
    assert.equal((await svc3(['config', 'set', '--api-url', again.apiUrl, '--ca', file], { env: env(again) })).code, 0)
    const list = await svc3(['namespace', 'list'], { env: env(again, { SVC3_TOKEN: headers.authorization.slice(7) }) })
    assert.deepEqual([list.code, list.stderr], [0, ''])
  })

  it('svc3 server is trusted by the command line when a person at a terminal says so, and not in a pipe', async () => {
    await using server = await startServer()
    const { keyFingerprint } = await request(`${server.apiUrl}/healthz`)
    const piped = await svc3(['namespace', 'list'], { env: env(server, { SVC3_TOKEN: 'x' }) })
    assert.equal(piped.code, 1)
    assert.ok(piped.stderr.includes(keyFingerprint))
    const typed = await atTerminal('version', 'yes', env(server))
    assert.ok(typed.includes(keyFingerprint) && /server 3\./.test(typed), typed)
    const after = await svc3(['version'], { env: env(server) })
    assert.match(after.stdout, /^client .*\nserver /)
    assert.equal(after.stderr, '')
  })

  it('svc3 server serves plain HTTP beside HTTPS where that is asked for, and may be known by another address', async () => {
    await using server = await startServer('--plain-http', '--url', 'https://svc3.example.com')
    assert.equal(server.apiUrl, 'https://svc3.example.com')
    const { apiUrl } = JSON.parse(await fs.readFile(path.join(data, 'connection.json'), 'utf8'))
    const { text } = await request(`${apiUrl}/api/v1/cluster-info`)
    assert.equal(JSON.parse(text).apiEndpoint, 'https://svc3.example.com')
    assert.equal((await request(`${apiUrl.replace('http:', 'https:')}/healthz`)).status, 200)
  })

  it('svc3 server says so when its folder cannot be used', async () => {
    const file = path.join(data, 'file')
    await fs.writeFile(file, '')
    const { code, stderr } = await svc3(['server', '--listen', '127.0.0.1:0', '--data', file])
    assert.equal(code, 1)
    assert.match(stderr, /file is not a folder\n.*--data DIR/)
  })
})

describe('svc3 dev', () => {
  it('svc3 dev speaks TLS on the same port, with a certificate of its own that cluster-info has for Kubernetes clients', async () => {
    await using server = await startDev(data)
    assert.equal((await server.call('GET', '/api/v1/namespaces')).status, 200)
    const secure = server.apiUrl.replace('http:', 'https:')
    const { status, fingerprint } = await request(`${secure}/healthz`)
    assert.equal(status, 200)
    const { body } = await server.call('GET', '/api/v1/certificate')
    assert.equal(body.fingerprint, fingerprint)
    const { certData } = (await server.call('GET', '/api/v1/cluster-info')).body
    assert.equal(new X509Certificate(String(certData)).fingerprint256, fingerprint)
  })
})

/** Runs the program on a new terminal and types the answer when it asks. Returns all that the terminal showed. */
function atTerminal(words: string, answer: string, environment: Record<string, string>): Promise<string> {
  const child = spawn('script', ['--quiet', '--return', '--command', `${program} ${words}`, '/dev/null'], {
    env: { ...process.env, ...environment },
  })
  return new Promise((resolve, reject) => {
    let shown = ''
    child.stdout.on('data', (chunk) => {
      const before = shown
      shown += chunk
      if (!before.includes('[yes/no]') && shown.includes('[yes/no]')) child.stdin.write(`${answer}\n`)
    })
    child.on('error', reject).on('close', () => resolve(shown))
  })
}

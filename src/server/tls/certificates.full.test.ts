// The life of the certificate: creation, renewal, several servers, replacement under load.
import assert from 'node:assert/strict'
import { randomBytes, X509Certificate } from 'node:crypto'
import https from 'node:https'
import os from 'node:os'
import { describe, it } from 'node:test'
import tls from 'node:tls'
import { credentialsPath, startService } from '../../../test/support/rigs/service.ts'
import { formOf, keyFingerprintOf, makePair, uploadPath } from '../../../test/support/tools/certificates.ts'
import { makeKeyring } from '../../auth/keyring.ts'
import { SealError } from '../../auth/seal.ts'
import { Secrets } from '../../auth/secrets.ts'
import { silentLog } from '../../platform/log.ts'
import { openMemory } from '../../store/memory.ts'
import { openCollections } from '../../store/records/collections.ts'
import { Certificates } from './certificates.ts'
import { ownNames } from './own-names.ts'

const dayMs = 86_400_000

/** Servers that share a store and its keys. */
async function cluster() {
  const store = openMemory()
  const secrets = new Secrets(makeKeyring([randomBytes(32)]))
  const clock = { nowMs: Date.parse('2026-11-15T09:00:00Z'), now: () => new Date(clock.nowMs) }
  const server = async (names = ['localhost']) => {
    const collections = await openCollections(store)
    return { collections, certificates: new Certificates({ collections, secrets, clock, log: silentLog, names }) }
  }
  return { store, secrets, clock, server }
}

describe('a self-signed certificate', () => {
  it('a self-signed certificate has localhost, this machine and the listening address, at most 825 days, and ECDSA P-256', async () => {
    const { server, clock } = await cluster()
    const { certificates } = await server([...ownNames('192.0.2.7')])
    const { certificate, facts } = await certificates.current()
    const leaf = new X509Certificate(certificate)
    for (const ip of ['127.0.0.1', '::1', '192.0.2.7']) assert.equal(leaf.checkIP(ip), ip)
    for (const name of ['localhost', os.hostname().toLowerCase()]) assert.equal(leaf.checkHost(name), name)
    assert.equal(leaf.checkHost('example.com'), undefined)
    assert.deepEqual(leaf.publicKey.asymmetricKeyDetails, { namedCurve: 'prime256v1' })
    assert.ok(leaf.validToDate.getTime() - leaf.validFromDate.getTime() <= 825 * dayMs)
    assert.ok(leaf.validToDate.getTime() - clock.nowMs > 365 * dayMs && leaf.validFromDate.getTime() < clock.nowMs)
    assert.ok(facts.selfSigned && !leaf.ca)
    assert.deepEqual(ownNames('0.0.0.0').includes('0.0.0.0'), false)
  })

  it('a self-signed certificate has the public address if the server listens on all addresses', async () => {
    const local = ['localhost', '127.0.0.1', '::1', os.hostname().toLowerCase()]
    for (const everywhere of ['0.0.0.0', '::']) {
      assert.deepEqual(ownNames(everywhere), local)
      assert.deepEqual(ownNames(everywhere, 'https://svc3.example.com:8443'), [...local, 'svc3.example.com'])
      assert.deepEqual(ownNames(everywhere, 'https://[2001:db8::7]:8443'), [...local, '2001:db8::7'])
    }
    assert.deepEqual(ownNames('127.0.0.1', 'https://localhost'), local)
    const { server } = await cluster()
    const { certificates } = await server([...ownNames('0.0.0.0', 'https://192.0.2.9:8443')])
    const leaf = new X509Certificate((await certificates.current()).certificate)
    assert.equal(leaf.checkIP('192.0.2.9'), '192.0.2.9')
    assert.equal(leaf.checkIP('0.0.0.0'), undefined)
  })

  it('a self-signed certificate is made once, also by servers that start at the same time', async () => {
    const { server } = await cluster()
    const servers = [await server(), await server(), await server()]
    const served = await Promise.all(
      servers.flatMap(({ certificates }) => [certificates.current(), certificates.current()]),
    )
    assert.equal(new Set(served.map(({ key }) => key)).size, 1)
    assert.deepEqual(await (await server()).certificates.current(), served[0])
  })

  it('a self-signed certificate is renewed in its last 30 days with the same key, on every server', async () => {
    const { server, clock } = await cluster()
    const [one, two] = [await server(), await server()]
    const { facts, certificate, key } = await one.certificates.current()
    await two.certificates.current()
    const heard: string[] = []
    two.certificates.subscribe((served) => heard.push(served.facts.fingerprint))
    clock.nowMs = Date.parse(facts.notAfter) - 31 * dayMs
    await one.certificates.renew()
    assert.equal((await one.certificates.current()).facts.fingerprint, facts.fingerprint)
    clock.nowMs += 2 * dayMs
    await one.certificates.renew()
    const renewed = (await one.certificates.current()).facts
    assert.notEqual(renewed.fingerprint, facts.fingerprint)
    assert.equal(renewed.publicKeyFingerprint, keyFingerprintOf(certificate))
    const served = await one.certificates.current()
    assert.equal(served.key, key)
    assert.equal(keyFingerprintOf(served.certificate), renewed.publicKeyFingerprint)
    assert.ok(renewed.selfSigned)
    tls.createSecureContext({ cert: served.certificate, key: served.key })
    assert.ok(Date.parse(renewed.notAfter) > clock.nowMs + 365 * dayMs)
    await two.collections.certificates.view.reached(one.collections.certificates.view.rev)
    assert.deepEqual(heard, [renewed.fingerprint])
    assert.deepEqual((await two.certificates.current()).facts, renewed)
  })

  it('an uploaded certificate that expires is not replaced by a self-signed one', async () => {
    const { server, clock } = await cluster()
    const { certificates } = await server()
    const { cert, key } = await makePair()
    const { fingerprint, notAfter } = await certificates.replace({ certificate: cert, key }, 'admin')
    clock.nowMs = Date.parse(notAfter) + dayMs
    await certificates.renew()
    assert.equal((await certificates.current()).facts.fingerprint, fingerprint)
  })

  it('a certificate with an altered or moved key is refused, not replaced', async () => {
    const { server, store } = await cluster()
    await (await server()).certificates.current()
    const entry = await store.get('/certificates/api')
    assert.ok(entry)
    await store.update(entry.key, { ...(entry.value as object), updatedBy: 'eve' }, entry.rev)
    await assert.rejects((await server()).certificates.current(), SealError)
  })
})

describe('swapping certificates under load', () => {
  it('swapping certificates under load fails no request and ends no watch, and new connections get the new one', async () => {
    await using service = await startService({
      settings: { limits: { requestsPerMinute: 1_000_000_000 } },
      logLevel: 'warn',
    })
    const { port } = new URL(await service.listen())
    const pairs = await Promise.all(Array.from({ length: 6 }, (_, index) => makePair({ name: `n${index}.example` })))
    const headers = { authorization: `Bearer ${service.adminToken}` }
    const seen = new Set<string>()
    const reused = { count: 0 }
    const request = (agent: https.Agent, path = credentialsPath): Promise<number> =>
      new Promise((resolve, reject) => {
        const options = { port, host: '127.0.0.1', path, agent, headers, rejectUnauthorized: false }
        const sent = https.get(options, (response) => {
          if (sent.reusedSocket) reused.count++
          const socket = response.socket as tls.TLSSocket
          seen.add(socket.getPeerX509Certificate()?.fingerprint256 ?? '')
          response
            .on('error', reject)
            .on('end', () => resolve(response.statusCode ?? 0))
            .resume()
        })
        sent.on('error', reject)
      })
    const upload = async (index: number): Promise<string> => {
      const pair = pairs[index]
      assert.ok(pair)
      const answer = await service.call('POST', uploadPath, await formOf(pair))
      assert.equal(answer.status, 200, answer.text)
      return answer.body.fingerprint
    }
    await upload(0)

    const watchAgent = new https.Agent()
    const lines: string[] = []
    const watches = await Promise.all(
      Array.from(
        { length: 5 },
        () =>
          new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
            const options = {
              port,
              host: '127.0.0.1',
              path: `${credentialsPath}?watch=true`,
              agent: watchAgent,
              headers,
              rejectUnauthorized: false,
            }
            https.get(options, resolve).on('error', reject)
          }),
      ),
    )
    let watchesEnded = 0
    for (const watch of watches) {
      watch.on('data', (chunk: Buffer) => lines.push(chunk.toString()))
      watch.on('close', () => watchesEnded++)
    }

    let stop = false
    let requests = 0
    const failures: unknown[] = []
    const keepAlive = new https.Agent({ keepAlive: true, maxSockets: 8 })
    /** Resumes TLS sessions, like browsers and Go programs. */
    const fresh = new https.Agent({ keepAlive: false, maxCachedSessions: 100 })
    const worker = async (agent: https.Agent): Promise<void> => {
      while (!stop) {
        const status = await request(agent).catch((error: unknown) => error)
        requests++
        if (status !== 200) failures.push(status)
      }
    }
    const workers = [...Array(8).fill(keepAlive), ...Array(8).fill(fresh)].map(worker)
    for (let swap = 1; swap <= 10; swap++) {
      const fingerprint = await upload(swap % pairs.length)
      const socket = tls.connect({ port: Number(port), host: '127.0.0.1', rejectUnauthorized: false })
      await new Promise((resolve) => socket.once('secureConnect', resolve))
      assert.equal(socket.getPeerX509Certificate()?.fingerprint256, fingerprint)
      socket.destroy()
      for (const enough = requests + 60; requests < enough || !seen.has(fingerprint); )
        await new Promise((resolve) => setTimeout(resolve, 2))
    }
    stop = true
    await Promise.all(workers)
    assert.deepEqual(failures, [])
    assert.ok(requests > 600 && reused.count > 100, `${requests} requests, ${reused.count} on reused connections`)
    assert.ok(seen.size >= pairs.length, `${seen.size} certificates seen`)
    assert.equal(watchesEnded, 0)
    const body = { server: 'https://after.example', username: 'a', password: 'b' }
    await service.call('POST', `${credentialsPath}/add`, { body })
    while (lines.filter((line) => line.includes('after.example')).length < 5)
      await new Promise((resolve) => setTimeout(resolve, 5))
    for (const agent of [keepAlive, fresh, watchAgent]) agent.destroy()
    for (const watch of watches) watch.destroy()
  })
})

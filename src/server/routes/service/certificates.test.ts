// Uploads of certificates: what is accepted and what is refused, and that the key is never shown.
import assert from 'node:assert/strict'
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { type Answer, startService, type TestService } from '../../../../test/support/rigs/service.ts'
import {
  fileForm,
  formOf,
  keyFingerprintOf,
  makePair,
  type TestPair,
  textForm,
  uploadPath,
} from '../../../../test/support/tools/certificates.ts'

let service: TestService
let authority: TestPair
let good: TestPair
before(async () => {
  service = await startService()
  authority = await makePair({ name: 'Test CA', isAuthority: true })
  good = await makePair({ name: 'svc3.example.com', issuer: authority })
})
after(() => service[Symbol.asyncDispose]())

const upload = async (cert: string | undefined, key: string | undefined, form = fileForm): Promise<Answer> =>
  service.call('POST', uploadPath, await form({ certPath: cert, keyPath: key }))
const pem = (key: { export(options: { type: 'pkcs8'; format: 'pem' }): string | Buffer }): string =>
  key.export({ type: 'pkcs8', format: 'pem' }).toString()

/** Edits the signature algorithm, because current tools create no such certificate. */
const withMd5 = (cert: string): string => {
  const hex = new X509Certificate(cert).raw.toString('hex').replaceAll('2a864886f70d01010b', '2a864886f70d010104')
  return new X509Certificate(Buffer.from(hex, 'hex')).toString()
}

describe('a good certificate', () => {
  const forms = { files: fileForm, 'text fields': textForm }
  for (const [name, form] of Object.entries(forms)) {
    it(`a good certificate is accepted as ${name}, and shown without its key`, async () => {
      const answer = await upload(good.cert + authority.cert, good.key, form)
      assert.equal(answer.status, 200, answer.text)
      const leaf = new X509Certificate(good.cert)
      assert.deepEqual(answer.body, {
        subject: 'CN=svc3.example.com',
        issuer: 'CN=Test CA',
        notBefore: leaf.validFromDate.toISOString().replace('.000', ''),
        notAfter: leaf.validToDate.toISOString().replace('.000', ''),
        dnsNames: ['svc3.example.com', 'localhost'],
        fingerprint: leaf.fingerprint256,
        publicKeyFingerprint: keyFingerprintOf(good.cert),
        selfSigned: false,
      })
      assert.deepEqual(
        (await service.call('GET', '/api/v1/certificate', { token: service.devToken })).body,
        answer.body,
      )
    })
  }

  it('a good certificate causes an event with its fingerprint', async () => {
    await using fresh = await startService()
    const { fingerprint } = (await fresh.call('POST', uploadPath, await formOf(good))).body
    const { items } = (await fresh.call('GET', '/api/v1/namespaces/svc-default/events')).body
    assert.equal(items.length, 1)
    assert.deepEqual(items[0].involved, { kind: 'certificates', name: fingerprint })
    assert.ok(!JSON.stringify(items).includes('PRIVATE KEY'))
  })

  it('a good certificate may be RSA, in PKCS#1 or PKCS#8, and may be surrounded by other text', async () => {
    const rsa = await makePair({ keyType: 'rsa' })
    const pkcs1 = createPrivateKey(rsa.key).export({ type: 'pkcs1', format: 'pem' }).toString()
    for (const key of [rsa.key, pkcs1, `Bag Attributes\r\n${pkcs1.replaceAll('\n', '\r\n')}`]) {
      const answer = await upload(`subject=CN = x\n${rsa.cert}`, key)
      assert.equal(answer.status, 200, answer.text)
      assert.equal(answer.body.selfSigned, true)
    }
  })

  it('a good certificate may be restricted to servers, and come with a root signed with SHA-1', async () => {
    const root = await makePair({ name: 'Old root', isAuthority: true, algorithm: 'sha1' })
    const { cert, key } = await makePair({ issuer: root, use: 'serverAuth' })
    const answer = await upload(cert + root.cert, key)
    assert.equal(answer.status, 200, answer.text)
  })

  it('a good certificate is in cluster-info if the API is served by TLS', async () => {
    assert.equal((await service.call('GET', '/api/v1/cluster-info')).body.certData, '')
    await using secure = await startService({ plainHttp: false })
    await secure.call('POST', uploadPath, await formOf(good))
    const { certData } = (await secure.call('GET', '/api/v1/cluster-info', { token: null })).body
    assert.equal(certData.trim(), good.cert.trim())
  })

  it('a good certificate has a key that is not in responses, logs, or unencrypted in the store', async () => {
    const text = `${(await service.call('POST', uploadPath, await formOf(good))).text}${(await service.call('GET', '/api/v1/certificate')).text}`
    const secret = good.key.split('\n')[1] ?? ''
    assert.ok(secret.length > 40)
    const record = JSON.stringify(service.services.collections.certificates.list())
    assert.ok(record.includes(good.cert.split('\n')[1] ?? 'none'))
    for (const seen of [text, service.logLines.join(''), record]) assert.ok(!seen.includes(secret))
  })
})

describe('a bad upload is refused, and the old certificate is kept:', () => {
  const dayMs = 86_400_000
  const at = (days: number): Date => new Date(service.clock.nowMs + days * dayMs)
  type Case = readonly [cert: string | undefined, key: string | undefined, field: string, message: RegExp]
  const other = () => makePair()
  const cases: Readonly<Record<string, () => Promise<Case>>> = {
    'a key of another certificate': async () => [
      good.cert,
      (await other()).key,
      'keyPath',
      /does not match the certificate/,
    ],
    'an expired one': async () => {
      const { cert, key } = await makePair({ notBefore: at(-20), notAfter: at(-1) })
      return [cert, key, 'certPath', /The certificate expired at 2026-11-14T09:00:00Z/]
    },
    'one that is not valid yet': async () => {
      const { cert, key } = await makePair({ notBefore: at(1), notAfter: at(20) })
      return [cert, key, 'certPath', /The certificate is not valid before 2026-11-16T09:00:00Z/]
    },
    'an expired one in the chain': async () => {
      const old = await makePair({ name: 'Old CA', isAuthority: true, notBefore: at(-20), notAfter: at(-1) })
      const { cert, key } = await makePair({ issuer: old })
      return [cert + old.cert, key, 'certPath', /Certificate 2 of the chain expired/]
    },
    'a key with a passphrase': async () => {
      const { cert, key } = await makePair({ passphrase: 'secret' })
      return [cert, key, 'keyPath', /has a passphrase: remove it/]
    },
    'an Ed25519 key': async () => [
      good.cert,
      pem(generateKeyPairSync('ed25519').privateKey),
      'keyPath',
      /type ed25519 is not supported: use RSA or ECDSA/,
    ],
    'an RSA key of 1024 bits': async () => [
      good.cert,
      pem(generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey),
      'keyPath',
      /1024 bits: use at least 2048/,
    ],
    'another curve': async () => [
      good.cert,
      pem(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey),
      'keyPath',
      /Curve secp256k1 is not supported/,
    ],
    'garbage as a certificate': async () => [
      'garbage',
      good.key,
      'certPath',
      /Expected 1 to 10 certificates in PEM, found 0/,
    ],
    'a damaged certificate': async () => [
      good.cert.replace(/\n.{20}/, '\nAAAAAAAAAAAAAAAAAAAA'),
      good.key,
      'certPath',
      /The certificate cannot be read/,
    ],
    'garbage as a key': async () => [good.cert, 'garbage', 'keyPath', /Expected one private key in PEM, found 0/],
    'a damaged key': async () => [
      good.cert,
      good.key.replace(/\n.{20}/, '\nAAAAAAAAAAAAAAAAAAAA'),
      'keyPath',
      /Cannot read the private key/,
    ],
    'two keys': async () => [good.cert, good.key + good.key, 'keyPath', /found 2/],
    'the parts swapped': async () => [good.key, good.cert, 'keyPath', /seem swapped/],
    'the key beside the certificate': async () => [
      good.cert + good.key,
      good.key,
      'certPath',
      /contains a private key/,
    ],
    'a chain in the wrong order': async () => [authority.cert + good.cert, good.key, 'certPath', /must come first/],
    'a chain that does not belong': async () => [
      good.cert + (await makePair({ name: 'Other CA', isAuthority: true })).cert,
      good.key,
      'certPath',
      /is not signed by the next one/,
    ],
    'one for clients': async () => {
      const { cert, key } = await makePair({ use: 'clientAuth' })
      return [cert, key, 'certPath', /not for servers: its extended key usage lacks serverAuth/]
    },
    'one that names no host': async () => {
      const { cert, key } = await makePair({ isNameless: true })
      return [cert, key, 'certPath', /has no subject alternative name/]
    },
    'one signed with SHA-1': async () => {
      const { cert, key } = await makePair({ algorithm: 'sha1' })
      return [cert, key, 'certPath', /The certificate is signed by ecdsa-with-SHA1, which is insecure/]
    },
    'one signed with MD5': async () => {
      const { cert, key } = await makePair({ keyType: 'rsa' })
      return [withMd5(cert), key, 'certPath', /The certificate is signed by md5WithRSAEncryption/]
    },
    'one signed with SHA-1 in the chain': async () => {
      const between = await makePair({ name: 'Between', isAuthority: true, issuer: authority, algorithm: 'sha1' })
      const { cert, key } = await makePair({ issuer: between })
      return [cert + between.cert + authority.cert, key, 'certPath', /Certificate 2 of the chain is signed by .*SHA1/]
    },
    'eleven certificates': async () => [good.cert.repeat(11), good.key, 'certPath', /found 11/],
  }
  for (const [name, make] of Object.entries(cases)) {
    it(name, async () => {
      await upload(good.cert, good.key)
      const rev = service.services.collections.certificates.view.revOf()
      const [cert, key, field, message] = await make()
      const answer = await upload(cert, key)
      assert.equal(answer.status, 422, answer.text)
      assert.equal(answer.body.reason, 'Invalid')
      const cause = answer.body.details.causes.find((each: { field: string }) => each.field === field)
      assert.match(cause?.message ?? answer.text, message)
      assert.equal(service.services.collections.certificates.view.revOf(), rev)
      const secret = key?.split('\n')[1] ?? ''
      if (secret.length > 20) assert.ok(!answer.text.includes(secret) && !service.logLines.join('').includes(secret))
    })
  }

  it('a bad upload is refused, and the old certificate is kept: both parts are invalid, and both are named', async () => {
    const { body } = await upload('x', 'y')
    assert.deepEqual(body.details.causes.map((each: { field: string }) => each.field).sort(), ['certPath', 'keyPath'])
  })

  it('a bad upload is refused, and the old certificate is kept: a part that is too large, as a file and as a field: 413 with its name', async () => {
    for (const form of [fileForm, textForm]) {
      const answer = await upload(good.cert, `${good.key}${'x'.repeat(65_536)}`, form)
      assert.equal(answer.status, 413, answer.text)
      assert.equal(answer.body.reason, 'RequestEntityTooLarge')
      assert.equal(answer.body.details.causes[0].field, 'keyPath')
    }
  })

  it('a bad upload is refused, and the old certificate is kept: a form that is too large in all, with and without a length: 413', async () => {
    const { body, headers } = await fileForm({ certPath: good.cert, keyPath: good.key, extra: 'x'.repeat(1_100_000) })
    assert.equal((await service.call('POST', uploadPath, { body, headers })).status, 413)
    const base = await service.listen()
    const chunked = await fetch(base + uploadPath, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${service.adminToken}` },
      body: new Blob([body]).stream(),
      duplex: 'half',
    } as RequestInit)
    assert.equal(chunked.status, 413)
    await chunked.body?.cancel()
  })

  it('a bad upload is refused, and the old certificate is kept: a missing, empty or repeated part', async () => {
    const missing = await upload(good.cert, undefined)
    assert.equal(missing.status, 400)
    assert.deepEqual(missing.body.details.causes[0].field, 'keyPath')
    assert.match(missing.body.message, /keyPath is required/)
    assert.equal((await upload(good.cert, '')).status, 422)
    const { body, headers } = await formOf(good)
    const boundary = headers['content-type'].split('boundary=')[1] ?? ''
    const again = `--${boundary}\r\nContent-Disposition: form-data; name="keyPath"\r\n\r\nx\r\n`
    const twice = await service.call('POST', uploadPath, { body: again + body, headers })
    assert.equal(twice.status, 400, twice.text)
    assert.match(twice.body.message, /keyPath appears twice/)
  })

  it('a bad upload is refused, and the old certificate is kept: not a form: JSON, no boundary, incomplete, empty', async () => {
    const { body, headers } = await formOf(good)
    const bad = [
      { body: { certPath: good.cert, keyPath: good.key } },
      { body: '' },
      { body, headers: { 'content-type': 'multipart/form-data' } },
      { body: body.slice(0, 300), headers },
      { body: 'nothing of the kind', headers },
      {},
    ]
    for (const request of bad) {
      const answer = await service.call('POST', uploadPath, request)
      assert.equal(answer.status, 400, JSON.stringify([request, answer.text]))
      assert.equal(answer.body.reason, 'BadRequest')
      assert.ok(answer.body.hint)
    }
  })

  it('a bad upload is refused, and the old certificate is kept: a caller without permission, before the body is read', async () => {
    const form = await formOf(good)
    assert.equal((await service.call('POST', uploadPath, { ...form, token: service.devToken })).status, 403)
    assert.equal((await service.call('POST', uploadPath, { ...form, token: null })).status, 401)
    assert.equal((await service.call('GET', '/api/v1/certificate', { token: null })).status, 401)
  })
})

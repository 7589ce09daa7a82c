// Every row of the mapping against the gateway: carried out, 410 with advice, or 404; headers; permissions; switched off.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startService, type TestService } from '../../../test/support/service.ts'
import { documentationOf } from '../../legacy/advice.ts'
import { legacyRows } from '../../legacy/map.ts'
import type { LegacyCall, LegacyRow } from '../../legacy/row.ts'

let on: TestService
let off: TestService
before(async () => {
  on = await startService({ settings: { legacy: { enabled: true }, limits: { anonymousPerMinute: 1_000_000 } } })
  off = await startService({ settings: { limits: { anonymousPerMinute: 1_000_000 } } })
})
after(async () => {
  await on[Symbol.asyncDispose]()
  await off[Symbol.asyncDispose]()
})

const urlOf = ({ path }: LegacyCall): string => path.replaceAll(/\{\w+\}/g, 'x')
const keptCalls = ['GET /resources/vm/list/all', 'GET /resources/vm/list/{user}', 'GET /health-check']
const isCarriedOut = ({ fate }: LegacyRow, { method, path }: LegacyCall): boolean =>
  fate === 'replaced' || keptCalls.includes(`${method} ${path}`)
/** Without an identity provider of its own the service knows no passwords; what a version lacks is gone, too. */
const goneAllTheSame = ['POST /token']

const isEnvelope = (body: Record<string, unknown>): boolean =>
  typeof body.message === 'string' && typeof body.help === 'object' && Array.isArray(body.errors)

describe('every row', () => {
  for (const row of legacyRows)
    for (const call of row.calls) {
      const name = `${call.method} ${call.path}`
      it(`${name}: ${isCarriedOut(row, call) ? 'carried out' : '410'}`, async () => {
        const answer = await on.call(call.method, urlOf(call))
        assert.ok(isEnvelope(answer.body), answer.text)
        assert.match(String(answer.headers.deprecation), /^@\d+$/)
        assert.equal(answer.headers.sunset, 'Mon, 15 Nov 2027 00:00:00 GMT')
        assert.match(String(answer.headers.link), /rel="successor-version"/)
        for (const { path } of row.operations)
          assert.ok(String(answer.headers.link).includes((path.split('{namespace}')[1] ?? path).split('{')[0] ?? ''))
        if (isCarriedOut(row, call) && !goneAllTheSame.includes(name)) {
          assert.ok([200, 400, 404, 409].includes(answer.status), `${answer.status} ${answer.text}`)
          if (answer.status >= 400) assert.doesNotMatch(answer.text, /2\.4\.x had no|is no more/)
        } else {
          assert.equal(answer.status, 410, answer.text)
          if (goneAllTheSame.includes(name)) return
          const [error] = answer.body.errors
          assert.ok(error.message.includes(documentationOf(row)) && error.message.includes(row.advice), error.message)
          assert.equal(answer.body.help.documentation, documentationOf(row))
        }
      })

      it(`${name}: 410 where the gateway is off`, async () => {
        const answer = await off.call(call.method, urlOf(call), { token: null })
        assert.equal(answer.status, 410)
        assert.match(answer.body.errors[0].message, /switched off/)
        assert.equal(answer.body.help.documentation, documentationOf(row))
        assert.ok(answer.headers.deprecation && answer.headers.sunset)
      })

      if (isCarriedOut(row, call) && !['POST /token', 'GET /health-check'].includes(name))
        it(`${name}: by nobody 401, by somebody from elsewhere 403`, async () => {
          const nobody = await on.call(call.method, urlOf(call), { token: null })
          assert.equal(nobody.status, 401)
          assert.match(nobody.body.errors[0].message, /Unauthorized/)
          const account = { name: 'robot', namespace: 'svc-elsewhere', uid: 'robot', createdAt: '' }
          const { serviceAccounts } = on.services.collections
          if (!serviceAccounts.get('svc-elsewhere', 'robot'))
            await serviceAccounts.create('svc-elsewhere', 'robot', account)
          const token = await on.tokenFor({
            kind: 'serviceaccount',
            name: 'robot',
            namespace: 'svc-elsewhere',
            uid: 'robot',
          })
          const stranger = await on.call(call.method, urlOf(call), { token })
          assert.equal(stranger.status, 403, stranger.text)
          assert.ok(isEnvelope(stranger.body))
        })
    }
})

describe('what is no row', () => {
  it('is 404 in the envelope, or 405 where the path is one', async () => {
    for (const path of [
      '/resources',
      '/resources/vm/fly',
      '/users/ada@example.com',
      '/logs/x',
      '/version/x',
      '/resources/',
    ])
      for (const method of ['GET', 'POST', 'DELETE', 'PATCH']) {
        const answer = await on.call(method, path, { body: '{"not json', token: null })
        assert.equal(answer.status, 404, `${method} ${path}`)
        assert.match(answer.body.errors[0].message, /not found/)
        assert.ok(isEnvelope(answer.body))
      }
    const answer = await on.call('GET', '/resources/vm/deploy')
    assert.deepEqual([answer.status, answer.headers.allow], [405, 'POST'])
  })

  it('is 410 where the gateway is off', async () => {
    assert.equal((await off.call('GET', '/resources/vm/fly', { token: null })).status, 410)
    assert.equal((await off.call('PUT', '/token', { token: null })).status, 410)
  })

  it('leaves other unknown paths to the service', async () => {
    const answer = await on.call('GET', '/resource')
    assert.deepEqual([answer.status, answer.body.kind], [404, 'Status'])
  })
})

describe('the namespace', () => {
  it('is the one of the settings, also by its alias', async () => {
    await using own = await startService({ settings: { legacy: { enabled: true, namespace: 'orka-ios' } } })
    const missing = await own.call('GET', '/resources/vm/list')
    assert.equal(missing.status, 404)
    assert.match(missing.body.errors[0].message, /"svc-ios" not found/)
    await own.call('POST', '/api/v1/namespaces', { body: { name: 'svc-ios' } })
    const answer = await own.call('GET', '/resources/vm/list')
    assert.equal(answer.status, 200, answer.text)
    const base = '/api/v1/namespaces/svc-ios'
    assert.equal(
      answer.headers.link,
      `<${base}/vms>; rel="successor-version", <${base}/vmconfigs>; rel="successor-version"`,
    )
    assert.equal((await own.call('GET', '/resources/vm/list', { token: own.devToken })).status, 403)
  })
})

describe('a service account of the namespace', () => {
  it('works like a developer', async () => {
    const account = { name: 'jenkins', namespace: 'svc-default', uid: 'jenkins' }
    await on.services.collections.serviceAccounts.create('svc-default', 'jenkins', { ...account, createdAt: '' })
    const token = await on.tokenFor({ kind: 'serviceaccount', ...account })
    for (const path of ['/resources/vm/list', '/resources/node/list', '/resources/image/list'])
      assert.equal((await on.call('GET', path, { token })).status, 200)
    const tagging = await on.call('POST', '/resources/node/tag/ios', { token, body: { orka_node_name: 'x' } })
    assert.equal(tagging.status, 403)
  })
})

describe('a developer', () => {
  it('may not do what takes an administrator', async () => {
    for (const [method, path] of [
      ['POST', '/resources/node/tag/ios'],
      ['DELETE', '/resources/node/tag/ios'],
      ['POST', '/resources/cert/set'],
    ] as const) {
      const answer = await on.call(method, path, { token: on.devToken, body: { orka_node_name: 'x' } })
      assert.equal(answer.status, 403, `${path} ${answer.text}`)
    }
  })
})

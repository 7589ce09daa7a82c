// Every row of the mapping through the gateway: answers, headers, permissions, and the disabled gateway.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage, startNode } from '../../../test/support/stand-ins/node.ts'
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
/** Calls that answer 410 here: logins need the built-in identity provider. */
const goneAllTheSame = ['POST /token']

const pageOf = ({ anchor }: LegacyRow): string => `${on.apiUrl}/api/v1/legacy#${anchor}`

const isEnvelope = (body: Record<string, unknown>): boolean =>
  typeof body.message === 'string' && typeof body.help === 'object' && Array.isArray(body.errors)

describe('every row', () => {
  for (const row of legacyRows)
    for (const call of [...row.calls, ...row.variants]) {
      const name = `${call.method} ${call.path}`
      it(`legacy row ${name}: ${isCarriedOut(row, call) ? 'carried out' : '410'}`, async () => {
        const answer = await on.call(call.method, urlOf(call))
        assert.ok(isEnvelope(answer.body), answer.text)
        assert.match(String(answer.headers.deprecation), /^@\d+$/)
        assert.equal(answer.headers.sunset, 'Mon, 15 Nov 2027 00:00:00 GMT')
        const hasSuccessor = row.operations.length > 0
        assert.match(String(answer.headers.link), /rel="successor-version"/)
        const page = `<${pageOf(row)}>`
        if (!hasSuccessor)
          assert.equal(answer.headers.link, `${page}; rel="successor-version", ${page}; rel="deprecation"`)
        for (const { path } of row.operations)
          assert.ok(String(answer.headers.link).includes((path.split('{namespace}')[1] ?? path).split('{')[0] ?? ''))
        if (isCarriedOut(row, call) && !goneAllTheSame.includes(name)) {
          assert.ok([200, 400, 404, 409].includes(answer.status), `${answer.status} ${answer.text}`)
          if (answer.status >= 400) assert.doesNotMatch(answer.text, /2\.4\.x had no|is not available/)
        } else {
          assert.equal(answer.status, 410, answer.text)
          assert.equal(answer.body.help.documentation, pageOf(row))
          if (goneAllTheSame.includes(name)) return
          const [error] = answer.body.errors
          assert.ok(error.message.includes(pageOf(row)) && error.message.includes(row.advice), error.message)
        }
      })

      it(`legacy row ${name}: 410 if the gateway is disabled`, async () => {
        const answer = await off.call(call.method, urlOf(call), { token: null })
        assert.equal(answer.status, 410)
        assert.match(answer.body.errors[0].message, /switched off/)
        assert.equal(answer.body.help.documentation, pageOf(row))
        assert.ok(answer.headers.deprecation && answer.headers.sunset)
        assert.match(String(answer.headers.link), /rel="successor-version"/)
      })

      if (isCarriedOut(row, call) && !['POST /token', 'GET /health-check'].includes(name))
        it(`legacy row ${name}: 401 without a token, 403 for a stranger`, async () => {
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

describe('legacy page', () => {
  it('the legacy page is public and has every row, also if the gateway is disabled', async () => {
    for (const service of [on, off]) {
      const { status, text, headers } = await service.call('GET', '/api/v1/legacy', { token: null })
      assert.deepEqual([status, headers['content-type']], [200, 'text/html; charset=utf-8'])
      for (const { anchor } of legacyRows) assert.equal(text.split(` id="${anchor}"`).length, 2, anchor)
      assert.ok(text.includes('<code>DELETE /resources/node/tag/{tag}</code>'))
    }
  })
})

describe('slashes', () => {
  it('trailing and doubled slashes are ignored', async () => {
    const { body } = await on.call('GET', '/resources/vm/list')
    for (const path of ['/resources/vm/list/', '//resources/vm/list', '///resources/vm/list//?x=/y/']) {
      const answer = await on.call('GET', path)
      assert.deepEqual([answer.status, answer.body], [200, body], path)
      assert.match(String(answer.headers.link), /vmconfigs>/)
    }
    assert.equal((await on.call('GET', '/resources/node/list/')).status, 200)
    assert.equal((await on.call('GET', '//health-check/', { token: null })).body.api_version, '2.4.0')
    assert.equal((await on.call('GET', '/version/?all=true')).status, 410)
    assert.equal((await on.call('GET', '//console')).status, 404, 'others stay as they are')
  })

  it('an empty or blank segment of a legacy path is refused', async () => {
    for (const [method, path, status] of [
      ['POST', '/resources/node/tag/', 404],
      ['GET', '/resources/vm/list/%20', 400],
      ['GET', '/resources//vm/list', 404],
      ['DELETE', '/resources/vm/deploy/', 405],
    ] as const) {
      const answer = await on.call(method, path)
      assert.equal(answer.status, status, `${path} ${answer.text}`)
      assert.ok(isEnvelope(answer.body))
      assert.match(String(answer.headers.link), /rel="successor-version"/)
      assert.doesNotMatch(answer.text, new RegExp(`but [A-Z, ]*${method}`))
    }
  })
})

describe('refusals before routes', () => {
  it('requests refused before a legacy route are answered in the envelope, too', async () => {
    for (const [method, path, status] of [
      ['OPTIONS', '/resources/vm/list', 405],
      ['OPTIONS', '/token', 405],
      ['GET', '/resources/%zz', 400],
      ['GET', `/resources/vm/status/${'x'.repeat(600)}`, 404],
    ] as const) {
      const answer = await on.call(method, path, { token: null })
      assert.equal(answer.status, status, `${path.slice(0, 50)} ${answer.text}`)
      assert.ok(isEnvelope(answer.body), answer.text)
      assert.ok(answer.headers.deprecation)
      assert.equal((await off.call(method, path, { token: null })).status, 410)
    }
    assert.equal((await on.call('OPTIONS', '/resources/vm/list')).headers.allow, 'GET')
    assert.equal((await on.call('GET', '/api/%zz')).body.kind, 'Status')
  })
})

describe('Link', () => {
  it('the Link header has the name from the request, also of a missing record', async () => {
    const vm = { orka_vm_name: 'a/b' }
    const linked = async (method: string, path: string, body?: object) =>
      String((await on.call(method, path, { body })).headers.link)
    assert.match(await linked('GET', '/resources/vm/status/none'), /\/vms\/none>/)
    assert.match(await linked('DELETE', '/resources/vm/delete', vm), /\/vms\/a%2Fb>/)
    assert.match(await linked('DELETE', '/resources/vm/purge', vm), /\/vms\/a%2Fb>.*\/vmconfigs\/a%2Fb>/)
    assert.match(await linked('DELETE', '/resources/vm/delete', { orka_vm_name: '\ud800' }), /\/vms\/%EF%BF%BD>/)
    assert.ok((await linked('DELETE', '/resources/vm/delete', { orka_vm_name: 'x'.repeat(9_999) })).length < 200)
  })
})

describe('faulty fields', () => {
  it('problems with fields are reported by their names in 2.4.x', async () => {
    const told = async (path: string, body: object) => {
      const answer = await on.call('POST', path, { body })
      assert.ok([400, 422].includes(answer.status), answer.text)
      assert.doesNotMatch(answer.text, /details\.causes/)
      return answer.body.errors[0].message
    }
    const file = { file_name: 'bad name!', file_size: 'huge' }
    assert.match(await told('/resources/image/generate', file), /file_name "bad name!".*; file_size "huge"/)
    await addImage(on, 'ventura', 'amd64')
    const copy = { image: 'ventura', new_name: 'bad name!' }
    assert.match(await told('/resources/image/copy', copy), /^new_name "bad name!"/)
    const config = { orka_vm_name: 'small', orka_base_image: 'ventura' }
    assert.match(
      await told('/resources/vm/create', { ...config, gpu_passthrough: true, tag_required: true }),
      /^tag_required requires a tag$/,
    )
    assert.match(await told('/resources/vm/create', { ...config, orka_cpu_core: 9_999 }), /^orka_cpu_core must be/)
    await addNode()
    await on.call('POST', '/resources/vm/create', { body: config })
    const ports = { orka_vm_name: 'small', reserved_ports: ['80:80'] }
    assert.match(await told('/resources/vm/deploy', ports), /^reserved_ports: port 80/)
  })
})
const addNode = () => startNode(on, { name: 'macpro-1' })

describe('unknown calls', () => {
  it('an unknown call is 404 in the envelope, or 405 with another method of a known path', async () => {
    for (const path of [
      '/resources',
      '/resources/vm/fly',
      '/users/ada@example.com/x',
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

  it('a call that is no legacy row is 410 if the gateway is disabled', async () => {
    assert.equal((await off.call('GET', '/resources/vm/fly', { token: null })).status, 410)
    assert.equal((await off.call('PUT', '/token', { token: null })).status, 410)
  })

  it('the legacy gateway leaves other unknown paths to the service', async () => {
    const answer = await on.call('GET', '/resource')
    assert.deepEqual([answer.status, answer.body.kind], [404, 'Status'])
  })
})

describe('the namespace', () => {
  it('legacy calls use the namespace of the settings, also under its alias', async () => {
    await using own = await startService({ settings: { legacy: { enabled: true, namespace: 'orka-ios' } } })
    const missing = await own.call('GET', '/resources/vm/list')
    assert.equal(missing.status, 404)
    assert.match(missing.body.errors[0].message, /svc-ios not found/)
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
  it('a service account of the namespace uses legacy calls like a developer', async () => {
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
  it('a developer may not make legacy calls that need an administrator', async () => {
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

// Namespaces, service accounts, role bindings and events: granting access and removing it.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { collectNamespaces } from '../../../controllers/collect-namespaces.ts'
import { trimEvents } from '../../../controllers/trim-events.ts'

let service: TestService
beforeEach(async () => {
  service = await startService()
})
afterEach(() => service[Symbol.asyncDispose]())

const at = (namespace: string): string => `/api/v1/namespaces/${namespace}`
const subjects = (namespace: string): string => `${at(namespace)}/rolebindings/svc-dev/subjects`
const create = (name: string) => service.call('POST', '/api/v1/namespaces', { body: { name } })
const addUser = (namespace: string, ...users: string[]) =>
  service.call('POST', `${subjects(namespace)}/add`, { body: { users } })
const removeUser = (namespace: string, ...users: string[]) =>
  service.call('DELETE', `${subjects(namespace)}/remove`, { body: { users } })
const credential = { server: 'https://ghcr.io', username: 'a', password: 'b' }

describe('namespaces', () => {
  it('namespaces are created once, with 201, under valid names', async () => {
    const made = await create('svc-ios')
    assert.equal(made.status, 201)
    assert.deepEqual(made.body, {
      name: 'svc-ios',
      customPods: false,
      createdAt: '2026-11-15T09:00:00Z',
      resourceVersion: made.body.resourceVersion,
    })
    assert.equal((await create('svc-ios')).body.reason, 'AlreadyExists')
    assert.equal((await create('orka-ios')).body.reason, 'AlreadyExists')
    assert.equal((await create('orka-tv')).body.name, 'orka-tv')
    const pods = await service.call('POST', '/api/v1/namespaces', {
      body: { name: 'svc-pods', enableCustomPods: true },
    })
    assert.equal(pods.body.customPods, true)
    for (const name of [
      'ios',
      'svc-',
      'svc--',
      'svc-A',
      'svc-a_b',
      'svc-a-',
      `svc-${'a'.repeat(60)}`,
      'svc-a/b',
      '',
      'svc-ü',
    ]) {
      const refused = await create(name)
      assert.equal(refused.status, 422, name)
      assert.match(refused.body.hint, /Start with svc-/)
    }
  })

  it('namespaces are deleted with their contents, and a new one of the same name is empty', async () => {
    await create('svc-ios')
    await service.call('POST', `${at('svc-ios')}/secrets/registrycredentials/add`, { body: credential })
    await service.call('POST', `${at('svc-ios')}/serviceaccounts/ci`)
    await addUser('svc-ios', 'ana@example.com')
    assert.equal((await service.call('DELETE', at('svc-ios'))).status, 200)
    assert.equal((await service.call('GET', at('svc-ios'))).status, 404)
    const { entries } = await service.services.store.list('/')
    assert.deepEqual(
      entries.filter(({ key }) => key.includes('svc-ios')),
      [],
    )
    await create('svc-ios')
    assert.deepEqual((await service.call('GET', `${at('svc-ios')}/secrets/registrycredentials`)).body, { items: [] })
    assert.deepEqual((await service.call('GET', subjects('svc-ios'))).body, { items: [] })
  })

  it('namespaces: the default one cannot be deleted', async () => {
    const refused = await service.call('DELETE', at('orka-default'))
    assert.equal(refused.status, 422)
    assert.match(refused.body.message, /default namespace/)
  })

  it('namespaces refuse new records while being deleted, and an interrupted deletion is completed', async () => {
    await create('svc-ios')
    const { collections } = service.services
    await service.call('POST', `${at('svc-ios')}/serviceaccounts/ci`)
    const entry = collections.namespaces.get('', 'svc-ios')
    assert.ok(entry)
    await collections.namespaces.update(entry, { ...entry.value, isTerminating: true })
    const refused = await service.call('POST', `${at('svc-ios')}/secrets/registrycredentials/add`, { body: credential })
    assert.equal(refused.status, 409)
    assert.match(refused.body.message, /being deleted/)
    await collections.registryCredentials.create('svc-never', 'stray', { ...credential, sealed: '' } as never)
    const loop = collectNamespaces(service.services)
    while (collections.namespaces.get('', 'svc-ios') || collections.registryCredentials.list('svc-never').length > 0) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    await loop.stop()
    assert.deepEqual(collections.serviceAccounts.list('svc-ios'), [])
  })

  it('namespaces lose nothing to a race between adding and deleting', async () => {
    for (let round = 0; round < 20; round++) {
      await create('svc-race')
      const adds = Array.from({ length: 5 }, (_, index) =>
        service.call('POST', `${at('svc-race')}/serviceaccounts/a${index}`),
      )
      const [deleted, ...answers] = await Promise.all([service.call('DELETE', at('svc-race')), ...adds])
      assert.equal(deleted?.status, 200)
      for (const { status } of answers) assert.ok([201, 404, 409].includes(status))
      assert.deepEqual(service.services.collections.serviceAccounts.list('svc-race'), [])
    }
  })

  it('namespaces are listed for callers with access', async () => {
    await create('svc-ios')
    await create('svc-tv')
    await addUser('svc-tv', 'dev@example.com')
    const list = async (token: string): Promise<string[]> =>
      (await service.call('GET', '/api/v1/namespaces', { token })).body.items.map(({ name }: { name: string }) => name)
    assert.deepEqual(await list(service.adminToken), ['svc-default', 'svc-ios', 'svc-tv'])
    assert.deepEqual(await list(service.devToken), ['svc-default', 'svc-tv'])
  })
})

describe('service accounts', () => {
  const accounts = `${at('svc-default')}/serviceaccounts`
  const token = async (name: string, body?: object) =>
    service.call('POST', `${accounts}/${name}/token`, body ? { body } : {})

  it('service accounts are created, listed and deleted', async () => {
    const made = await service.call('POST', `${accounts}/jenkins`)
    assert.equal(made.status, 201)
    assert.deepEqual((await service.call('GET', accounts)).body.items, [made.body])
    assert.equal((await service.call('POST', `${accounts}/jenkins`)).status, 409)
    assert.equal((await service.call('DELETE', `${accounts}/jenkins`)).status, 200)
    assert.equal((await service.call('DELETE', `${accounts}/jenkins`)).status, 404)
    for (const name of ['Jenkins', 'a_b', '-a', 'a.', 'x'.repeat(254), 'ü']) {
      assert.equal((await service.call('POST', `${accounts}/${encodeURIComponent(name)}`)).status, 422, name)
    }
  })

  it('service accounts get tokens for a year, for the requested time, or without expiry', async () => {
    await service.call('POST', `${accounts}/jenkins`)
    assert.equal((await token('jenkins')).body.expiresAt, '2027-11-15T09:00:00Z')
    assert.equal((await token('jenkins', {})).status, 201)
    assert.equal((await token('jenkins', { duration: '30d' })).body.expiresAt, '2026-12-15T09:00:00Z')
    assert.equal((await token('jenkins', { duration: '8760h0m0s' })).body.expiresAt, '2027-11-15T09:00:00Z')
    const endless = await token('jenkins', { noExpiration: true })
    assert.equal(endless.body.expiresAt, null)
    for (const duration of ['', 'soon', '-1h', '1s', '10', '99999999h'])
      assert.equal((await token('jenkins', { duration })).status, 422, duration)
    assert.equal(
      (await token('jenkins', { duration: '30d', noExpiration: false })).body.expiresAt,
      '2026-12-15T09:00:00Z',
    )
    const both = await token('jenkins', { duration: '1h', noExpiration: true })
    assert.equal(both.status, 422)
    const fields = both.body.details.causes.map(({ field }: { field: string }) => field)
    assert.deepEqual(fields, ['duration', 'noExpiration'])
    assert.equal((await token('nobody')).status, 404)
    service.clock.nowMs += 40 * 365 * 86_400_000
    assert.equal((await service.call('GET', '/api/v1/namespaces', { token: endless.body.token })).status, 200)
  })

  it('service accounts lose all tokens when deleted, and recreating one does not restore them', async () => {
    await service.call('POST', `${accounts}/jenkins`)
    const { body } = await token('jenkins')
    const use = async (): Promise<number> =>
      (await service.call('GET', '/api/v1/namespaces', { token: body.token })).status
    assert.equal(await use(), 200)
    await service.call('DELETE', `${accounts}/jenkins`)
    assert.equal(await use(), 401)
    await service.call('POST', `${accounts}/jenkins`)
    assert.equal(await use(), 401)
  })

  it('service accounts show a token once: it is not stored, also with an Idempotency-Key', async () => {
    await service.call('POST', `${accounts}/jenkins`)
    const headers = { 'idempotency-key': 'k' }
    const first = await service.call('POST', `${accounts}/jenkins/token`, { headers })
    const second = await service.call('POST', `${accounts}/jenkins/token`, { headers })
    assert.notEqual(first.body.token, second.body.token)
    const dump = JSON.stringify(await service.services.store.list('/')) + service.logLines.join('')
    assert.ok(!dump.includes(first.body.token) && !dump.includes(first.body.token.split('.')[2]))
  })

  it('service accounts are developers in their namespace, and in others by a binding, which a new account does not inherit', async () => {
    await create('svc-ios')
    await service.call('POST', `${accounts}/jenkins`)
    const { body } = await token('jenkins')
    const see = async (namespace: string): Promise<number> =>
      (await service.call('GET', `${at(namespace)}/events`, { token: body.token })).status
    assert.deepEqual([await see('svc-default'), await see('svc-ios')], [200, 403])
    const refused = await service.call('GET', `${at('svc-ios')}/events`, { token: body.token })
    assert.equal(
      refused.body.hint,
      'Your namespace is svc-default: add -n svc-default, or use its paths, /namespaces/svc-default. Ask an administrator for access to svc-ios: svc3 rolebinding add-subject --serviceaccount svc-default:jenkins -n svc-ios',
    )
    const serviceaccounts = [{ name: 'jenkins', namespace: 'orka-default' }]
    const added = await service.call('POST', `${subjects('svc-ios')}/add`, { body: { serviceaccounts } })
    assert.deepEqual(added.body.items, [{ kind: 'ServiceAccount', name: 'jenkins', namespace: 'orka-default' }])
    assert.equal(await see('svc-ios'), 200)
    await service.call('DELETE', `${accounts}/jenkins`)
    await service.call('POST', `${accounts}/jenkins`)
    const again = await token('jenkins')
    assert.equal((await service.call('GET', `${at('svc-ios')}/events`, { token: again.body.token })).status, 403)
  })
})

describe('role bindings', () => {
  const see = async (namespace: string): Promise<number> =>
    (await service.call('GET', `${at(namespace)}/events`, { token: service.devToken })).status

  it('role bindings list the accounts of their namespace, which have the role without being added', async () => {
    await create('svc-ios')
    for (const namespace of ['svc-ios', 'svc-default'])
      await service.call('POST', `${at(namespace)}/serviceaccounts/jenkins`)
    const serviceaccounts = [{ name: 'jenkins', namespace: 'svc-default' }]
    await service.call('POST', `${subjects('svc-ios')}/add`, { body: { serviceaccounts } })
    const account = (namespace: string) => ({ kind: 'ServiceAccount', name: 'jenkins', namespace })
    const list = async () => (await service.call('GET', subjects('svc-ios'))).body.items
    assert.deepEqual(await list(), [account('svc-default'), { ...account('svc-ios'), implicit: true }])
    const own = [{ name: 'jenkins', namespace: 'svc-ios' }]
    await service.call('POST', `${subjects('svc-ios')}/add`, { body: { serviceaccounts: own } })
    assert.deepEqual(await list(), [account('svc-default'), account('svc-ios')])
  })

  it('role bindings add and remove a user, and a repetition changes nothing', async () => {
    await create('svc-ios')
    assert.equal(await see('svc-ios'), 403)
    for (let time = 0; time < 2; time++) {
      const { status, body } = await addUser('svc-ios', 'Dev@Example.com')
      assert.equal(status, 200)
      assert.deepEqual(body.items, [{ kind: 'User', name: 'dev@example.com' }])
    }
    assert.equal(await see('svc-ios'), 200)
    for (let time = 0; time < 2; time++)
      assert.deepEqual((await removeUser('svc-ios', 'dev@example.com')).body, { items: [] })
    assert.equal(await see('svc-ios'), 403)
  })

  it('role bindings give every user access to the default namespace until it is removed', async () => {
    assert.equal(await see('svc-default'), 200)
    await removeUser('svc-default', 'dev@example.com')
    assert.equal(await see('svc-default'), 403)
    await addUser('svc-default', 'dev@example.com')
    assert.equal(await see('svc-default'), 200)
  })

  it('role bindings have one role, with two names', async () => {
    assert.equal((await service.call('GET', subjects('svc-default').replace('svc-dev', 'orka-dev'))).status, 200)
    const other = await service.call('GET', subjects('svc-default').replace('svc-dev', 'svc-admin'))
    assert.equal(other.status, 404)
    assert.match(other.body.hint, /svc-dev/)
  })

  it('role bindings refuse all invalid subjects together, and change nothing', async () => {
    const body = {
      users: ['ok@example.com', 'no-mail'],
      serviceaccounts: [
        { name: 'Bad Name', namespace: 'svc-default' },
        { name: 'missing', namespace: 'svc-default' },
      ],
    }
    const refused = await service.call('POST', `${subjects('svc-default')}/add`, { body })
    assert.equal(refused.status, 422)
    assert.deepEqual(
      refused.body.details.causes.map(({ field }: { field: string }) => field),
      ['users.1', 'serviceaccounts.0', 'serviceaccounts.1'],
    )
    assert.deepEqual(
      refused.body.details.causes.map(({ reason }: { reason: string }) => reason),
      ['FieldValueInvalid', 'FieldValueInvalid', 'FieldValueNotFound'],
    )
    assert.deepEqual((await service.call('GET', subjects('svc-default'))).body, { items: [] })
    assert.equal((await service.call('POST', `${subjects('svc-default')}/add`, { body: {} })).status, 422)
  })

  it('role bindings omit deleted accounts, and refuse to remove an account from its own namespace', async () => {
    await create('svc-ios')
    await service.call('POST', `${at('svc-default')}/serviceaccounts/jenkins`)
    const serviceaccounts = [{ name: 'jenkins', namespace: 'svc-default' }]
    await service.call('POST', `${subjects('svc-ios')}/add`, { body: { serviceaccounts } })
    const own = await service.call('DELETE', `${subjects('svc-default')}/remove`, { body: { serviceaccounts } })
    assert.equal(own.status, 422)
    assert.match(own.body.message, /in its own namespace/)
    await service.call('DELETE', `${at('svc-default')}/serviceaccounts/jenkins`)
    await service.call('POST', `${at('svc-default')}/serviceaccounts/jenkins`)
    assert.deepEqual((await service.call('GET', subjects('svc-ios'))).body, { items: [] })
  })

  it('role bindings survive concurrent changes', async () => {
    await create('svc-ios')
    await Promise.all(Array.from({ length: 30 }, (_, index) => addUser('svc-ios', `u${index}@example.com`)))
    assert.equal((await service.call('GET', subjects('svc-ios'))).body.items.length, 30)
  })
})

describe('an open watch', () => {
  const open = async (path: string, token: string): Promise<Response> => {
    const response = await fetch(`${service.apiUrl}${path}?watch=true`, {
      headers: { authorization: `Bearer ${token}` },
    })
    assert.equal(response.status, 200)
    return response
  }
  beforeEach(() => service.listen())

  it('an open watch ends when its service account is deleted', async () => {
    await service.call('POST', `${at('svc-default')}/serviceaccounts/jenkins`)
    const { body } = await service.call('POST', `${at('svc-default')}/serviceaccounts/jenkins/token`)
    const stream = await open(`${at('svc-default')}/events`, body.token)
    await service.call('DELETE', `${at('svc-default')}/serviceaccounts/jenkins`)
    await stream.text()
  })

  it('an open watch ends when the role is removed, and one of namespaces when a role is added', async () => {
    const events = await open(`${at('svc-default')}/events`, service.devToken)
    await removeUser('svc-default', 'dev@example.com')
    await events.text()
    await create('svc-ios')
    const namespaces = await open('/api/v1/namespaces', service.devToken)
    await addUser('svc-ios', 'dev@example.com')
    await namespaces.text()
  })

  it('an open watch of namespaces or events ends when its service account is no longer an administrator', async () => {
    const account = `${at('svc-default')}/serviceaccounts/terraform`
    await service.call('POST', account)
    const { token } = (await service.call('POST', `${account}/token`)).body
    await service.call('PUT', `${account}/role`, { body: { role: 'administrator' } })
    const namespaces = await open('/api/v1/namespaces', token)
    const events = await open(`${at('svc-default')}/events`, token)
    await service.call('PUT', `${account}/role`, { body: { role: 'developer' } })
    await namespaces.text()
    await events.text()
  })
})

describe('events', () => {
  const events = async (namespace: string, query = ''): Promise<{ [key: string]: unknown }[]> =>
    (await service.call('GET', `${at(namespace)}/events${query}`)).body.items

  it('events record every change, with the actor and the request', async () => {
    const path = `${at('svc-default')}/secrets/registrycredentials`
    await service.call('POST', `${path}/add`, { body: credential, headers: { 'x-request-id': 'req-1' } })
    await service.call('POST', `${path}/add`, { body: credential })
    await service.call('POST', `${path}/add`, { body: credential, token: service.devToken })
    service.clock.nowMs += 1_000
    await service.call('DELETE', `${path}/remove`, { body: { server: credential.server } })
    const [added, removed, ...more] = await events('svc-default')
    assert.deepEqual(more, [])
    assert.deepEqual(
      { ...added, name: '', resourceVersion: '' },
      {
        name: '',
        type: 'Normal',
        reason: 'AddRegistryCredential',
        message: 'admin@example.com stored credentials for https://ghcr.io (username a)',
        namespace: 'svc-default',
        involved: { kind: 'registry-credentials', name: 'https://ghcr.io' },
        actor: 'admin@example.com',
        requestId: 'req-1',
        outcome: 'Succeeded',
        at: '2026-11-15T09:00:00Z',
        resourceVersion: '',
      },
    )
    assert.equal(removed?.reason, 'RemoveRegistryCredential')
    const chosen = await events(
      'svc-default',
      `?fieldSelector=${encodeURIComponent('involved.kind=registry-credentials,reason=RemoveRegistryCredential')}`,
    )
    assert.equal(chosen.length, 1)
  })

  it('events of the cluster are in the default namespace', async () => {
    await create('svc-ios')
    await service.call('DELETE', at('svc-ios'))
    assert.deepEqual(
      (await events('svc-default')).map(({ reason }) => reason),
      ['CreateNamespace', 'DeleteNamespace'],
    )
  })

  it('events name the subjects of a role change, and requests without effect have none', async () => {
    await addUser('svc-default', 'ana@example.com')
    await addUser('svc-default', 'ana@example.com')
    const [only, ...more] = await events('svc-default')
    assert.deepEqual(more, [])
    assert.match(String(only?.message), /^admin@example\.com granted role svc-dev \(users ana@example\.com\)$/)
  })

  it('events of operations for administrators are shown only to them', async () => {
    await create('svc-secret')
    await service.call('POST', `${at('svc-default')}/secrets/registrycredentials/add`, { body: credential })
    const { body } = await service.call('GET', `${at('svc-default')}/events`, { token: service.devToken })
    assert.deepEqual(body.items, [])
    assert.equal((await events('svc-default')).length, 2)
  })

  it('events of a deleted namespace are kept with those of the cluster', async () => {
    await create('svc-ios')
    await service.call('POST', `${at('svc-ios')}/serviceaccounts/ci`)
    await service.call('DELETE', at('svc-ios'))
    assert.deepEqual(
      (await events('svc-default')).map(({ reason, namespace }) => `${reason} ${namespace}`),
      ['CreateNamespace svc-default', 'CreateServiceAccount svc-ios', 'DeleteNamespace svc-default'],
    )
    await create('svc-ios')
    assert.deepEqual(await events('svc-ios'), [])
  })

  it('events that cannot be written are logged and do not fail the request', async () => {
    Object.defineProperty(service.services.collections.events, 'create', {
      value: () => Promise.reject(new Error('disk full')),
    })
    assert.equal((await create('svc-ios')).status, 201)
    assert.ok(
      service.logLines.some((line) => line.includes('failed to record an event') && line.includes('createNamespace')),
    )
  })

  it('events are limited in number: the newest are kept', async () => {
    for (let index = 0; index < 12; index++) {
      service.clock.nowMs += 1_000
      await create(`svc-n${index}`)
    }
    const loop = trimEvents(service.services, 5)
    while ((await events('svc-default')).length > 5) await new Promise((resolve) => setImmediate(resolve))
    await loop.stop()
    const left = (await events('svc-default')).map(({ involved }) => (involved as { name: string }).name)
    assert.deepEqual(left, ['svc-n7', 'svc-n8', 'svc-n9', 'svc-n10', 'svc-n11'])
  })
})

describe('service accounts with the role of an administrator', () => {
  const accounts = (namespace: string) => `${at(namespace)}/serviceaccounts`
  const setRole = (name: string, body: object, token = service.adminToken) =>
    service.call('PUT', `${accounts('svc-infra')}/${name}/role`, { body, token })
  const makeToken = async (name: string, token = service.adminToken) =>
    service.call('POST', `${accounts('svc-infra')}/${name}/token`, { token })
  const credentials = `${at('svc-default')}/secrets/registrycredentials`
  const readCredentials = async (token: string): Promise<number> =>
    (await service.call('GET', credentials, { token })).status
  let token: string
  beforeEach(async () => {
    await create('svc-infra')
    for (const name of ['terraform', 'jenkins']) await service.call('POST', `${accounts('svc-infra')}/${name}`)
    token = (await makeToken('terraform')).body.token
  })

  it('an account is a developer until a person makes it an administrator, with an event, and back', async () => {
    const tryIt = async () =>
      (await service.call('POST', '/api/v1/namespaces', { token, body: { name: 'svc-made' } })).status
    assert.equal(await tryIt(), 403)
    const made = await setRole('terraform', { role: 'administrator' })
    assert.deepEqual([made.status, made.body.role, made.body.allow], [200, 'administrator', undefined])
    assert.equal(await tryIt(), 201)
    const [, listed] = (await service.call('GET', accounts('svc-infra'))).body.items
    assert.equal(listed.role, 'administrator')
    assert.equal((await setRole('terraform', { role: 'developer' })).body.role, 'developer')
    assert.equal((await service.call('DELETE', at('svc-made'), { token })).status, 403)
    const { items } = (await service.call('GET', `${at('svc-infra')}/events`)).body
    const told = items.filter(({ reason }: { reason: string }) => reason === 'SetServiceAccountRole')
    assert.deepEqual(
      told.map(({ message, actor }: { message: string; actor: string }) => [message, actor]),
      ['role administrator', 'role developer'].map((role) => [
        `admin@example.com changed the role of service account terraform (${role})`,
        'admin@example.com',
      ]),
    )
  })

  it('registry credentials need the right, which is replaced with the role', async () => {
    await setRole('terraform', { role: 'administrator' })
    const refused = await service.call('GET', credentials, { token })
    assert.equal(refused.status, 403)
    assert.match(refused.body.hint, /^Ask a cluster administrator; see svc3 serviceaccount set-role --help$/)
    // A host reads credentials, and the account could join one.
    assert.equal((await service.call('POST', `${at('svc-infra')}/jointokens`, { token })).status, 403)
    await setRole('terraform', { role: 'administrator', allow: ['registrycredentials'] })
    assert.equal(await readCredentials(token), 200)
    const added = await service.call('POST', `${credentials}/add`, { token, body: credential })
    assert.equal(added.body.updatedBy, 'serviceaccount:svc-infra:terraform')
    await setRole('terraform', { role: 'administrator' })
    assert.equal(await readCredentials(token), 403)
    for (const body of [
      { role: 'developer', allow: ['registrycredentials'] },
      { role: 'administrator', allow: ['all'] },
      { role: 'owner' },
      { allow: [] },
    ])
      assert.ok([400, 422].includes((await setRole('terraform', body)).status), JSON.stringify(body))
  })

  it('an account cannot give the role, or get a token of an account that has it', async () => {
    await setRole('terraform', { role: 'administrator' })
    const refused = await setRole('jenkins', { role: 'administrator' }, token)
    assert.equal(refused.status, 403)
    assert.match(refused.body.hint, /set-role --help$/)
    assert.equal(
      (await setRole('terraform', { role: 'administrator', allow: ['registrycredentials'] }, token)).status,
      403,
    )
    assert.equal((await makeToken('jenkins', token)).status, 201)
    assert.equal((await makeToken('terraform', token)).status, 403)
    await setRole('jenkins', { role: 'administrator' })
    const own = await makeToken('jenkins', token)
    assert.match(own.body.message, /^Forbidden: only people create tokens of administrators$/)
    assert.equal((await makeToken('jenkins')).status, 201)
  })

  it('deleting the account or its namespace takes the role for good', async () => {
    await setRole('terraform', { role: 'administrator' })
    await service.call('DELETE', `${accounts('svc-infra')}/terraform`)
    const renewed = async () => {
      assert.equal((await service.call('GET', '/api/v1/namespaces', { token })).status, 401)
      assert.equal((await service.call('POST', `${accounts('svc-infra')}/terraform`)).body.role, 'developer')
      token = (await makeToken('terraform')).body.token
      assert.equal((await service.call('GET', accounts('svc-infra'), { token })).status, 403)
    }
    await renewed()
    await setRole('terraform', { role: 'administrator' })
    await service.call('DELETE', at('svc-infra'))
    await create('svc-infra')
    await renewed()
  })

  it('metadata of an account cannot give it the role', async () => {
    const body = { labels: { role: 'administrator' }, role: 'administrator' }
    await service.call('PUT', `${at('svc-infra')}/metadata/serviceaccounts/terraform`, { body })
    const [, listed] = (await service.call('GET', accounts('svc-infra'))).body.items
    assert.equal(listed.role, 'developer')
  })
})

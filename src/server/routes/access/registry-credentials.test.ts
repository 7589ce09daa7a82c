// Registry credentials through the API: docs/spec.md R15–R20, and that passwords are never returned.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { credentialsPath as path, startService, type TestService } from '../../../../test/support/rigs/service.ts'

const password = 'correct horse battery staple'
const ghcr = { server: 'https://ghcr.io', username: 'bot', password }
let service: TestService
beforeEach(async () => {
  service = await startService()
})
afterEach(() => service[Symbol.asyncDispose]())

const add = (body: object) => service.call('POST', `${path}/add`, { body })
const remove = (server: string) => service.call('DELETE', `${path}/remove`, { body: { server } })
const list = async (): Promise<{ server: string; username: string }[]> => (await service.call('GET', path)).body.items

describe('adding', () => {
  it('adding returns 201 with the listed item', async () => {
    const answer = await add(ghcr)
    assert.equal(answer.status, 201)
    assert.deepEqual(answer.body, {
      server: 'https://ghcr.io',
      name: 'ghcr.io',
      username: 'bot',
      allowInsecure: false,
      createdAt: '2026-11-15T09:00:00Z',
      updatedAt: '2026-11-15T09:00:00Z',
      updatedBy: 'admin@example.com',
      resourceVersion: answer.body.resourceVersion,
    })
    assert.deepEqual(await list(), [answer.body])
  })

  it('adding treats all spellings of an address as one registry', async () => {
    await add(ghcr)
    for (const server of ['https://GHCR.io', 'https://ghcr.io:443', 'HTTPS://ghcr.IO:0443']) {
      const answer = await add({ ...ghcr, server })
      assert.equal(answer.status, 409)
      assert.equal(answer.body.reason, 'AlreadyExists')
      assert.match(answer.body.hint, /replace/)
    }
    assert.equal((await list()).length, 1)
  })

  for (const [first, second] of [
    ['http://10.0.0.7:5000', 'https://10.0.0.7:5000'],
    ['https://10.0.0.7:5000', 'http://10.0.0.7:5000'],
    ['https://docker.io', 'https://index.docker.io'],
    ['https://registry-1.docker.io', 'http://docker.io'],
    ['http://registry.lab', 'https://registry.lab'],
  ] as const)
    it(`adding ${second} beside ${first} requires replace, because they are one registry`, async () => {
      const insecure = { allowInsecure: true }
      const { body: stored } = await add({ ...ghcr, ...insecure, server: first })
      const refused = await add({ ...ghcr, ...insecure, server: second })
      assert.deepEqual([refused.status, refused.body.reason], [409, 'AlreadyExists'])
      assert.equal(refused.body.message, `Registry credential ${first} already exists in svc-default`)
      assert.equal(refused.body.hint, `${second} is the same registry. Add --replace ("replace": true) to overwrite it`)
      assert.deepEqual(await list(), [stored])
      const replaced = await add({ ...ghcr, ...insecure, server: second, replace: true })
      assert.deepEqual([replaced.status, replaced.body.server, replaced.body.name], [200, second, stored.name])
      assert.deepEqual(await list(), [replaced.body])
      const removed = await remove(first)
      assert.equal(removed.body.message, `Registry credential ${second} removed from svc-default`)
      assert.deepEqual(await list(), [])
      assert.equal((await remove(second)).status, 404)
    })

  it('adding replaces only on request, keeps createdAt, and returns 200', async () => {
    const first = await add(ghcr)
    service.clock.nowMs += 60_000
    const second = await add({ ...ghcr, username: 'other', replace: true })
    assert.equal(second.status, 200)
    assert.equal(second.body.createdAt, first.body.createdAt)
    assert.equal(second.body.updatedAt, '2026-11-15T09:01:00Z')
    assert.notEqual(second.body.resourceVersion, first.body.resourceVersion)
    assert.deepEqual(
      (await list()).map(({ username }) => username),
      ['other'],
    )
  })

  it('adding with replace creates a missing credential, with 201', async () => {
    assert.equal((await add({ ...ghcr, replace: true })).status, 201)
  })

  it('adding compares the resourceVersion', async () => {
    const { body } = await add(ghcr)
    assert.equal((await add({ ...ghcr, replace: true, resourceVersion: '1' })).body.reason, 'Conflict')
    assert.equal((await add({ ...ghcr, replace: true, resourceVersion: body.resourceVersion })).status, 200)
    assert.equal((await add({ ...ghcr, server: 'https://quay.io', resourceVersion: '1' })).body.reason, 'Conflict')
  })

  it('adding requires allowInsecure for HTTP, with a hint', async () => {
    const body = { ...ghcr, server: 'http://registry.local:5000' }
    const refused = await add(body)
    assert.equal(refused.status, 422)
    assert.equal(refused.body.details.causes[0].field, 'allowInsecure')
    assert.match(refused.body.hint, /--allow-insecure/)
    assert.equal((await add({ ...body, allowInsecure: false })).status, 422)
    assert.equal((await add({ ...body, allowInsecure: true })).status, 201)
  })

  it('adding names all invalid fields together', async () => {
    const missing = await add({})
    assert.equal(missing.status, 400)
    assert.deepEqual(missing.body.details.causes.map(({ field }: { field: string }) => field).sort(), [
      'password',
      'server',
      'username',
    ])
    const wrong = await add({ server: 'http://a', username: 'a:b', password })
    assert.equal(wrong.status, 422)
    assert.deepEqual(wrong.body.details.causes.map(({ field }: { field: string }) => field).sort(), [
      'allowInsecure',
      'username',
    ])
  })

  it('adding refuses an empty or too long password', async () => {
    assert.equal((await add({ ...ghcr, password: '' })).status, 422)
    assert.equal((await add({ ...ghcr, password: 'x'.repeat(20_000) })).status, 422)
    assert.deepEqual(await list(), [])
  })

  it('a hundred concurrent requests store one', async () => {
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) => add({ ...ghcr, username: `u${index}` })),
    )
    assert.equal(answers.filter(({ status }) => status === 201).length, 1)
    assert.equal(answers.filter(({ status }) => status === 409).length, 99)
    const winner = answers.find(({ status }) => status === 201)
    assert.deepEqual(await list(), [winner?.body])
  })

  it('concurrent replacements are atomic', async () => {
    await add(ghcr)
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        add({ ...ghcr, username: `u${index}`, password: `p${index}`, replace: true }),
      ),
    )
    assert.ok(answers.every(({ status }) => status === 200))
    const [entry] = service.services.collections.registryCredentials.list('svc-default')
    assert.ok(entry)
    assert.equal(service.services.secrets.open(entry.key, entry.value), entry.value.username.replace('u', 'p'))
  })

  it('adding keeps namespaces apart', async () => {
    await service.services.collections.namespaces.create('', 'svc-ci', {
      name: 'svc-ci',
      customPods: false,
      createdAt: '',
    })
    await add(ghcr)
    const other = path.replace('svc-default', 'svc-ci')
    assert.deepEqual((await service.call('GET', other)).body, { items: [] })
    assert.equal((await service.call('POST', `${other}/add`, { body: ghcr })).status, 201)
    assert.equal((await remove(ghcr.server)).status, 200)
    assert.equal((await service.call('GET', other)).body.items.length, 1)
  })

  it('adding accepts orka- for svc-', async () => {
    assert.equal((await service.call('POST', `${path.replace('svc-', 'orka-')}/add`, { body: ghcr })).status, 201)
    assert.equal((await list()).length, 1)
  })

  it('adding ignores unknown fields', async () => {
    assert.equal((await add({ ...ghcr, colour: 'blue' })).status, 201)
  })
})

describe('removing', () => {
  it('removing returns a Status, for any spelling, once', async () => {
    await add(ghcr)
    const answer = await remove('https://GHCR.io:443')
    assert.equal(answer.status, 200)
    assert.equal(answer.body.status, 'Success')
    assert.deepEqual(await list(), [])
    const again = await remove('https://ghcr.io')
    assert.equal(again.status, 404)
    assert.match(again.body.message, /not found/)
  })

  it('removing refuses an invalid address', async () => {
    assert.equal((await remove('ghcr.io')).status, 422)
  })
})

describe('a password', () => {
  it('a password is not in responses, logs or the store', async () => {
    const canary = 'canary-7f3a91'
    const texts = [
      (await add({ ...ghcr, password: canary })).text,
      (await add({ ...ghcr, password: canary })).text,
      (await add({ ...ghcr, password: canary, replace: true })).text,
      (await add({ server: `https://me:${canary}@ghcr.io`, username: 'a', password: canary })).text,
      (await service.call('POST', `${path}/add`, { body: `{"password":"${canary}",` })).text,
      (await service.call('GET', path)).text,
      (await remove(ghcr.server)).text,
      service.logLines.join(''),
      JSON.stringify(await service.services.store.list('/')),
    ]
    for (const text of texts) assert.ok(!text.includes(canary), text)
  })

  it('a password of an altered or moved record causes an error', async () => {
    const { store } = service.services
    await add(ghcr)
    await add({ ...ghcr, server: 'https://quay.io', username: 'q' })
    const { entries } = await store.list('/registry-credentials/')
    const [first, second] = entries
    assert.ok(first && second)
    await store.update(first.key, { ...(first.value as object), username: 'mallory' }, first.rev)
    await service.services.collections.registryCredentials.view.reached((await store.get(first.key))?.rev ?? '0')
    const altered = await service.call('GET', path)
    assert.equal(altered.status, 500)
    assert.match(altered.body.message, /ghcr\.io cannot be decrypted/)
    assert.equal((await remove('https://ghcr.io')).status, 200)

    const moved = await store.create(second.key.replace('quay', 'other'), { ...(second.value as object) })
    await service.services.collections.registryCredentials.view.reached(moved.rev)
    const refused = await service.call('GET', path)
    assert.equal(refused.status, 500)
    assert.match(refused.body.message, /https:\/\/other\.io cannot be decrypted/)
    assert.equal((await remove('https://other.io')).status, 200)
    assert.deepEqual(
      (await list()).map(({ server }) => server),
      ['https://quay.io'],
    )
  })
})

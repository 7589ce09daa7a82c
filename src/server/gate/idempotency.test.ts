// Idempotency-Key: a repeated request gets the first answer, also after a crash.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { credentialsPath as path, startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage, startNode } from '../../../test/support/stand-ins/node.ts'
import { expireRecords } from '../../controllers/expire-records.ts'
import { Idempotency } from './idempotency.ts'

let service: TestService
beforeEach(async () => {
  service = await startService()
})
afterEach(() => service[Symbol.asyncDispose]())

const ghcr = { server: 'https://ghcr.io', username: 'bot', password: 'x' }
const add = (key: string, body: object = ghcr, token?: string) =>
  service.call('POST', `${path}/add`, { body, headers: { 'idempotency-key': key }, ...(token && { token }) })

describe('Idempotency-Key', () => {
  it('Idempotency-Key gives the same answer again and does nothing twice', async () => {
    const first = await add('k1')
    const rev = service.services.collections.registryCredentials.view.revOf()
    const again = await add('k1')
    assert.equal(again.status, 201)
    assert.equal(again.text, first.text)
    assert.equal(
      service.services.collections.registryCredentials.view.get(
        '/registry-credentials/svc-default/https%3A%2F%2Fghcr.io',
      )?.rev,
      first.body.resourceVersion,
    )
    assert.equal(service.services.collections.registryCredentials.view.revOf(), rev)
  })

  it('Idempotency-Key gives one answer to many at once', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => add('k2')))
    assert.deepEqual([...new Set(answers.map(({ status, text }) => `${status} ${text}`))].length, 1)
    assert.equal(answers[0]?.status, 201)
  })

  it('Idempotency-Key stores no refusal, and a refused request is judged again', async () => {
    await service.call('POST', `${path}/add`, { body: ghcr })
    const refused = await Promise.all([add('k3'), add('k3')])
    assert.deepEqual(
      refused.map(({ status, body }) => [status, body.reason]),
      Array.from(refused, () => [409, 'AlreadyExists']),
    )
    assert.equal(service.services.collections.answers.list().length, 0)
    await service.call('DELETE', `${path}/remove`, { body: { server: ghcr.server } })
    assert.equal((await add('k3')).status, 201)
  })

  it('Idempotency-Key stores a limited number of answers for each caller, of which the oldest are deleted', async () => {
    const { collections } = service.services
    const idempotency = new Idempotency(service.services)
    const one = async (caller: string, key: string, body: string) => {
      service.clock.nowMs += 1_000
      let isRun = false
      await idempotency.once({ caller, key, fingerprint: 'f', stamp: 's' }, async () => {
        isRun = true
        return { status: 201, body }
      })
      return isRun
    }
    const kept = (caller: string) => collections.answers.list(caller).length
    assert.ok(await one('other', 'mine', 'x'))
    const large = 'x'.repeat(900_000)
    for (let n = 0; n < 19; n++) assert.ok(await one('busy', `k${n}`, large))
    // 16 MiB have room for 18 of these; the 19th has deleted the oldest, and an eighth of the room.
    assert.equal(kept('busy'), 16)
    assert.ok(!(await one('busy', 'k18', large)), 'the newest are kept')
    assert.ok(await one('busy', 'k0', large), 'the oldest are not')
    assert.ok(!(await one('other', 'mine', 'x')), 'another caller keeps theirs')
  })

  it('Idempotency-Key refuses the key for another request', async () => {
    await add('k5')
    const other = await add('k5', { ...ghcr, server: 'https://quay.io' })
    assert.equal(other.status, 422)
    assert.match(other.body.message, /used for another request/)
  })

  it('Idempotency-Key is separate for each caller', async () => {
    await add('k6')
    const token = await service.tokenFor({ kind: 'user', name: 'second@example.com', admin: true })
    assert.equal((await add('k6', ghcr, token)).status, 409)
  })

  it('Idempotency-Key and unfinished uploads do not pass to a later service account of the same name', async () => {
    const space = '/api/v1/namespaces/svc-default'
    const account = `${space}/serviceaccounts/robot`
    const made = async (): Promise<string> => {
      assert.equal((await service.call('POST', account)).status, 201)
      return (await service.call('POST', `${account}/token`)).body.token
    }
    const begin = { kind: 'image', name: 'big', size: 1_000, key: 'file-1' }
    const upload = (token: string) => service.call('POST', `${space}/uploads`, { token, body: begin })
    await addImage(service, 'tiny', 'amd64')
    const config = (token: string, cpu: number) =>
      service.call('POST', `${space}/vmconfigs`, {
        token,
        body: { name: 'ios', image: 'tiny', cpu },
        headers: { 'idempotency-key': 'k13' },
      })
    const first = await made()
    const begun = await upload(first)
    assert.equal(begun.status, 201, begun.text)
    assert.equal((await upload(first)).status, 200)
    assert.equal((await config(first, 2)).status, 201)
    assert.match((await config(first, 4)).text, /used for another request/)
    assert.equal((await service.call('DELETE', account)).status, 200)
    const second = await made()
    assert.equal((await service.call('GET', `${space}/uploads/${begun.body.id}`, { token: second })).status, 404)
    assert.equal((await upload(second)).status, 201)
    assert.doesNotMatch((await config(second, 4)).text, /used for another request/)
  })

  it('Idempotency-Key recognises its own work when the answer was lost in a crash', async () => {
    const first = await add('k7')
    const { answers } = service.services.collections
    for (const entry of answers.list()) await answers.delete(entry)
    const again = await add('k7')
    assert.equal(again.status, 201)
    assert.deepEqual(again.body, first.body)
  })

  it('Idempotency-Key recognises a repeated replacement, and refuses another body', async () => {
    await service.call('POST', `${path}/add`, { body: ghcr })
    const { answers } = service.services.collections
    assert.equal((await add('k9', { ...ghcr, replace: true })).status, 200)
    for (const entry of answers.list()) await answers.delete(entry)
    assert.equal((await add('k9', { ...ghcr, replace: true })).status, 200)
    for (const entry of answers.list()) await answers.delete(entry)
    assert.equal((await add('k9', { ...ghcr, password: 'other' })).status, 409)
  })

  it('Idempotency-Key recognises a change of a node when the answer was lost in a crash', async () => {
    await startNode(service, {})
    const nodes = '/api/v1/namespaces/svc-default/nodes/node-1'
    await service.call('POST', `${nodes}/tag`, { body: { tag: 'ios' } })
    const untag = () =>
      service.call('POST', `${nodes}/untag`, { body: { tag: 'ios' }, headers: { 'idempotency-key': 'k12' } })
    const first = await untag()
    assert.equal(first.status, 200, first.text)
    const { answers } = service.services.collections
    for (const entry of answers.list()) await answers.delete(entry)
    const again = await untag()
    assert.deepEqual([again.status, again.body.orkaTags], [200, []])
    for (const entry of answers.list()) await answers.delete(entry)
    service.clock.nowMs += 25 * 3_600_000
    const token = await service.tokenFor({ kind: 'user', name: 'admin@example.com', admin: true })
    const later = { body: { tag: 'ios' }, headers: { 'idempotency-key': 'k12' }, token }
    assert.equal((await service.call('POST', `${nodes}/untag`, later)).status, 404)
  })

  it('Idempotency-Key recognises the move of a node when the answer was lost in a crash', async () => {
    await startNode(service, {})
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-other' } })
    const move = (key: string) =>
      service.call('POST', '/api/v1/namespaces/svc-default/nodes/node-1/namespace', {
        body: { namespace: 'svc-other' },
        headers: { 'idempotency-key': key },
      })
    assert.equal((await move('k13')).status, 200)
    const { answers } = service.services.collections
    for (const entry of answers.list()) await answers.delete(entry)
    const again = await move('k13')
    assert.deepEqual([again.status, again.body.namespace], [200, 'svc-other'], again.text)
    assert.equal((await move('k14')).status, 404)
  })

  it('Idempotency-Key rotates a pool once when the answer was lost in a crash', async () => {
    const space = '/api/v1/namespaces/svc-default'
    await addImage(service, 'tiny', 'amd64')
    await service.call('POST', `${space}/vmconfigs`, { body: { name: 'small', image: 'tiny', cpu: 1 } })
    await service.call('POST', `${space}/pools`, { body: { name: 'ci', config: 'small' } })
    const { answers, pools } = service.services.collections
    const rotations: unknown[] = []
    for (const key of ['k15', 'k15', 'k16', undefined, undefined]) {
      const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key }
      assert.equal((await service.call('POST', `${space}/pools/ci/rotate`, { headers })).status, 200)
      for (const entry of answers.list()) await answers.delete(entry)
      rotations.push(pools.get('svc-default', 'ci')?.value.rotation)
    }
    assert.deepEqual(rotations, [1, 1, 2, 3, 4])
  })

  it('Idempotency-Key means a new request after a day, also if the record has its stamp', async () => {
    await add('k10')
    const { answers, registryCredentials } = service.services.collections
    for (const entry of answers.list()) await answers.delete(entry)
    service.clock.nowMs += 25 * 3_600_000
    const token = await service.tokenFor({ kind: 'user', name: 'admin@example.com', admin: true })
    const again = await add('k10', { ...ghcr, replace: true, password: 'new' }, token)
    assert.equal(again.status, 200)
    const [entry] = registryCredentials.list()
    assert.ok(entry)
    assert.equal(service.services.secrets.open(entry.key, entry.value), 'new')
  })

  it('Idempotency-Key is the same under an alias of the namespace and with fields in another order', async () => {
    const first = await add('k11')
    const again = await service.call('POST', `${path.replace('svc-', 'orka-')}/add`, {
      body: { password: 'x', username: 'bot', server: 'https://ghcr.io' },
      headers: { 'idempotency-key': 'k11' },
    })
    assert.equal(again.text, first.text)
  })

  it('Idempotency-Key returns an answer that cannot be stored', async () => {
    const { answers } = service.services.collections
    Object.defineProperty(answers, 'create', { value: () => Promise.reject(new Error('disk full')) })
    assert.equal((await add('k12')).status, 201)
    assert.ok(service.logLines.some((line) => line.includes('could not store an answer')))
  })

  it('Idempotency-Key stores nothing from which a password could be guessed', async () => {
    await add('retry-1')
    const dump = JSON.stringify(await service.services.store.list('/'))
    const { createHash } = await import('node:crypto')
    for (const text of [JSON.stringify(['retry-1', JSON.stringify(ghcr)]), JSON.stringify(ghcr)]) {
      assert.ok(!dump.includes(createHash('sha256').update(text).digest('base64url')))
    }
    assert.ok(!dump.includes('retry-1'))
  })

  it('Idempotency-Key expires after a day', async () => {
    await add('k8')
    const { answers } = service.services.collections
    const sweep = async (): Promise<void> => {
      await expireRecords(service.services).stop()
    }
    service.clock.nowMs += 24 * 3_600_000 - 1_000
    await sweep()
    assert.equal(answers.list().length, 1)
    service.clock.nowMs -= 48 * 3_600_000
    await sweep()
    assert.equal(answers.list().length, 1)
    service.clock.nowMs += 48 * 3_600_000 + 2_000
    const loop = expireRecords(service.services)
    while (answers.list().length > 0) await new Promise((resolve) => setImmediate(resolve))
    await loop.stop()
  })

  for (const key of ['', 'x'.repeat(256), 'two words']) {
    it(`Idempotency-Key refuses ${JSON.stringify(key.slice(0, 12))}`, async () =>
      assert.equal((await add(key)).status, 400))
  }
})

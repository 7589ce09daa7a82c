// Events between two times, a page at a time, with selectors; repeated ones, those of deleted namespaces, and from when
// on the log is complete.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startService } from '../../../../test/support/rigs/service.ts'
import { newEvent } from '../../../store/records/events.ts'

it('events are listed between two times, by kind and actor, in pages, and an invalid time is refused', async () => {
  await using service = await startService()
  const start = service.clock.nowMs
  const at = (minutes: number): string => new Date(start + minutes * 60_000).toISOString()
  for (const name of ['a', 'b', 'c', 'd']) {
    await service.call('POST', `/api/v1/namespaces/svc-default/serviceaccounts/${name}`)
    service.clock.nowMs += 60_000
  }
  const list = async (query: string) =>
    (await service.call('GET', `/api/v1/namespaces/svc-default/events?${query}`)).body
  const names = (body: { items: { involved: { name: string } }[] }): string =>
    body.items.map(({ involved }) => involved.name).join('')
  assert.equal(names(await list('')), 'abcd')
  assert.equal(names(await list(`since=${at(1)}`)), 'bcd')
  assert.equal(names(await list(`until=${at(1)}`)), 'a')
  assert.equal(names(await list(`since=${at(1)}&until=${at(3)}`)), 'bc')
  assert.equal(
    names(await list(`since=${at(1)}&fieldSelector=involved.name%3Dc,involved.kind%3Dservice-accounts`)),
    'c',
  )
  assert.equal(names(await list('fieldSelector=outcome%3DFailed')), '')
  const first = await list(`since=${at(1)}&limit=2`)
  assert.equal(names(first), 'bc')
  const second = await list(`since=${at(1)}&limit=2&continue=${first.continue}`)
  assert.deepEqual([names(second), second.continue], ['d', undefined])
  for (const query of ['since=yesterday', 'until=2026-99-99T00:00:00Z'])
    assert.equal((await service.call('GET', `/api/v1/namespaces/svc-default/events?${query}`)).status, 400, query)
})

interface Seen {
  readonly name: string
  readonly reason: string
  readonly namespace: string
  readonly message: string
  readonly requestId: string
  readonly at: string
  readonly count?: number
  readonly lastAt?: string
}

async function labelled() {
  const service = await startService()
  const inDefault = '/api/v1/namespaces/svc-default'
  for (const name of ['a', 'b']) await service.call('POST', `${inDefault}/serviceaccounts/${name}`)
  const label = (name: string, n: number) =>
    service.call('PUT', `${inDefault}/metadata/serviceaccounts/${name}`, { body: { labels: { n: String(n) } } })
  const events = async (query = ''): Promise<Seen[]> =>
    (await service.call('GET', `${inDefault}/events?${query}`)).body.items.filter(
      ({ reason }: Seen) => reason === 'SetMetadata',
    )
  return { service, inDefault, label, events }
}

it('label changes of one record by one caller within a minute are one event with their count', async () => {
  const { service, label, events } = await labelled()
  await using _ = service
  await label('a', 1)
  service.clock.nowMs += 50_000
  await label('b', 1)
  const { headers } = await label('a', 2)
  const [first, other] = await events()
  assert.deepEqual([first?.count, first?.at, first?.lastAt], [2, '2026-11-15T09:00:00Z', '2026-11-15T09:00:50Z'])
  assert.equal(first?.message, 'admin@example.com changed labels or annotations of a (2 times)')
  assert.equal(first?.requestId, headers['x-request-id'])
  assert.deepEqual([other?.count, other?.lastAt], [undefined, undefined])
  assert.equal((await events('since=2026-11-15T09:00:50Z')).length, 2, 'one began before')
  assert.equal((await events('since=2026-11-15T09:00:51Z')).length, 0)
  service.clock.nowMs += 10_000
  await label('a', 3)
  assert.deepEqual(
    (await events()).map(({ count }) => count),
    [2, undefined, undefined],
  )
})

it('parallel label changes are all counted, and one whose event was deleted gets another', async () => {
  const { service, label, events } = await labelled()
  await using _ = service
  await Promise.all(Array.from({ length: 50 }, (__, n) => label('a', n)))
  const [all, ...others] = await events()
  assert.deepEqual([all?.count, others], [50, []])
  const collection = service.services.collections.events
  const entry = collection.get('svc-default', all?.name ?? '')
  assert.ok(entry)
  await collection.delete(entry)
  await Promise.all([label('a', 51), label('a', 52)])
  assert.deepEqual(
    (await events()).map(({ count }) => count),
    [2],
  )
})

it('a list of events says from when on none is missing, on every page', async () => {
  await using service = await startService()
  const list = async (query = '') => (await service.call('GET', `/api/v1/namespaces/svc-default/events${query}`)).body
  assert.deepEqual(await list(), { items: [] })
  for (const name of ['a', 'b']) await service.call('POST', `/api/v1/namespaces/svc-default/serviceaccounts/${name}`)
  const page = await list('?limit=1')
  assert.deepEqual([page.items.length, page.completeSince], [1, '2026-11-15T09:00:00Z'])
  assert.equal((await list(`?limit=1&continue=${page.continue}`)).completeSince, '2026-11-15T09:00:00Z')
})

it('events of developers of a deleted namespace are shown to administrators only, also those of earlier versions', async () => {
  await using service = await startService()
  const at = (namespace: string): string => `/api/v1/namespaces/${namespace}`
  await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-ios' } })
  const { events } = service.services.collections
  const old = {
    ...newEvent(service.clock.now(), ofDevelopers('old')),
    namespace: 'svc-ios',
    audience: 'admin',
  } as const
  await events.create('svc-default', old.name, old)
  const made = newEvent(service.clock.now(), ofDevelopers('new'))
  await events.create('svc-ios', made.name, made)
  await service.call('DELETE', at('svc-ios'))
  // Another namespace of that name does not get them either.
  await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-ios' } })
  const seen = async (namespace: string, token?: string): Promise<string[]> =>
    (await service.call('GET', `${at(namespace)}/events`, token === undefined ? {} : { token })).body.items
      .filter((event: Seen) => event.namespace === 'svc-ios')
      .map(({ message }: Seen) => message)
  assert.deepEqual(await seen('svc-default'), ['old', 'new'])
  assert.deepEqual(await seen('svc-default', service.devToken), [])
  assert.deepEqual(await seen('svc-ios'), [])
})

const ofDevelopers = (message: string) =>
  ({
    type: 'Normal',
    reason: 'DeployVm',
    message,
    involved: { kind: 'vms', name: 'demo' },
    actor: 'ana@example.com',
    requestId: 'r',
    outcome: 'Succeeded',
    audience: 'dev',
  }) as const

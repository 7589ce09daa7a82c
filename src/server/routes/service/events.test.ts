// Events between two times, a page at a time, with selectors.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startService } from '../../../../test/support/rigs/service.ts'

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

// Features of all lists: pages, selectors, ETag and watch, on the example of registry credentials.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import v8 from 'node:v8'
import vm from 'node:vm'
import { credentialsPath as path, startService, type TestService } from '../../../test/support/rigs/service.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { getVm, listVms } from '../../api/vms/vms.ts'
import type { Entry } from '../../store/store.ts'
import type { Listing } from './listing.ts'
import { ListRenderer } from './lists.ts'

let service: TestService
beforeEach(async () => {
  service = await startService()
})
afterEach(() => service[Symbol.asyncDispose]())

const space = '/api/v1/namespaces/svc-default'
const subjects = `${space}/rolebindings/svc-dev/subjects`
const host = (index: number): string => `https://r${String(index).padStart(2, '0')}.example`
const add = (index: number, extra = {}) =>
  service.call('POST', `${path}/add`, {
    body: { server: host(index), username: `u${index % 3}`, password: 'x', ...extra },
  })
const remove = (index: number) => service.call('DELETE', `${path}/remove`, { body: { server: host(index) } })
const servers = (items: { server: string }[]): string[] => items.map(({ server }) => server)

describe('paging', () => {
  it('paging returns all items in order, each once, also during other changes', async () => {
    for (let index = 0; index < 10; index++) await add(index)
    const seen: string[] = []
    let next: string | undefined
    for (let page = 0; page < 10; page++) {
      const query = next === undefined ? '?limit=3' : `?limit=3&continue=${encodeURIComponent(next)}`
      const { body } = await service.call('GET', path + query)
      seen.push(...servers(body.items))
      next = body.continue
      if (page === 0) await Promise.all([remove(0), add(20)])
      if (!next) break
    }
    assert.deepEqual(seen, [...Array.from({ length: 10 }, (_, index) => host(index)), host(20)])
  })

  it('paging has no continue on the last page, and {"items":[]} for an empty list', async () => {
    assert.equal((await service.call('GET', `${path}?limit=5`)).text, '{"items":[]}')
    await add(1)
    assert.equal((await service.call('GET', `${path}?limit=1`)).body.continue, undefined)
  })

  it('paging reads one record more than the page has, unless a selector may skip some', async (t) => {
    for (let index = 0; index < 9; index++) await add(index)
    const { mock } = t.mock.method(service.services.collections.registryCredentials.view, 'range')
    const readFor = async (query: string): Promise<number> => {
      mock.resetCalls()
      assert.equal((await service.call('GET', `${path}?limit=2${query}`)).body.items.length, 2)
      return mock.calls[0]?.result?.length ?? 0
    }
    assert.equal(await readFor(''), 3)
    assert.equal(await readFor('&fieldSelector=username=u1'), 9)
  })

  it('paging reads the records of a polled first page once, until one changes', async (t) => {
    for (let index = 0; index < 3; index++) await add(index)
    const { mock } = t.mock.method(service.services.collections.registryCredentials.view, 'range')
    const first = await service.call('GET', `${path}?limit=2`)
    assert.equal((await service.call('GET', `${path}?limit=2`)).text, first.text)
    assert.equal(mock.callCount(), 1)
    await add(3)
    assert.equal((await service.call('GET', `${path}?limit=9`)).body.items.length, 4)
    assert.equal((await service.call('GET', `${path}?limit=2&fieldSelector=username=u1`)).body.items.length, 1)
    assert.deepEqual((await service.call('GET', `${path}?limit=2`)).body.items, first.body.items)
    assert.equal(mock.callCount(), 4)
  })

  for (const query of [
    'limit=0',
    'limit=1001',
    'limit=1.5',
    'limit=abc',
    'continue=zzz',
    'watch=maybe',
    'fieldSelector=colour=blue',
    'labelSelector=a>b',
    'watch=true&resourceVersion=abc',
  ]) {
    it(`paging refuses ?${query} by name`, async () => {
      const answer = await service.call('GET', `${path}?${query}`)
      assert.equal(answer.status, 400, answer.text)
      assert.ok(answer.body.details.causes.length > 0)
    })
  }
})

describe('a cached item', () => {
  it('a cached item takes little more memory than its text', () => {
    v8.setFlagsFromString('--expose-gc')
    const collectGarbage: () => void = vm.runInNewContext('gc')
    const heapBytes = (): number => {
      collectGarbage()
      return process.memoryUsage().heapUsed
    }
    const lists = new ListRenderer(listVms)
    const { response } = getVm.example
    const entries = Array.from({ length: 2_000 }, (_, index) => ({ value: { ...response, name: `vm-${index}` } }))
    const listing = { item: ({ value }: { value: unknown }) => value } as unknown as Listing<unknown>
    const textOf = (index: number): string => lists.item(listing, entries[index] as unknown as Entry<never>)
    textOf(0)
    const before = heapBytes()
    const textBytes = entries.reduce((sum, _, index) => sum + textOf(index).length, 0)
    const keptBytes = heapBytes() - before
    assert.ok(keptBytes > textBytes / 2 && keptBytes < 2.5 * textBytes, `${keptBytes} for ${textBytes}`)
  })
})

describe('selectors', () => {
  it('selectors: choose by field, with paging', async () => {
    for (let index = 0; index < 9; index++) await add(index)
    const { body } = await service.call('GET', `${path}?fieldSelector=${encodeURIComponent('username=u1')}&limit=2`)
    assert.deepEqual(servers(body.items), [host(1), host(4)])
    assert.ok(body.continue)
    const none = await service.call('GET', `${path}?labelSelector=team=ios`)
    assert.deepEqual(none.body, { items: [] })
  })
})

describe('ETag', () => {
  it('ETag answers 304 until something in the namespace changes', async () => {
    await add(1)
    const { headers } = await service.call('GET', path)
    const tag = String(headers.etag)
    const same = await service.call('GET', path, { headers: { 'if-none-match': tag } })
    assert.equal(same.status, 304)
    assert.equal(same.text, '')
    await service.services.collections.namespaces.create('', 'svc-x', {
      name: 'svc-x',
      customPods: false,
      createdAt: '',
    })
    assert.equal((await service.call('GET', path, { headers: { 'if-none-match': `W/${tag}` } })).status, 304)
    await add(2)
    const changed = await service.call('GET', path, { headers: { 'if-none-match': tag } })
    assert.equal(changed.status, 200)
    assert.equal(changed.body.items.length, 2)
  })

  it('ETag does not hide an invalid query, and * matches all versions', async () => {
    const { headers } = await service.call('GET', path)
    for (const query of ['fieldSelector=bad', 'continue=zzz']) {
      assert.equal(
        (await service.call('GET', `${path}?${query}`, { headers: { 'if-none-match': String(headers.etag) } })).status,
        400,
      )
    }
    assert.equal((await service.call('GET', path, { headers: { 'if-none-match': '*' } })).status, 304)
  })

  it('single records have an ETag too', async () => {
    const answer = await service.call('GET', '/api/v1/namespaces/svc-default')
    assert.equal(answer.headers.etag, `"${answer.body.resourceVersion}"`)
    const same = await service.call('GET', '/api/v1/namespaces/svc-default', {
      headers: { 'if-none-match': String(answer.headers.etag) },
    })
    assert.equal(same.status, 304)
  })

  it('a computed answer has an ETag, which changes with it', async () => {
    const tagOf = async (url: string, status: number, tag = '""'): Promise<string> => {
      const answer = await service.call('GET', url, { headers: { 'if-none-match': tag } })
      assert.equal(answer.status, status, `${url} ${answer.text}`)
      return String(answer.headers.etag)
    }
    const below = ['nodes', 'images', 'isos', 'remoteimages', 'remoteisos', 'cache/images', 'events', 'rolebindings']
    for (const url of [...below.map((each) => `${space}/${each}`), subjects, '/api/v1/cluster-info', '/healthz'])
      await tagOf(url, 304, await tagOf(url, 200))
    const before = await tagOf(subjects, 200)
    await service.call('POST', `${subjects}/add`, { body: { users: ['ana@example.com'] } })
    assert.notEqual(await tagOf(subjects, 200, before), before)
  })
})

describe('a computed list', () => {
  it('a computed list has pages and selectors, and refuses a watch', async () => {
    const users = ['ana', 'bo', 'cy'].map((name) => `${name}@example.com`)
    await service.call('POST', `${subjects}/add`, { body: { users } })
    const seen: string[] = []
    let token: string | undefined = ''
    for (let pages = 0; token !== undefined && pages < 9; pages++) {
      const { body } = await service.call('GET', `${subjects}?limit=2${token && `&continue=${token}`}`)
      seen.push(...body.items.map(({ name }: { name: string }) => name))
      token = body.continue
    }
    assert.deepEqual(seen, users)
    const { body } = await service.call('GET', `${subjects}?fieldSelector=kind=User,name!=bo@example.com`)
    assert.deepEqual(body, { items: [users[0], users[2]].map((name) => ({ kind: 'User', name })) })
    for (const [query, status] of [
      ['fieldSelector=nme=x', 400],
      ['limit=0', 400],
      ['continue=bm8', 410],
      ['watch=true', 400],
      ['watch=false', 200],
    ])
      assert.equal((await service.call('GET', `${subjects}?${query}`)).status, status, String(query))
    for (const each of ['remoteimages', 'remoteisos', 'cache/images'])
      assert.match((await service.call('GET', `${space}/${each}?watch=1`)).body.message, /cannot be watched/)
  })
})

interface WatchEvent {
  readonly type: string
  readonly object: { readonly server?: string; readonly username?: string; readonly resourceVersion: string }
}

/** Reads events of a real stream until `count` other than bookmarks have come. */
async function watch(
  query: string,
  count: number,
  meanwhile: () => Promise<unknown> = async () => undefined,
): Promise<WatchEvent[]> {
  const response = await fetch(`${service.apiUrl}${path}?watch=true${query}`, {
    headers: { authorization: `Bearer ${service.adminToken}` },
  })
  assert.equal(response.status, 200)
  const events: WatchEvent[] = []
  const work = meanwhile()
  let rest = ''
  for await (const chunk of response.body ?? []) {
    const lines = (rest + Buffer.from(chunk).toString()).split('\n')
    rest = lines.pop() ?? ''
    events.push(...lines.filter((line) => line !== '').map((line) => JSON.parse(line)))
    if (events.filter(({ type }) => type !== 'BOOKMARK').length >= count) break
  }
  await work
  return events
}
const brief = (events: WatchEvent[]): string[] =>
  events
    .filter(({ type }) => type !== 'BOOKMARK')
    .map(({ type, object }) => `${type} ${object.server} ${object.username}`)

describe('watch', () => {
  beforeEach(() => service.listen())

  it('watch starts with the present items, then follows changes', async () => {
    await add(1)
    const events = await watch('', 4, async () => {
      await add(2)
      await add(1, { username: 'new', replace: true })
      await remove(2)
    })
    assert.deepEqual(brief(events), [
      `ADDED ${host(1)} u1`,
      `ADDED ${host(2)} u2`,
      `MODIFIED ${host(1)} new`,
      `DELETED ${host(2)} u2`,
    ])
  })

  it('watch: resumes from a revision without gap or repetition', async () => {
    await add(1)
    const rev = (await service.call('GET', path)).headers['resource-version']
    await add(2)
    await add(3)
    assert.deepEqual(brief(await watch(`&resourceVersion=${rev}`, 2)), [`ADDED ${host(2)} u2`, `ADDED ${host(3)} u0`])
  })

  it('watch reports items that enter and leave a selection', async () => {
    const events = await watch(`&fieldSelector=${encodeURIComponent('username=in')}`, 2, async () => {
      await add(1, { username: 'out' })
      await add(1, { username: 'in', replace: true })
      await add(1, { username: 'out', replace: true })
    })
    assert.deepEqual(brief(events), [`ADDED ${host(1)} in`, `DELETED ${host(1)} in`])
  })

  it('watch answers 410 Expired for versions that are no longer kept, and for later ones', async () => {
    for (let index = 0; index < 5; index++) await add(index)
    await service.services.store.compact(service.services.collections.registryCredentials.view.rev)
    for (const rev of ['1', '999999']) {
      const answer = await service.call('GET', `${path}?watch=true&resourceVersion=${rev}`)
      assert.equal(answer.status, 410, answer.text)
      assert.equal(answer.body.reason, 'Expired')
      assert.match(answer.body.hint, /List again/)
    }
  })

  it('watch ends soon after its token does', async () => {
    const response = await fetch(`${service.apiUrl}${path}?watch=true`, {
      headers: { authorization: `Bearer ${service.adminToken}` },
    })
    service.clock.nowMs += 2 * 3_600_000
    await response.text()
    await eventually(() => assert.equal(service.services.metrics.watches.open, 0))
  })

  it('watch ends when the service stops', async () => {
    const response = await fetch(`${service.apiUrl}${path}?watch=true`, {
      headers: { authorization: `Bearer ${service.adminToken}` },
    })
    service.stop()
    await response.text()
    await eventually(() => assert.equal(service.services.metrics.watches.open, 0))
  })
})

// Tags of a repository, page after page, by a registry that leads well or badly.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type BadRegistry, reply, startBadRegistry } from '../../../test/support/stand-ins/bad-registry.ts'
import { openRegistry, type Registry } from './registry.ts'
import { maxTags } from './tags.ts'

let bad: BadRegistry
let registry: Registry
before(async () => {
  bad = await startBadRegistry()
  registry = openRegistry({
    server: bad.server,
    allowInsecure: true,
    policy: { allowLoopback: true, allowPrivate: false },
    retry: { attempts: 2, firstDelayMs: 1, maxDelayMs: 1, maxRetryAfterMs: 1 },
  })
})
after(async () => {
  registry.close()
  await bad.close()
})

const place = '/v2/team/tags/tags/list'
const tagsOf = (first: number, count: number) => Array.from({ length: count }, (_, index) => `v${first + index}`)

/** `page` says what is on one and which link it has. Returns how often it was asked. */
function give(page: (last: number) => { tags: unknown; link?: string; status?: number }): { count: number } {
  const asked = { count: 0 }
  bad.bend = ({ path, query }, response) => {
    if (path !== place) return false
    asked.count += 1
    const { tags, link, status = 200 } = page(Number(query.get('last') ?? 0))
    const body = Buffer.from(JSON.stringify({ name: 'team/tags', tags }))
    return reply(response, status, link === undefined ? {} : { link }, body)
  }
  return asked
}

const list = () => registry.repository('team/tags').tags()

describe('the tags of a repository', () => {
  it('the tags of a repository are all of them, however few are on a page', async () => {
    const asked = give((last) => ({
      tags: tagsOf(last, 100),
      ...(last < 400 && { link: `<${place}?last=${last + 100}&n=100>; rel="next"` }),
    }))
    assert.deepEqual(await list(), tagsOf(0, 500))
    assert.equal(asked.count, 5)
  })

  it('the tags of a repository are found by links in any lawful spelling, and none by links that mean something else', async () => {
    const spellings: readonly (readonly [string, number])[] = [
      [`<${place}?last=1>; rel=next`, 2],
      [`<${bad.server}${place}?last=1>; title="more"; rel="next"`, 2],
      [`</first>; rel="first", <${place}?last=1>; rel="next"`, 2],
      [`<${place}?last=1>; rel="previous"`, 1],
      [`<${place}?last=1>; rel="next-but-one"`, 1],
      ['nonsense', 1],
    ]
    for (const [link, pages] of spellings) {
      const asked = give((last) => ({ tags: [`v${last}`], ...(last === 0 && { link }) }))
      assert.deepEqual([(await list()).length, asked.count], [pages, pages], link)
    }
  })

  it('the tags of a repository come again from the page that failed, not from the first', async () => {
    let hasFailed = false
    const asked = give((last) => {
      if (last === 1 && !hasFailed) {
        hasFailed = true
        return { tags: [], status: 500 }
      }
      return { tags: [`v${last}`], ...(last < 2 && { link: `<${place}?last=${last + 1}>; rel="next"` }) }
    })
    assert.deepEqual(await list(), ['v0', 'v1', 'v2'])
    assert.equal(asked.count, 4)
  })

  it('the tags of a repository are bounded: in number, in pages, and in circles', async () => {
    const asked = give((last) => ({ tags: tagsOf(last, 4_000), link: `<${place}?last=${last + 4_000}>; rel="next"` }))
    assert.equal((await list()).length, maxTags)
    assert.equal(asked.count, 3)
    give((last) => ({ tags: [], link: `<${place}?last=${last + 1}>; rel="next"` }))
    await assert.rejects(list(), /more than 200 pages/)
    give(() => ({ tags: [], link: `<${place}?last=7>; rel="next"` }))
    await assert.rejects(list(), /in a loop/)
  })

  it('the tags of a repository are requested from its list only, and have the form of tags', async () => {
    for (const link of ['https://elsewhere.example/v2/team/tags/tags/list', '/v2/other/tags/list', '//[']) {
      give(() => ({ tags: ['v1'], link: `<${link}>; rel="next"` }))
      await assert.rejects(list(), /redirects to another address|redirects to an invalid address/, link)
    }
    for (const tags of ['v1', [1], ['../x'], undefined]) {
      give(() => ({ tags }))
      await assert.rejects(list(), /sent no list of tags/)
    }
    give(() => ({ tags: null }))
    assert.deepEqual(await list(), [])
  })
})

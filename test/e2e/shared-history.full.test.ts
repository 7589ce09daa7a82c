// Servers that share etcd are one service: a caller that wrote on one reads it on another at once, also with a token
// that was made a moment ago; watches resume elsewhere; keys and users are the same everywhere.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import { listNamespaces } from '../../src/api/access/namespaces.ts'
import { createClient } from '../../src/client/client.ts'
import { httpTransport } from '../../src/client/http.ts'
import { createRevision } from '../../src/client/revision.ts'
import type { ControlPlane } from '../../src/control-plane/control-plane.ts'
import { adminToken, ask, type SharedServers, startShared } from '../support/processes/shared-servers.ts'
import { eventually } from '../support/tools/eventually.ts'

const seenHeader = 'svc3-revision'
let shared: SharedServers
let first: ControlPlane
let second: ControlPlane
let token: string
before(async () => {
  shared = await startShared()
  first = await shared.start()
  await first.localUsers?.add('ada@example.com', { admin: true, password: 'a long pass phrase' })
  second = await shared.start()
  token = await adminToken(first)
})
after(() => shared[Symbol.asyncDispose]())

describe('one history for all servers', () => {
  it('one history for all servers shows on one what was written on the other, every time', async () => {
    for (let n = 0; n < 20; n++) {
      const [writer, reader] = n % 2 === 0 ? [first, second] : [second, first]
      const made = await ask(writer, 'POST', '/namespaces', { token, body: { name: `svc-n${n}` } })
      assert.equal(made.status, 201, await made.text())
      const headers = { [seenHeader]: made.headers.get(seenHeader) ?? '' }
      assert.match(headers[seenHeader] ?? '', /^\d+$/)
      const read = await ask(reader, 'GET', `/namespaces/svc-n${n}`, { token, headers })
      assert.equal(read.status, 200)
      assert.ok(Number(read.headers.get(seenHeader)) >= Number(headers[seenHeader]))
      // Also what it did besides: the event of the change.
      const events = await ask(reader, 'GET', '/namespaces/svc-default/events', { token, headers })
      assert.match(await events.text(), new RegExp(`"svc-n${n}"`))
      const gone = await ask(reader, 'DELETE', `/namespaces/svc-n${n}`, { token, headers })
      assert.equal(gone.status, 200, await gone.text())
      const after = { [seenHeader]: gone.headers.get(seenHeader) ?? '' }
      assert.equal((await ask(writer, 'GET', `/namespaces/svc-n${n}`, { token, headers: after })).status, 404)
    }
  })

  it('one history for all servers is followed by the client, from server to server', async () => {
    const revision = createRevision()
    const transport = httpTransport()
    const clients = [first, second].map(({ localUrl }) =>
      createClient({ baseUrl: localUrl, transport, token, revision }),
    )
    await clients[0]?.call(listNamespaces)
    const before = revision.latest()
    assert.match(before ?? '', /^\d+$/)
    const made = await ask(second, 'POST', '/namespaces', { token, body: { name: 'svc-later' } })
    revision.saw(made.headers.get(seenHeader) ?? '')
    assert.ok((await clients[0]?.listAll(listNamespaces))?.some(({ name }) => name === 'svc-later'))
    assert.ok(Number(revision.latest()) > Number(before))
  })

  it('one history for all servers takes a watch from where another server was', async () => {
    const made = await ask(first, 'POST', '/namespaces/svc-default/serviceaccounts/watched', { token })
    assert.equal(made.status, 201, await made.text())
    const list = await ask(first, 'GET', '/namespaces', { token })
    const at = list.headers.get(seenHeader) ?? ''
    const watch = await ask(second, 'GET', `/namespaces?watch=true&resourceVersion=${at}`, { token })
    assert.equal(watch.status, 200)
    await watch.body?.cancel()
    const never = await ask(second, 'GET', '/namespaces?watch=true&resourceVersion=999999999', { token })
    assert.equal(never.status, 410)
  })

  it('one history for all servers tells each of many changes at once, once, to whoever lists or watches', async () => {
    const where = '/namespaces/svc-default/events'
    const { resourceVersion } = (await (await ask(first, 'GET', where, { token })).json()) as {
      resourceVersion: string
    }
    const wanted = Array.from({ length: 60 }, (_, n) => `https://r${n}.example.com`)
    const seen = await Promise.all(
      wanted.map(async (server, n) => {
        const body = { server, username: 'robot', password: 'x' }
        const place = '/namespaces/svc-default/secrets/registrycredentials/add'
        const made = await ask(n % 2 === 0 ? first : second, 'POST', place, { token, body })
        assert.equal(made.status, 201, await made.text())
        return Number(made.headers.get(seenHeader))
      }),
    )
    const headers = { [seenHeader]: String(Math.max(...seen)) }
    const involvedIn = (items: readonly { involved: { name: string } }[]): string[] =>
      items.map(({ involved }) => involved.name).filter((name) => wanted.includes(name))
    for (const plane of [first, second]) {
      const listed = (await (await ask(plane, 'GET', where, { token, headers })).json()) as { items: [] }
      assert.deepEqual(involvedIn(listed.items).toSorted(), wanted.toSorted())
      const query = `?watch=true&resourceVersion=${resourceVersion}`
      const watched = await ask(plane, 'GET', where + query, { token, headers })
      let text = ''
      for await (const piece of watched.body ?? []) {
        text += Buffer.from(piece).toString()
        const lines = text.split('\n').slice(0, -1)
        const told = lines.map((line) => JSON.parse(line)).filter(({ type }) => type === 'ADDED')
        if (involvedIn(told.map(({ object }) => object)).length < wanted.length) continue
        assert.deepEqual(involvedIn(told.map(({ object }) => object)).toSorted(), wanted.toSorted())
        break
      }
    }
  })

  it('one history for all servers does not wait for what was in another history, and says so when it cannot tell', async () => {
    const headers = { [seenHeader]: '900000000000000' }
    assert.equal((await ask(second, 'GET', '/namespaces', { token, headers })).status, 200)
    assert.equal((await ask(second, 'GET', '/namespaces', { token, headers: { [seenHeader]: 'x' } })).status, 200)
    shared.etcd.members[0]?.pause()
    // It may still have answered the last time.
    const refused = await eventually(async () => {
      const answer = await ask(second, 'GET', '/namespaces', { token, headers })
      assert.equal(answer.status, 503, await answer.text())
      return answer
    }).finally(() => shared.etcd.members[0]?.resume())
    assert.equal(refused.headers.get('retry-after'), '1')
    await eventually(async () =>
      assert.equal((await ask(second, 'GET', '/namespaces', { token, headers })).status, 200),
    )
  })
})

describe('keys and users of all servers', () => {
  it('every server knows a new key before one signs with it, and refuses what was revoked', async () => {
    const sa = await ask(first, 'POST', '/namespaces/svc-default/serviceaccounts/bot', { token })
    assert.equal(sa.status, 201, await sa.text())
    const kidOf = (text: string): string =>
      JSON.parse(Buffer.from(text.split('.')[0] ?? '', 'base64url').toString()).kid
    const rotated = (await first.handleRequest({ name: 'signing-keys', isRevoking: false })) as {
      kid: string
      older: number
    }
    assert.equal(rotated.older, 1)
    // Not yet: every server is to know it first.
    assert.notEqual(kidOf(await adminToken(first)), rotated.kid)
    const revoked = (await second.handleRequest({ name: 'signing-keys', isRevoking: true })) as {
      kid: string
      revoked: number
    }
    assert.equal(revoked.revoked, 2)
    const fresh = await adminToken(second)
    assert.equal(kidOf(fresh), revoked.kid)
    for (const plane of [first, second])
      await eventually(async () => {
        assert.equal((await ask(plane, 'GET', '/namespaces', { token: fresh })).status, 200)
        assert.equal((await ask(plane, 'GET', '/namespaces', { token })).status, 401)
      })
    token = fresh
  })

  it('all servers know the same users, and a change at once', async () => {
    const users = [first, second].map(({ localUsers }) => localUsers)
    for (const each of users) {
      assert.deepEqual(
        each?.list().map(({ email }) => email),
        ['ada@example.com'],
      )
      assert.equal((await each?.verify('ada@example.com', 'a long pass phrase'))?.admin, true)
    }
    await users[1]?.reset('Ada@example.com', 'another pass phrase')
    await eventually(async () =>
      assert.ok(await users[0]?.verify('ada@example.com', 'another pass phrase'), 'the new password counts'),
    )
    assert.equal(await users[0]?.verify('ada@example.com', 'a long pass phrase'), undefined)
    await users[0]?.add('bea@example.com', { admin: false, password: 'a long pass phrase' })
    await assert.rejects(
      users[0]?.add('bea@example.com', { admin: false, password: 'a long pass phrase' }) ?? Promise.resolve(),
      /already/,
    )
    await eventually(async () => assert.equal(users[1]?.list().length, 2))
    await users[1]?.remove('bea@example.com')
    await eventually(async () => assert.equal(users[0]?.list().length, 1))
  })

  it('a server does not begin anew beside the records that its folder has elsewhere', async () => {
    const folder = await shared.folder()
    await fs.writeFile(`${folder}/store.json`, JSON.stringify({ address: shared.storeAddress }))
    await assert.rejects(shared.start({ dataFolder: folder, storeAddress: undefined }), /records of .* are in etcd:/)
  })
})

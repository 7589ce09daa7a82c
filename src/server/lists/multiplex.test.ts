// Many watches on one WebSocket, over real connections.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import WebSocket from 'ws'
import { logIn, openBrowser } from '../../../test/support/processes/browser.ts'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage } from '../../../test/support/stand-ins/node.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { ApiError } from '../../api/errors.ts'

let service: TestService
let url: string
const open: WebSocket[] = []

beforeEach(async () => {
  service = await startService()
  url = await service.listen()
})
afterEach(async () => {
  for (const socket of open.splice(0)) socket.terminate()
  await service[Symbol.asyncDispose]()
})

// biome-ignore lint/suspicious/noExplicitAny: tests look into messages of every shape
type Message = any

interface Connection {
  readonly socket: WebSocket
  readonly messages: Message[]
  readonly closed: Promise<number>
  say(message: unknown): void
  /** Removes and returns the next message of this watch and type. */
  next(watch: number, type: string): Promise<Message>
}

async function connect(headers: Record<string, string>): Promise<Connection> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/v1/watch`, { headers })
  open.push(socket)
  const messages: Message[] = []
  socket.on('message', (data) => messages.push(...[JSON.parse(String(data))].flat()))
  const closed = new Promise<number>((resolve) => socket.once('close', resolve))
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve).once('error', reject)
    socket.once('unexpected-response', (_, { statusCode }) => reject(new Error(`refused: ${statusCode}`)))
  })
  return {
    socket,
    messages,
    closed,
    say: (message) => socket.send(JSON.stringify(message)),
    next: (watch, type) =>
      eventually(() => {
        const index = messages.findIndex((each) => each.watch === watch && each.type === type)
        assert.ok(index >= 0, `no ${type} of watch ${watch}`)
        return messages.splice(index, 1)[0]
      }),
  }
}

const withToken = (token = service.adminToken) => connect({ authorization: `Bearer ${token}` })
const inDefault = '/api/v1/namespaces/svc-default'
const addAccount = (name: string) => service.call('POST', `${inDefault}/serviceaccounts/${name}`)

describe('a connection', () => {
  it('a connection whose client reads no answers is not read, and delays no other', async () => {
    const { socket } = await withToken()
    socket.pause()
    for (let sent = 0; sent < 60_000; sent++) socket.send('{}')
    const before = performance.now()
    for (let asked = 0; asked < 20; asked++) assert.equal((await service.call('GET', inDefault)).status, 200)
    assert.ok(performance.now() - before < 10_000, 'others are answered')
  })

  it('messages of a connection count as requests of their caller', async () => {
    const connection = await withToken()
    service.services.limits.charge = () => new ApiError('TooManyRequests', 'Too many requests; try again in 1 s')
    connection.say({ watch: 1, path: '/api/v1/namespaces' })
    assert.match((await connection.next(-1, 'ERROR')).object.message, /Too many requests/)
  })

  it('a connection shows the present items, a bookmark and changes of several lists', async () => {
    await addAccount('first')
    const connection = await withToken()
    connection.say({ watch: 1, path: `${inDefault}/serviceaccounts` })
    connection.say({ watch: 2, path: '/api/v1/namespaces' })
    assert.equal((await connection.next(1, 'ADDED')).object.name, 'first')
    assert.equal((await connection.next(2, 'ADDED')).object.name, 'svc-default')
    await connection.next(1, 'BOOKMARK')
    await connection.next(2, 'BOOKMARK')
    await addAccount('second')
    assert.equal((await connection.next(1, 'ADDED')).object.name, 'second')
    await service.call('DELETE', `${inDefault}/serviceaccounts/first`)
    assert.equal((await connection.next(1, 'DELETED')).object.name, 'first')
    assert.deepEqual(
      connection.messages.filter(({ type }) => type === 'ERROR'),
      [],
    )
  })

  it('a connection reports items that change without their records, also to clients that resume', async () => {
    await addImage(service, 'tool', 'arm64')
    const connection = await withToken()
    connection.say({ watch: 1, path: `${inDefault}/images` })
    await connection.next(1, 'ADDED')
    const { resourceVersion } = (await connection.next(1, 'BOOKMARK')).object
    assert.equal(
      (await service.call('POST', `${inDefault}/vms?wait=false`, { body: { name: 'demo', image: 'tool' } })).status,
      202,
    )
    const used = await connection.next(1, 'MODIFIED')
    assert.deepEqual([used.object.name, used.object.usedBy], ['tool', ['svc-default/demo']])
    // A bookmark follows, because the record of the image is older than the last version that was sent.
    assert.ok(Number((await connection.next(1, 'BOOKMARK')).object.resourceVersion) >= Number(resourceVersion))
    connection.say({ watch: 2, path: `${inDefault}/images`, query: { resourceVersion } })
    assert.deepEqual((await connection.next(2, 'MODIFIED')).object.usedBy, ['svc-default/demo'])

    await addAccount('jenkins')
    const subjects = `${inDefault}/rolebindings/svc-dev/subjects`
    connection.say({ watch: 3, path: `${inDefault}/rolebindings` })
    await connection.next(3, 'BOOKMARK')
    const body = { users: ['ana@example.com'], serviceaccounts: [{ name: 'jenkins', namespace: 'svc-default' }] }
    await service.call('POST', `${subjects}/add`, { body })
    const added = await connection.next(3, 'ADDED')
    assert.deepEqual([added.object.name, added.object.subjects.length], ['svc-dev', 2])
    await service.call('DELETE', `${inDefault}/serviceaccounts/jenkins`)
    const left = await eventually(async () => {
      const { object } = await connection.next(3, 'MODIFIED')
      assert.equal(object.subjects.length, 1)
      return object
    })
    assert.deepEqual(left.subjects, [{ kind: 'User', name: 'ana@example.com' }])
  })

  it('a connection shows the same objects as the list, from a version on, and through selectors', async () => {
    await addAccount('first')
    const list = await service.call('GET', `${inDefault}/serviceaccounts`)
    const version = String(list.headers['resource-version'])
    await addAccount('second')
    await addAccount('third')
    const connection = await withToken()
    const query = { resourceVersion: version, fieldSelector: 'name=third' }
    connection.say({ watch: 7, path: `${inDefault}/serviceaccounts`, query })
    const { object } = await connection.next(7, 'ADDED')
    const now = await service.call('GET', `${inDefault}/serviceaccounts`)
    assert.deepEqual(
      object,
      now.body.items.find(({ name }: { name: string }) => name === 'third'),
    )
    assert.deepEqual(
      connection.messages.filter(({ type }) => type === 'ADDED'),
      [],
    )
  })

  it('a connection ends one watch and keeps the others', async () => {
    const connection = await withToken()
    connection.say({ watch: 1, path: `${inDefault}/serviceaccounts` })
    connection.say({ watch: 2, path: `${inDefault}/serviceaccounts` })
    await connection.next(1, 'BOOKMARK')
    await connection.next(2, 'BOOKMARK')
    const { watches } = service.services.metrics
    assert.equal(watches.open, 3)
    connection.say({ unwatch: 1 })
    await eventually(() => assert.equal(watches.open, 2))
    await addAccount('first')
    await connection.next(2, 'ADDED')
    assert.deepEqual(
      connection.messages.filter(({ watch }) => watch === 1),
      [],
    )
    connection.socket.close()
    await eventually(() => assert.equal(watches.open, 0))
  })

  it('a connection ends a watch that is not open yet, and accepts its number again', async () => {
    const connection = await withToken()
    const { watches } = service.services.metrics
    for (let round = 0; round < 20; round++) {
      connection.say({ watch: 1, path: '/api/v1/namespaces' })
      connection.say({ unwatch: 1 })
    }
    connection.say({ watch: 1, path: '/api/v1/namespaces' })
    await connection.next(1, 'BOOKMARK')
    // The connection and the last watch.
    await eventually(() => assert.equal(watches.open, 2))
    connection.say({ watch: 1, path: '/api/v1/namespaces' })
    assert.match((await connection.next(1, 'ERROR')).object.message, /already open/)
  })

  it('a connection works under a prefix', async () => {
    await service[Symbol.asyncDispose]()
    service = await startService({ settings: { console: { pathPrefix: '/tools' } } })
    url = `${await service.listen()}/tools`
    const connection = await withToken()
    connection.say({ watch: 1, path: '/api/v1/namespaces' })
    await connection.next(1, 'BOOKMARK')
  })

  const refused: Readonly<Record<string, readonly [object, string]>> = {
    'a path that is no list': [{ path: '/api/v1/nothing' }, 'NotFound'],
    'an operation that is no list': [{ path: '/api/v1/namespaces/svc-default/vms/x' }, 'NotFound'],
    'a namespace that is not there': [{ path: '/api/v1/namespaces/svc-none/vms' }, 'NotFound'],
    'a version of another history': [{ path: '/api/v1/namespaces', query: { resourceVersion: '999999' } }, 'Expired'],
    'a version that is none': [{ path: '/api/v1/namespaces', query: { resourceVersion: 'x' } }, 'BadRequest'],
    'a selector that is none': [{ path: '/api/v1/namespaces', query: { fieldSelector: 'nothing=1' } }, 'BadRequest'],
  }
  it('a connection answers a list that cannot be watched with an error of that watch', async () => {
    const connection = await withToken()
    let watch = 0
    for (const [name, [message, reason]] of Object.entries(refused)) {
      watch += 1
      connection.say({ watch, ...message })
      const { object } = await connection.next(watch, 'ERROR')
      assert.deepEqual([name, object.kind, object.reason], [name, 'Status', reason])
    }
    for (const bad of ['{', '[]', '7', '{"watch":-1,"path":"/"}', '{"watch":1,"path":"/","query":{"limit":"1"}}']) {
      connection.socket.send(bad)
      assert.equal((await connection.next(-1, 'ERROR')).object.reason, 'BadRequest')
    }
    connection.say({ watch: 1, path: '/api/v1/namespaces' })
    await connection.next(1, 'BOOKMARK')
  })

  it('a connection shows only lists that the caller may see, and ends a watch after the role was removed', async () => {
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-other' } })
    const bindings = '/api/v1/namespaces/svc-other/rolebindings/svc-dev/subjects'
    const connection = await withToken(service.devToken)
    connection.say({ watch: 1, path: '/api/v1/namespaces/svc-other/vms' })
    assert.equal((await connection.next(1, 'ERROR')).object.reason, 'Forbidden')
    const body = { users: ['dev@example.com'] }
    const added = await service.call('POST', `${bindings}/add`, { body })
    if (added.status >= 300) assert.fail(added.text)
    connection.say({ watch: 3, path: '/api/v1/namespaces/svc-other/vms' })
    await connection.next(3, 'BOOKMARK')
    const removed = await service.call('DELETE', `${bindings}/remove`, { body })
    if (removed.status >= 300) assert.fail(removed.text)
    assert.equal((await connection.next(3, 'ERROR')).object.reason, 'Forbidden')
  })

  it('a connection needs a token, or the session of the console', async () => {
    await assert.rejects(withToken('nonsense'), /401/)
    const browser = openBrowser(service, url)
    await logIn(browser, service.devToken)
    const cookie = browser.cookieHeader()
    await assert.rejects(connect({ cookie }), /403/)
    await assert.rejects(connect({ cookie, origin: 'https://evil.example' }), /403/)
    await assert.rejects(connect({ origin: url }), /401/)
    const connection = await connect({ cookie, origin: url })
    connection.say({ watch: 1, path: `${inDefault}/vms` })
    await connection.next(1, 'BOOKMARK')
    await browser.call('DELETE', '/console/session')
    assert.equal(await connection.closed, 4401)
  })
})

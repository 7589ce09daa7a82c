// Images between namespaces: who sees which names of an image and its users, through every interface, and who may delete,
// commit to and protect it. Callers are two teams, a user without bindings, service accounts, and an administrator.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import WebSocket from 'ws'
import { type Answer, startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { startNode, startScheduler } from '../../../../test/support/stand-ins/node.ts'
import { randomDisc } from '../../../../test/support/tools/disc.ts'
import { eventually } from '../../../../test/support/tools/eventually.ts'
import type { Image } from '../../../api/images/images.ts'
import { recordEvents } from '../../../controllers/record-events.ts'
import { settleOnce } from '../../../controllers/settle-captures.ts'
import type { ImageRecord } from '../../../store/records/fleet-records.ts'
import { removeNamespaceLeftovers } from '../../../store/records/namespaces.ts'

const all = '/api/v1/namespaces'
const home = `${all}/svc-default`
/** The names of team A that other callers must not see. */
const secrets = /svc-a\b|secret-(?:vm|user|person|builder|node)|ana@example\.com/

let service: TestService
let url: string
let scheduler: AsyncDisposable
let recorder: ReturnType<typeof recordEvents>
const tokens: Record<string, string> = {}
const callers = ['team A', 'service account of A', 'team B', 'service account of B', 'no bindings', 'admin'] as const
type Caller = (typeof callers)[number]
const namespaceOf: Readonly<Record<Caller, string>> = {
  'team A': 'svc-a',
  'service account of A': 'svc-a',
  'team B': 'svc-b',
  'service account of B': 'svc-b',
  'no bindings': 'svc-default',
  admin: 'svc-default',
}
const knowing: readonly Caller[] = ['team A', 'service account of A', 'admin']
const strangers = callers.filter((caller) => !knowing.includes(caller))

const call = (caller: Caller, method: string, path: string, options: object = {}): Promise<Answer> =>
  service.call(method, `${all}/${namespaceOf[caller]}/${path}`, { token: tokens[caller] ?? '', ...options })

before(async () => {
  service = await startService({ settings: { legacy: { enabled: true } } })
  scheduler = startScheduler(service)
  recorder = recordEvents(service.services)
  url = await service.listen()
  const { serviceAccounts } = service.services.collections
  for (const [team, user] of [
    ['a', 'ana@example.com'],
    ['b', 'bo@example.com'],
  ] as const) {
    const namespace = `svc-${team}`
    await service.call('POST', all, { body: { name: namespace } })
    await service.call('POST', `${all}/${namespace}/rolebindings/svc-dev/subjects/add`, { body: { users: [user] } })
    tokens[`team ${team.toUpperCase()}`] = await service.tokenFor({ kind: 'user', name: user, admin: false })
    const account = { name: team === 'a' ? 'secret-builder' : 'builder', namespace, uid: `uid-${team}` }
    await serviceAccounts.create(namespace, account.name, { ...account, createdAt: '' })
    tokens[`service account of ${team.toUpperCase()}`] = await service.tokenFor({ kind: 'serviceaccount', ...account })
    await startNode(service, { name: team === 'a' ? 'secret-node' : 'node-b', namespace })
  }
  tokens['no bindings'] = service.devToken
  tokens.admin = service.adminToken
})
after(async () => {
  await recorder.stop()
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

/** Creates an image that team A saved from its VM. Tests override fields. */
async function plant(name: string, change: Partial<ImageRecord> = {}): Promise<void> {
  const at = '2026-11-15T09:00:00Z'
  const record: ImageRecord = {
    name,
    description: 'Saved from VM secret-vm in namespace svc-a.',
    architecture: 'amd64',
    sizeBytes: 2 ** 30,
    recipe: name,
    owner: 'ana@example.com',
    createdAt: at,
    updatedAt: at,
    source: 'secret-vm',
    sourceType: 'vm',
    sourceNamespace: 'svc-a',
    version: 2,
    versions: [{ version: 2, at, vm: 'svc-a/secret-vm', by: 'secret-person' }],
    parent: { image: 'base', version: 1, vm: 'svc-a/secret-vm' },
  }
  await service.services.collections.images.create('', name, { ...record, ...change })
}

const deploy = async (caller: Caller, name: string, image: string): Promise<void> => {
  const { status, text } = await call(caller, 'POST', 'vms', { body: { name, image, cpu: 1 } })
  assert.equal(status, 201, text)
}

/** The response of each interface, as text. */
const doors: Readonly<Record<string, (caller: Caller, image: string) => Promise<string>>> = {
  get: async (caller, image) => (await call(caller, 'GET', `images/${image}`)).text,
  list: async (caller) => (await call(caller, 'GET', 'images')).text,
  'list by page': async (caller) => (await call(caller, 'GET', 'images?limit=100')).text,
  watch: async (caller) => (await watched(caller, 'images?watch=true')).join('\n'),
  'resumed watch': async (caller) => (await watched(caller, 'images?watch=true&resourceVersion=1')).join('\n'),
  'watch on a WebSocket': async (caller) => {
    const headers = { authorization: `Bearer ${tokens[caller]}` }
    const socket = new WebSocket(`${url.replace('http', 'ws')}/api/v1/watch`, { headers })
    const texts: string[] = []
    socket.on('message', (data) => texts.push(String(data)))
    await once(socket, 'open')
    socket.send(JSON.stringify({ watch: 1, path: `${all}/${namespaceOf[caller]}/images` }))
    await eventually(async () => assert.match(texts.join(), /"name":"tools".*BOOKMARK/))
    socket.terminate()
    return texts.join()
  },
  describe: async (caller, image) => {
    const { description } = service.services.collections.images.get('', image)?.value ?? {}
    const { text } = await call(caller, 'POST', `images/${image}/description`, { body: { description: 'Mine' } })
    await service.call('POST', `${all}/svc-a/images/${image}/description`, { body: { description } })
    return text
  },
  'refused delete': async (caller, image) => (await call(caller, 'DELETE', `images/${image}`)).text,
  copy: async (caller, image) => {
    const name = `copy-of-${callers.indexOf(caller)}`
    const { text } = await call(caller, 'POST', `images/${image}/copy`, { body: { name } })
    await service.call('DELETE', `${home}/images/${name}`)
    // The caller of a copy is its owner, which the caller may see.
    return knowing.includes(caller) ? text : text.replaceAll(/"(?:owner|sourceNamespace)":"[^"]*"/g, '')
  },
  'list of 2.4.x': async (caller) => {
    const headers = { authorization: `Bearer ${tokens[caller]}` }
    return (await service.call('GET', '/resources/image/list', { token: null, headers })).text
  },
  events: async (caller) => (await call(caller, 'GET', 'events')).text,
}

/** Reads the lines of a watch until none follow. */
async function watched(caller: Caller, path: string): Promise<string[]> {
  const ending = new AbortController()
  const headers = { authorization: `Bearer ${tokens[caller]}` }
  const { body } = await fetch(`${url}${all}/${namespaceOf[caller]}/${path}`, { headers, signal: ending.signal })
  const lines: string[] = []
  let quiet = setTimeout(() => ending.abort(), 60_000)
  try {
    for await (const line of createInterface(Readable.fromWeb(body as never))) {
      lines.push(line)
      clearTimeout(quiet)
      quiet = setTimeout(() => ending.abort(), 300)
    }
  } catch {
    // Aborted by this test.
  }
  assert.ok(lines.length > 0)
  return lines
}

describe('names of a namespace in images', () => {
  before(async () => {
    await plant('tools')
    await plant('broken', {
      state: 'Failed',
      errorMessage: 'Could not be saved on node secret-node: VM secret-vm is gone',
    })
    await plant('committed', {
      errorMessage: 'VM secret-vm was removed',
      errorNamespace: 'svc-a',
      owner: 'bo@example.com',
      source: 'ours',
      sourceNamespace: 'svc-b',
    })
    await plant('busy', {
      state: 'Updating',
      progress: { percent: 1, bytes: 1, phase: 'waiting for node secret-node' },
      capture: {
        id: 'none',
        kind: 'commit',
        requestedAt: '2999-01-01T00:00:00Z',
        vm: { namespace: 'svc-a', name: 'secret-vm', uid: 'x' },
      },
    })
    await deploy('team A', 'secret-user', 'tools')
    await deploy('team B', 'ours', 'tools')
  })

  for (const [door, open] of Object.entries(doors))
    for (const caller of strangers)
      it(`names of a namespace in images are hidden: ${door}, ${caller}`, async () => {
        assert.doesNotMatch(await open(caller, 'tools'), secrets)
      })

  for (const caller of knowing)
    it(`names of a namespace in images are shown to its users and administrators: ${caller}`, async () => {
      const { body } = await call(caller, 'GET', 'images/tools')
      const { owner, source, sourceNamespace, parent, versions, description } = body as Image
      assert.deepEqual([owner, source, sourceNamespace], ['ana@example.com', 'secret-vm', 'svc-a'])
      assert.deepEqual([parent?.vm, versions?.[0]?.vm], ['svc-a/secret-vm', 'svc-a/secret-vm'])
      assert.equal(versions?.[0]?.by, 'secret-person')
      assert.match(description, /VM secret-vm in namespace svc-a/)
      assert.match((await call(caller, 'GET', 'images/broken')).body.errorMessage, /secret-node/)
      assert.equal((await call(caller, 'GET', 'images/busy')).body.capture.vm, 'svc-a/secret-vm')
    })

  it('names of a namespace in images: others get a count, and the names in their own namespace', async () => {
    const seen = async (caller: Caller) => {
      const { usedBy, usedElsewhere, owner, source } = (await call(caller, 'GET', 'images/tools')).body
      return { usedBy, usedElsewhere, owner, source }
    }
    assert.deepEqual(await seen('team B'), { usedBy: ['svc-b/ours'], usedElsewhere: 1, owner: '', source: '' })
    assert.deepEqual(await seen('no bindings'), { usedBy: [], usedElsewhere: 2, owner: '', source: '' })
    const { usedBy, usedElsewhere } = await seen('admin')
    assert.deepEqual([usedBy, usedElsewhere], [['svc-a/secret-user', 'svc-b/ours'], undefined])
    const { body } = await call('team B', 'GET', 'images/committed')
    assert.deepEqual([body.errorMessage, body.sourceNamespace], ['Failed in another namespace', 'svc-b'])
    assert.equal((await call('team A', 'GET', 'images/committed')).body.errorMessage, 'VM secret-vm was removed')
  })

  it('names of a namespace in images cannot be guessed by selectors, on lists and on watches', async () => {
    const guesses = [
      'owner=ana@example.com',
      'source=secret-vm',
      'sourceNamespace=svc-a',
      'parent.vm=svc-a/secret-vm',
      'capture.vm=svc-a/secret-vm',
      'description=Saved from VM secret-vm in namespace svc-a.',
    ]
    for (const guess of guesses) {
      const query = `fieldSelector=${encodeURIComponent(guess)}`
      const asAdmin = await call('admin', 'GET', `images?${query}`)
      for (const caller of strangers) {
        const { status, body } = await call(caller, 'GET', `images?${query}`)
        assert.equal(status, asAdmin.status, guess)
        assert.deepEqual(body.items ?? [], [], `${caller}: ${guess}`)
        // The negated selector must not reveal hidden values either.
        const [not, never] = await Promise.all(
          [guess, guess.replace(/=.*/, '=nobody')].map((each) =>
            call(caller, 'GET', `images?fieldSelector=${encodeURIComponent(each.replace('=', '!='))}`),
          ),
        )
        assert.deepEqual(not?.body.items, never?.body.items, `${caller}: not ${guess}`)
      }
    }
    const query = `fieldSelector=${encodeURIComponent('owner=ana@example.com')}`
    assert.ok((await call('admin', 'GET', `images?${query}`)).body.items.length > 0)
    const types = (await watched('team B', `images?watch=true&${query}`)).map((line) => JSON.parse(line).type)
    assert.deepEqual([...new Set(types)], ['BOOKMARK'])
  })

  it('names of a namespace in images: an ETag of one caller does not match for another', async () => {
    const one = await call('team A', 'GET', 'images')
    const headers = { 'if-none-match': String(one.headers.etag) }
    assert.equal((await call('team A', 'GET', 'images', { headers })).status, 304)
    const other = await service.call('GET', `${home}/images`, { token: tokens['team B'] ?? '', headers })
    assert.equal(other.status, 200)
    assert.doesNotMatch(other.text, secrets)
    const tag = String((await call('team A', 'GET', 'images/tools')).headers.etag)
    const image = await call('team B', 'GET', 'images/tools', { headers: { 'if-none-match': tag } })
    assert.equal(image.status, 200)
  })

  it('names of a namespace in images appear and disappear with the role', async () => {
    const subjects = `${all}/svc-a/rolebindings/svc-dev/subjects`
    const body = { users: ['dev@example.com'] }
    const ending = new AbortController()
    const { body: stream } = await fetch(`${url}${home}/images?watch=true`, {
      headers: { authorization: `Bearer ${service.devToken}` },
      signal: ending.signal,
    })
    let isOver = false
    const reading = (async () => {
      for await (const _ of Readable.fromWeb(stream as never));
      isOver = true
    })()
    assert.equal((await service.call('POST', `${subjects}/add`, { body })).status, 200)
    assert.equal((await call('no bindings', 'GET', 'images/tools')).body.owner, 'ana@example.com')
    await eventually(async () => assert.ok(isOver, 'a watch from before lists again'))
    await reading
    assert.equal((await service.call('DELETE', `${subjects}/remove`, { body })).status, 200)
    assert.equal((await call('no bindings', 'GET', 'images/tools')).body.owner, '')
  })
})

describe('deleting an image', () => {
  const may: Readonly<Record<string, { readonly change: Partial<ImageRecord>; readonly callers: readonly Caller[] }>> =
    {
      'made in svc-a': { change: {}, callers: knowing },
      'made in svc-a by somebody of team B': {
        change: { owner: 'bo@example.com' },
        callers: [...knowing, 'team B'],
      },
      'of before namespaces were recorded': {
        change: { sourceNamespace: undefined as never },
        callers: ['team A', 'admin'],
      },
      'made in the default namespace': {
        change: { sourceNamespace: 'svc-default' },
        // Every user has access to the default namespace. Service accounts only have access to their own.
        callers: ['team A', 'team B', 'no bindings', 'admin'],
      },
      protected: { change: { protected: true }, callers: ['admin'] },
      'that came with svc3': { change: { source: undefined as never, owner: 'svc3' }, callers: ['admin'] },
      'that came with svc3, its protection removed': {
        change: { source: undefined as never, protected: false },
        callers: knowing,
      },
    }
  for (const [what, { change, callers: allowed }] of Object.entries(may))
    for (const caller of callers)
      it(`deleting an image ${what}: ${caller} ${allowed.includes(caller) ? 'may' : 'may not'}`, async () => {
        const name = 'deleted'
        await plant(name, change)
        const { status, body, text } = await call(caller, 'DELETE', `images/${name}`)
        if (allowed.includes(caller)) return assert.equal(status, 200, text)
        assert.deepEqual([status, body.reason], [403, 'Forbidden'], text)
        assert.match(body.message, /protected; only administrators may delete it|made in another namespace/)
        assert.ok(service.services.collections.images.get('', name))
        assert.equal((await call('admin', 'DELETE', `images/${name}`)).status, 200)
      })

  it('deleting an image that is used: the refusal names visible VMs and counts the others', async () => {
    await plant('shared', { owner: 'bo@example.com' })
    await deploy('team A', 'secret-one', 'shared')
    await deploy('team A', 'secret-two', 'shared')
    await deploy('team B', 'mine', 'shared')
    const refusal = async (caller: Caller) => (await call(caller, 'DELETE', 'images/shared')).body
    const { code, message } = await refusal('team B')
    assert.deepEqual([code, message], [409, 'Image shared is used by svc-b/mine and 2 VMs in other namespaces'])
    assert.match(
      (await refusal('team A')).message,
      /svc-a\/secret-one, svc-a\/secret-two and 1 VM in another namespace$/,
    )
    assert.match((await refusal('admin')).message, /svc-a\/secret-one, svc-a\/secret-two, svc-b\/mine$/)
  })

  it('deleting an image in the API of 2.4.x follows the same rules', async () => {
    await plant('old-door')
    const remove = (caller: Caller) => {
      const headers = { authorization: `Bearer ${tokens[caller]}` }
      return service.call('POST', '/resources/image/delete', { token: null, headers, body: { image: 'old-door' } })
    }
    const refused = await remove('team B')
    assert.equal(refused.status, 403, refused.text)
    assert.doesNotMatch(refused.text, secrets)
    assert.ok(service.services.collections.images.get('', 'old-door'))
    assert.equal((await remove('admin')).status, 200)
  })

  it('deleting an ISO follows the same rules', async () => {
    const headers = { 'content-type': 'application/octet-stream' }
    const body = randomDisc(40_000)
    await call('team A', 'POST', 'upload/iso?name=a.iso', { body, headers })
    const seen = await call('team B', 'GET', 'isos/a.iso')
    assert.deepEqual([seen.body.owner, seen.body.sourceNamespace], ['', undefined])
    assert.equal((await call('team B', 'DELETE', 'isos/a.iso')).status, 403)
    assert.equal((await call('service account of A', 'DELETE', 'isos/a.iso')).status, 200)
  })
})

describe('a namespace that was deleted', () => {
  it('a namespace created again does not see or delete images of the earlier one', async () => {
    const place = `${all}/svc-short`
    const token = await service.tokenFor({ kind: 'user', name: 'cy@example.com', admin: false })
    const create = async () => {
      await service.call('POST', all, { body: { name: 'svc-short' } })
      const body = { users: ['cy@example.com'] }
      await service.call('POST', `${place}/rolebindings/svc-dev/subjects/add`, { body })
    }
    await create()
    await plant('survivor', {
      description: 'Copied from Saved from VM secret-vm in namespace svc-short.',
      sourceNamespace: 'svc-short',
      parent: { image: 'base', vm: 'svc-short/secret-vm' },
      versions: [
        { version: 1, at: '', vm: 'svc-short/secret-vm', by: 'secret-person' },
        { version: 2, at: '', vm: 'svc-b/ours' },
      ],
      errorMessage: 'VM secret-vm was removed',
      errorNamespace: 'svc-short',
    })
    const before = (await service.call('GET', `${place}/images/survivor`, { token })).text
    assert.match(before, /"sourceNamespace":"svc-short".*svc-short\/secret-vm/)
    assert.equal((await service.call('DELETE', place)).status, 200)
    await create()
    const after = await service.call('GET', `${place}/images/survivor`, { token })
    assert.doesNotMatch(after.text, secrets)
    assert.doesNotMatch(after.text, /svc-short/)
    assert.equal((await service.call('DELETE', `${place}/images/survivor`, { token })).status, 403)
    const { collections } = service.services
    const revs = (): string[] => collections.images.list().map(({ rev }) => rev)
    const settled = revs()
    await removeNamespaceLeftovers(collections)
    assert.deepEqual(revs(), settled, 'nothing else is touched')
    const { body } = await call('admin', 'GET', 'images/survivor')
    assert.deepEqual([body.owner, body.versions[1].vm], ['ana@example.com', 'svc-b/ours'])
    assert.equal((await call('team A', 'DELETE', 'images/survivor')).status, 200, 'its owner')
  })
})

describe('committing to an image', () => {
  const commit = (caller: Caller, vm: string) => call(caller, 'POST', `vms/${vm}/commit`)

  it('a new version by the owner of an image is visible in the namespace that the image was made in', async () => {
    await plant('base-of-a', { owner: 'bo@example.com' })
    await deploy('team B', 'change', 'base-of-a')
    const { status, text } = await commit('team B', 'change')
    assert.equal(status, 202, text)
    assert.doesNotMatch(text, secrets)
    const { images } = service.services.collections
    await images.change(images.key('', 'base-of-a'), (record) => {
      const { state: _, capture: __, progress: ___, ...rest } = record as ImageRecord
      return { ...rest, version: 3 }
    })
    const told = async (caller: Caller): Promise<string[]> =>
      (await call(caller, 'GET', 'events?fieldSelector=involved.name%3Dbase-of-a')).body.items.map(
        ({ message }: { message: string }) => message,
      )
    await eventually(async () =>
      assert.deepEqual(await told('team A'), [
        'Image base-of-a has a new version, 3, committed from a VM in another namespace',
      ]),
    )
    assert.deepEqual(await told('team B'), ['Image base-of-a saved from VM change'])
  })

  it('committing to an image that others use or commit to is refused without their names', async () => {
    await plant('crowded', { owner: 'bo@example.com' })
    await deploy('team A', 'secret-vm-1', 'crowded')
    await deploy('team B', 'neighbour', 'crowded')
    const refused = await commit('team B', 'neighbour')
    assert.deepEqual(
      [refused.status, refused.body.message],
      [409, 'Image crowded is also used by 1 VM in another namespace'],
    )
    const { images } = service.services.collections
    const capture = { id: 'x', kind: 'commit', requestedAt: '2999-01-01T00:00:00Z' } as const
    const vm = { namespace: 'svc-a', name: 'secret-vm-1', uid: 'x' }
    await images.change(images.key('', 'crowded'), (record) => ({
      ...(record as ImageRecord),
      state: 'Updating',
      capture: { ...capture, vm },
    }))
    assert.equal(
      (await commit('team B', 'neighbour')).body.message,
      'A VM in another namespace is being committed to image crowded',
    )
    assert.match((await commit('team A', 'secret-vm-1')).body.message, /^VM secret-vm-1 is being committed/)
    // The VM was replaced, so the commit fails. Only team A sees the reason.
    await settleOnce(service.services)
    assert.equal((await call('team B', 'GET', 'images/crowded')).body.errorMessage, 'Failed in another namespace')
    assert.match((await call('team A', 'GET', 'images/crowded')).body.errorMessage, /VM secret-vm-1/)
  })

  it('committing to a protected image requires an administrator, as does protecting it', async () => {
    await plant('golden')
    await deploy('team A', 'golden-vm', 'golden')
    const protect = (caller: Caller, isOn: boolean) =>
      call(caller, 'POST', 'images/golden/protection', { body: { protected: isOn } })
    for (const caller of callers.filter((each) => each !== 'admin'))
      assert.equal((await protect(caller, true)).status, 403, caller)
    assert.deepEqual([(await protect('admin', true)).body.protected], [true])
    for (const caller of ['team A', 'service account of A'] as const) {
      const { status, body } = await commit(caller, 'golden-vm')
      assert.deepEqual(
        [status, body.message],
        [403, 'Forbidden: image golden is protected; only administrators may commit to it'],
      )
    }
    assert.equal(service.services.collections.images.get('', 'golden')?.value.state, undefined)
    assert.equal((await service.call('POST', `${all}/svc-a/vms/golden-vm/commit`)).status, 202)
    const { body } = await call('admin', 'GET', 'events?fieldSelector=involved.name%3Dgolden')
    assert.deepEqual(
      body.items.map(({ message }: { message: string }) => message),
      ['admin@example.com changed the protection of image golden (protected true)'],
    )
    const restored = await call('team A', 'POST', 'images/golden/restore', { body: { version: 1 } })
    assert.deepEqual(
      [restored.status, restored.body.message],
      [403, 'Forbidden: image golden is protected; only administrators may restore it'],
    )
    assert.equal((await protect('admin', false)).body.protected, false)
    const missing = await call('admin', 'POST', 'images/none/protection', { body: { protected: true } })
    assert.equal(missing.status, 404)
  })
})

// Servers on one store: a node gets no outdated state, other programs get nothing, and a message reaches a node that has
// just connected to another server.
import assert from 'node:assert/strict'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { keyFingerprintOf, makePair } from '../../../test/support/tools/certificates.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { tellNode } from '../../api/nodes/servers.ts'
import { silentLog } from '../../platform/log.ts'
import { openMemory } from '../../store/memory.ts'
import { openCollections } from '../../store/records/collections.ts'
import type { ServerRecord } from '../../store/records/server-records.ts'
import type { Store } from '../../store/store.ts'
import { Fleet } from '../nodes/fleet.ts'
import { createNodeRelay } from '../nodes/node-relay.ts'
import { type PresenceTracker, SharedPresence } from '../nodes/presence.ts'
import { ServerCalls, ServerUnreachable } from './server-calls.ts'
import type { Servers } from './servers.ts'

const server = (run: string): ServerRecord => ({
  id: `id-${run}`,
  run,
  internalUrl: 'https://127.0.0.1:1',
  apiUrl: 'https://127.0.0.1:1',
  version: '0',
  startedAt: '2026-11-15T09:00:00Z',
  leaseMs: 1,
  beat: 0,
})

describe('servers on one store', () => {
  it('servers on one store admit a node only after seeing all earlier writes of other servers', async () => {
    const store = openMemory()
    const gate = Promise.withResolvers<void>()
    const late: Store = Object.assign(Object.create(store) as Store, {
      async *watch(...[prefix, ...others]: Parameters<Store['watch']>) {
        for await (const batch of store.watch(prefix, ...others)) {
          if (prefix === '/vms/') await gate.promise
          yield batch
        }
      },
    })
    await using collections = await openCollections(late)
    const fleet = { isOpen: () => false, subscribe: () => () => undefined } as Partial<Fleet> as Fleet
    const servers = { id: 'id-a', run: 'a', subscribe: () => () => undefined } as Partial<Servers> as Servers
    const clock = { now: () => new Date('2026-11-15T09:00:00Z') }
    const presence = new SharedPresence({ store, collections, fleet, servers, clock, log: silentLog })
    await store.create('/vms/svc-default/demo', { name: 'demo' })
    const seen = presence.claim('n').then(({ rev }) => [collections.vms.get('svc-default', 'demo')?.value.name, rev])
    await eventually(() => assert.ok(collections.presence.get('', 'n')))
    // Without waiting, it would have been admitted by now.
    for (let turns = 0; turns < 20; turns++) await turn()
    gate.resolve()
    assert.deepEqual(await seen, ['demo', collections.presence.get('', 'n')?.rev])
    presence.stop()
    await collections[Symbol.asyncDispose]()
    await store.close()
  })

  it('servers on one store keep the newest claim of a node that connected twice', async () => {
    const memory = openMemory()
    const writing = Promise.withResolvers<void>()
    const store: Store = Object.assign(Object.create(memory) as Store, {
      update: async (...asked: Parameters<Store['update']>) => {
        await writing.promise
        return memory.update(...asked)
      },
    })
    await using collections = await openCollections(store)
    const fleet = new Fleet()
    const servers = { id: 'id-a', run: 'a', subscribe: () => () => undefined } as Partial<Servers> as Servers
    const clock = { now: () => new Date('2026-11-15T09:00:00Z') }
    const presence = new SharedPresence({ store, collections, fleet, servers, clock, log: silentLog })
    const first = await presence.claim('n')
    const claiming = presence.claim('n')
    // The agent has given up the first connection, but the server has not noticed.
    assert.equal(first.isCurrent(), false)
    writing.resolve()
    const second = await claiming
    assert.equal(second.isCurrent(), true)
    fleet.open('n', () => ({ type: 'PING' }), { write: () => true, end: () => undefined })
    await presence.settle()
    assert.equal(collections.presence.get('', 'n')?.rev, second.rev)
    fleet.dropAll()
    presence.stop()
    await collections[Symbol.asyncDispose]()
    await memory.close()
  })

  it('servers on one store send nothing, not even a token, to a server with another key', async (t) => {
    const [own, other] = await Promise.all([makePair(), makePair()])
    const asked: string[] = []
    const stranger = https.createServer({ cert: other.cert, key: other.key }, (request, response) => {
      asked.push(request.url ?? '')
      response.end('{"isTold":true}')
    })
    t.after(() => {
      stranger.close()
      stranger.closeAllConnections()
    })
    stranger.listen(0, '127.0.0.1')
    await new Promise((resolve) => stranger.once('listening', resolve))
    const internalUrl = `https://127.0.0.1:${(stranger.address() as AddressInfo).port}`
    const body = { node: 'n', message: { type: 'PING' } } as const
    const callsWith = (cert: string): ServerCalls => {
      const calls = new ServerCalls({
        self: { id: 'id-a', run: 'a' },
        tokens: { issue: async () => ({ token: 'token', expiresAt: undefined }) },
        certificates: { current: async () => ({ facts: { publicKeyFingerprint: keyFingerprintOf(cert) } }) as never },
      })
      t.after(() => calls.close())
      return calls
    }
    const wary = callsWith(own.cert)
    assert.equal(await wary.answers({ internalUrl }), false)
    await assert.rejects(wary.call({ internalUrl }, tellNode, body), ServerUnreachable)
    await assert.rejects(wary.send(internalUrl, { method: 'GET', path: '/', headers: {} }), ServerUnreachable)
    await assert.rejects(wary.dial({ internalUrl }, '/'), ServerUnreachable)
    assert.deepEqual(asked, [])
    const knowing = callsWith(other.cert)
    assert.equal(await knowing.answers({ internalUrl }), true)
    assert.deepEqual(await knowing.call({ internalUrl }, tellNode, body), { isTold: true })
  })

  it('servers on one store deliver a message to a node that moves to another server', async () => {
    let holder = server('a')
    const listeners = new Set<() => void>()
    const told: string[] = []
    const presence: PresenceTracker = {
      isOpen: () => true,
      holderOf: () => holder,
      subscribe: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
      claim: () => assert.fail(),
    }
    const call = async ({ run }: ServerRecord): Promise<unknown> => {
      told.push(run)
      if (run === 'a') throw new ServerUnreachable('it has just ended')
      return { isTold: true }
    }
    const far = createNodeRelay({
      id: 'here',
      fleet: { tell: () => false, isOpen: () => false },
      presence,
      calls: { call: call as ServerCalls['call'] },
      log: silentLog,
      returnMs: 60_000,
    })
    const telling = far.tell('n', { type: 'PING' })
    await eventually(() => assert.equal(listeners.size, 1))
    holder = server('b')
    for (const listener of listeners) listener()
    assert.equal(await telling, true)
    assert.deepEqual([told, listeners.size], [['a', 'b'], 0])
    await far.stop()
  })
})

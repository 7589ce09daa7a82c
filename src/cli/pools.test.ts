// svc3 pool: requests, output, and usage errors.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { run } from '../../test/support/rigs/cli-host.ts'
import { type FakeService, startFakeService } from '../../test/support/stand-ins/api.ts'
import { serve } from '../../test/support/stand-ins/fleet.ts'
import { getPool } from '../api/vms/pools.ts'

let service: FakeService
const sent: unknown[] = []
before(async () => {
  service = await startFakeService()
})
after(() => service[Symbol.asyncDispose]())
beforeEach(() => {
  sent.length = 0
  const pool = getPool.example.response
  const kept = ({ body }: { readonly body?: unknown }) => {
    sent.push(body)
    return pool
  }
  serve(service, {
    'GET pools': () => ({ items: [pool, { ...pool, name: 'ci', reason: 'VM configuration build not found' }] }),
    'GET pools/ios': () => pool,
    'POST pools': kept,
    'PUT pools/ios': kept,
    'POST pools/ios/rotate': kept,
    'POST pools/ios/drain': kept,
  })
})

const svc3 = (...words: string[]) =>
  run(['pool', ...words], { env: { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token } })

describe('svc3 pool', () => {
  it('svc3 pool create sends a schedule, whose zone may be left out', async () => {
    const workdays = ['--schedule', '0 7 * * mon-fri Europe/Berlin=4']
    const { exitCode } = await svc3('create', 'ios', '--config', 'build', ...workdays, '--schedule', '0 19 * * * = 0')
    assert.equal(exitCode, 0)
    const schedule = [
      { cron: '0 7 * * mon-fri', timeZone: 'Europe/Berlin', minIdle: 4 },
      { cron: '0 19 * * *', minIdle: 0 },
    ]
    assert.deepEqual(sent, [{ name: 'ios', config: 'build', schedule }])
  })

  it('svc3 pool update removes a schedule, and changes nothing else', async () => {
    assert.equal((await svc3('update', 'ios', '--no-schedule')).exitCode, 0)
    assert.deepEqual(sent, [{ schedule: [] }])
  })

  it('svc3 pool rejects an invalid schedule before any request', async () => {
    const wrong = ['0 7 * * *', '0 7 * *=4', '0 7 * * *=many', '=4', '0 7 * * * Europe/Berlin now=4']
    for (const text of wrong) assert.equal((await svc3('update', 'ios', '--schedule', text)).exitCode, 2, text)
    assert.equal((await svc3('update', 'ios', '--schedule', '0 7 * * *=4', '--no-schedule')).exitCode, 2)
    assert.deepEqual(sent, [])
  })

  it('svc3 pool rotate and drain say what happens', async () => {
    assert.match((await svc3('rotate', 'ios')).stdout, /Pool ios is being rotated/)
    assert.match((await svc3('drain', 'ios')).stdout, /Pool ios is being drained/)
    assert.equal(sent.length, 2)
  })

  it('svc3 pool list prints below the table why a pool is not full, unless a column does', async () => {
    assert.equal((await svc3('list')).stderr, 'svc3: Pool ci is not full: VM configuration build not found\n')
    assert.equal((await svc3('list', 'ios')).stderr, '')
    const { stdout, stderr } = await svc3('list', '-o', 'wide')
    assert.deepEqual([/VM configuration build not found$/m.test(stdout), stderr], [true, ''])
  })

  it('svc3 pool describe prints the schedule, its current value, and why warm VMs were removed', async () => {
    const { stdout } = await svc3('describe', 'ios')
    assert.match(stdout, /^Schedule: +0 7 \* \* mon-fri Europe\/Berlin=4$/m)
    assert.match(stdout, /^Minimum idle now: +4$/m)
    assert.match(stdout, /^Removed: +TooOld 12$/m)
    assert.match(stdout, /^Warm VMs: +running$/m)
  })
})

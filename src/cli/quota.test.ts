// svc3 quota and svc3 vm list --pending: requests, output, and usage errors.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { run } from '../../test/support/rigs/cli-host.ts'
import { type FakeService, startFakeService } from '../../test/support/stand-ins/api.ts'
import { serve } from '../../test/support/stand-ins/fleet.ts'
import { listQueue } from '../api/vms/queue.ts'
import { getQuota } from '../api/vms/quotas.ts'

let service: FakeService
const bodies: unknown[] = []
before(async () => {
  service = await startFakeService()
})
after(() => service[Symbol.asyncDispose]())
beforeEach(() => {
  bodies.length = 0
  const quota = getQuota.example.response
  serve(service, {
    'GET quota': () => quota,
    'PUT quota': ({ body }) => {
      bodies.push(body)
      return quota
    },
    'GET queue': () => listQueue.example.response,
  })
})

const svc3 = (line: string) =>
  run(line.split(' '), { env: { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token } })

describe('svc3 quota', () => {
  it('svc3 quota set sends only what is named, and prints what is in use', async () => {
    const { exitCode, stdout } = await svc3(
      'quota set --vms 20 --memory 64G --unlimited cpu --weight ada@example.com=2',
    )
    assert.equal(exitCode, 0)
    assert.deepEqual(bodies, [{ vms: 20, memory: 64, unlimited: ['cpu'], weights: { 'ada@example.com': 2 } }])
    assert.match(stdout, /^VMs: +1 in use, limit 20$/m)
    assert.match(stdout, /^Memory: +8 GiB in use, no limit$/m)
    assert.match(stdout, /^Shares: +ada@example\.com: 5\.0 %, 1 VM, 4 cores, 8 GiB$/m)
    await svc3('quota set --unlimited all')
    assert.deepEqual(bodies[1], { unlimited: ['vms', 'cpu', 'memory', 'macos'] })
  })

  it('svc3 quota set rejects an invalid limit before any request', async () => {
    for (const words of ['', ' --vms -1', ' --vms many', ' --unlimited disk', ' --weight ada', ' --weight ada=0'])
      assert.equal((await svc3(`quota set${words}`)).exitCode, 2, words)
    assert.deepEqual(bodies, [])
  })

  it('svc3 quota show prints the record as JSON', async () => {
    const { stdout } = await svc3('quota show -o json')
    assert.deepEqual(JSON.parse(stdout), [getQuota.example.response])
  })
})

describe('svc3 vm list --pending', () => {
  it('svc3 vm list --pending prints position, expected wait and reason', async () => {
    const { exitCode, stdout } = await svc3('vm list --pending')
    assert.equal(exitCode, 0)
    assert.deepEqual(
      stdout.split('\n').map((line) => line.split('\t')),
      [
        ['POSITION', 'NAME', 'OWNER', 'SINCE', 'EXPECTED', 'REASON'],
        [
          '1',
          'vm-cznfv',
          'ada@example.com',
          '2026-11-15T09:00:00Z',
          '2 min',
          'Quota of svc-default reached: 20 of 20 VMs in use',
        ],
        [''],
      ],
    )
    assert.deepEqual(JSON.parse((await svc3('vm list --pending -o json')).stdout), listQueue.example.response.items)
    assert.ok(!(await svc3('vm list --pending --owner bob')).stdout.includes('vm-cznfv'))
    assert.equal((await svc3('vm list --pending --watch')).exitCode, 2)
  })
})

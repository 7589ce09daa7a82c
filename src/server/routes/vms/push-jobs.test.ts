// Push jobs on the server, with a node that tests control: permissions, progress, the end of a job, and its removal.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Answer, startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { startBadRegistry } from '../../../../test/support/stand-ins/bad-registry.ts'
import { addImage, type NodeStandIn, startNode, startScheduler } from '../../../../test/support/stand-ins/node.ts'
import { eventually } from '../../../../test/support/tools/eventually.ts'
import { expireRecordsOnce } from '../../../controllers/expire-records.ts'
import { settleOnce } from '../../../controllers/settle-captures.ts'
import type { VmRecord } from '../../../store/records/fleet-records.ts'
import { type PushJobRecord, sent } from '../../../store/records/push-jobs.ts'
import type { Entry } from '../../../store/store.ts'

const here = '/api/v1/namespaces/svc-default'
const password = 'canary-of-a-push'
const digest = `sha256:${'a'.repeat(64)}`
let service: TestService
let scheduler: AsyncDisposable
let arm: NodeStandIn

before(async () => {
  service = await startService({ settings: { registries: { allowLoopback: true } } })
  scheduler = startScheduler(service)
  const many = { cpu: 1_000, memoryMiB: 2_000_000 }
  arm = await startNode(service, { name: 'arm', report: { architecture: 'arm64', ...many } })
  await startNode(service, { name: 'intel', report: { architecture: 'amd64', ...many } })
  await addImage(service, 'sonoma', 'arm64')
  await addImage(service, 'ventura', 'amd64')
  await post('vms', { name: 'apple', image: 'sonoma', cpu: 1 })
  await post('vms', { name: 'intel', image: 'ventura', cpu: 1 })
  await addCredentials('https://ghcr.io')
})
after(async () => {
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const post = (path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  service.call('POST', `${here}/${path}`, { ...(body !== undefined && { body }), headers })
const addCredentials = (server: string, more: object = {}) =>
  post('secrets/registrycredentials/add', { server, username: 'ci-bot', password, ...more })
const push = (imageReference: unknown, vm = 'apple', headers = {}) =>
  post(`vms/${vm}/push`, { imageReference }, headers)
const agent = (method: string, path: string, body?: unknown) =>
  service.call(method, `/api/v1/agent/${path}`, { token: arm.token, ...(body !== undefined && { body }) })
const job = (name: string): PushJobRecord | undefined =>
  service.services.collections.pushJobs.get('svc-default', name)?.value
const entryOf = (name: string): Entry<PushJobRecord> => {
  const entry = service.services.collections.pushJobs.get('svc-default', name)
  assert.ok(entry)
  return entry
}
const vm = (): VmRecord | undefined => service.services.collections.vms.get('svc-default', 'apple')?.value
const begun = async (reference = 'ghcr.io/acme/ios/sonoma'): Promise<{ name: string; capture: string }> => {
  const answer = await push(reference)
  assert.equal(answer.status, 200, answer.text)
  const name = answer.body.jobName
  return { name, capture: job(name)?.capture ?? '' }
}
const free = () => eventually(async () => assert.equal(vm()?.observed.generation, vm()?.desired.generation))

describe('a push', () => {
  it('a push returns 200 with the name of a job, and sends the capture to the node', async () => {
    const { name, capture } = await begun()
    assert.match(name, /^vm-push-[a-z0-9]{5}$/)
    const told = arm.told.findLast((message) => message.type === 'VM')
    assert.deepEqual(told?.type === 'VM' && told.vm.captures?.at(-1), {
      id: capture,
      kind: 'push',
      withMemory: false,
      reference: 'ghcr.io/acme/ios/sonoma:latest',
      createdAt: job(name)?.startedAt,
    })
    assert.ok(!JSON.stringify(arm.told).includes(password), 'no secret is in a desired')
    const shown = (await service.call('GET', `${here}/pushjobs/${name}`)).body
    assert.deepEqual([shown.status, shown.vm, shown.image], ['Pending', 'apple', 'ghcr.io/acme/ios/sonoma:latest'])
    await free()
  })

  it('a push may be in the format of tart, which the node gets and the job shows', async () => {
    const body = { imageReference: 'ghcr.io/acme/ios/sonoma', format: 'tart' }
    const answer = await post('vms/apple/push', body)
    assert.equal(answer.status, 200, answer.text)
    const told = arm.told.findLast((message) => message.type === 'VM')
    assert.equal(told?.type === 'VM' && told.vm.captures?.at(-1)?.format, 'tart')
    assert.equal((await service.call('GET', `${here}/pushjobs/${answer.body.jobName}`)).body.format, 'tart')
    await free()
    const refused = await post('vms/apple/push', { ...body, format: 'docker' })
    assert.equal(refused.status, 400, refused.text)
  })

  it('a push gives the credentials of the namespace to the node that pushes, and to no other', async () => {
    const { capture } = await begun()
    const answer = await agent('GET', `captures/${capture}/credentials`)
    assert.deepEqual(answer.body.credentials, { username: 'ci-bot', password })
    assert.deepEqual([answer.body.server, answer.body.allowInsecure], ['https://ghcr.io', false])
    const other = await startNode(service, { name: 'other', report: { architecture: 'arm64' } })
    const stolen = await service.call('GET', `/api/v1/agent/captures/${capture}/credentials`, { token: other.token })
    assert.equal(stolen.status, 404, stolen.text)
    await free()
  })

  it('a push counts the sent bytes while it is being packed, without a guess of the total', async () => {
    const { name, capture } = await begun()
    const packing = { percent: 0, bytes: 50, phase: 'packing, 40 %' }
    assert.equal((await agent('POST', `captures/${capture}/progress`, packing)).status, 200)
    const { body } = await service.call('GET', `${here}/pushjobs/${name}`)
    assert.deepEqual([body.phase, body.progress.bytesDone, body.progress.bytesTotal], ['packing, 40 %', 50, 0])
    const record = job(name) ?? assert.fail()
    const began = record.sending ?? assert.fail()
    const more = { percent: 0, bytesDone: 90, bytesTotal: 0, bytesSkipped: 0 }
    assert.deepEqual(sent(record, more, began.atMs + 10_000).progress, { ...more, bytesPerSecond: 4 })
    // Bytes sent before count from their time, so that the rate does not jump.
    const then = { percent: 90, bytesDone: 90, bytesTotal: 100, bytesSkipped: 0 }
    assert.deepEqual(sent(record, then, began.atMs + 10_000).progress, { ...then, bytesPerSecond: 4, secondsLeft: 3 })
    assert.equal((await agent('POST', `captures/${capture}`, { content: digest })).status, 200)
    await free()
  })

  it('a push shows its progress, and ends once', async () => {
    const { name, capture } = await begun()
    const progress = { percent: 62, bytes: 62, bytesTotal: 100, bytesSkipped: 12, phase: 'sending' }
    assert.equal((await agent('POST', `captures/${capture}/progress`, progress)).status, 200)
    const { body } = await service.call('GET', `${here}/pushjobs/${name}`)
    assert.deepEqual([body.status, body.phase], ['Running', 'sending'])
    assert.deepEqual(body.progress, { percent: 62, bytesDone: 62, bytesTotal: 100, bytesSkipped: 12 })
    // Ten more in some seconds. Skipped bytes do not count.
    const began = job(name)?.sending ?? { atMs: 0, bytes: 0 }
    assert.equal(began.bytes, 50)
    const before = { ...job(name), sending: began, progress: body.progress } as PushJobRecord
    const later = { percent: 92, bytesDone: 92, bytesTotal: 100, bytesSkipped: 22 }
    const after = sent(before, later, began.atMs + 5_000)
    assert.deepEqual(after.progress, { ...later, bytesPerSecond: 4, secondsLeft: 2 })
    await service.services.collections.pushJobs.update(entryOf(name), { ...before, ...after })
    assert.equal((await service.call('GET', `${here}/pushjobs/${name}`)).body.progress.secondsLeft, 2)
    assert.equal((await agent('POST', `captures/${capture}`, { content: digest })).status, 200)
    const end = (await service.call('GET', `${here}/pushjobs/${name}`)).body
    assert.deepEqual([end.status, end.digest, end.progress.percent], ['Succeeded', digest, 100])
    assert.deepEqual([end.progress.bytesPerSecond, 'secondsLeft' in end.progress, 'sending' in end], [4, false, false])
    assert.equal(Date.parse(end.expiresAt) - Date.parse(end.finishedAt), 3_600_000)
    assert.ok(!vm()?.captures?.some(({ id }) => id === capture))
    for (const late of [progress, { ...progress, problem: 'too late' }])
      assert.equal((await agent('POST', `captures/${capture}/progress`, late)).status, 404)
    assert.equal((await service.call('DELETE', `${here}/pushjobs/${name}`)).status, 409)
    assert.equal(job(name)?.status, 'Succeeded')
    await free()
  })

  it('a push shows why it waits and the time of the next try, by the server’s clock, until it continues or ends', async () => {
    const { name, capture } = await begun()
    const shown = async () => (await service.call('GET', `${here}/pushjobs/${name}`)).body
    const progress = { percent: 0, bytes: 0, phase: 'packing, 100 %' }
    const waiting = { problem: 'https://ghcr.io/v2/: connection refused (ECONNREFUSED)', nextTryMs: 12_000 }
    const report = (more: object) => agent('POST', `captures/${capture}/progress`, { ...progress, ...more })
    const nowMs = service.services.clock.now().getTime()
    assert.equal((await report({ waiting })).status, 200)
    const stuck = await shown()
    assert.deepEqual([stuck.status, stuck.waiting.reason], ['Running', waiting.problem])
    const inMs = Date.parse(stuck.waiting.nextTryAt) - nowMs
    assert.ok(inMs > 10_000 && inMs < 30_000, stuck.waiting.nextTryAt)
    assert.equal((await report({})).status, 200)
    assert.ok(!('waiting' in (await shown())))
    assert.equal((await report({ waiting })).status, 200)
    assert.equal((await report({ problem: 'it never answered' })).status, 200)
    const end = await shown()
    assert.deepEqual([end.status, end.errorMessage, 'waiting' in end], ['Failed', 'it never answered', false])
    await free()
  })

  it('a push fails with the reason', async () => {
    const { name, capture } = await begun()
    const problem = 'the registry "ghcr.io" refused the login'
    await agent('POST', `captures/${capture}/progress`, { percent: 3, bytes: 3, problem })
    assert.deepEqual([job(name)?.status, job(name)?.errorMessage], ['Failed', problem])
    assert.ok(!vm()?.captures?.some(({ id }) => id === capture))
    await free()
  })

  it('a cancelled push is sent to the node, whose later reports change nothing', async () => {
    const { name, capture } = await begun()
    await free()
    const answer = await service.call('DELETE', `${here}/pushjobs/${name}`)
    assert.equal(answer.status, 200, answer.text)
    assert.equal(job(name)?.status, 'Cancelled')
    await eventually(async () => {
      const told = arm.told.findLast((message) => message.type === 'VM')
      assert.ok(told?.type === 'VM' && !told.vm.captures?.some(({ id }) => id === capture))
    })
    assert.equal((await agent('POST', `captures/${capture}`, { content: digest })).status, 404)
    assert.equal(job(name)?.status, 'Cancelled')
  })

  it('a push is started once by repeated requests', async () => {
    const headers = { 'idempotency-key': 'one-push' }
    const answers = await Promise.all([1, 2, 3].map(() => push('ghcr.io/acme/once', 'apple', headers)))
    const names = new Set(answers.filter(({ status }) => status === 200).map(({ body }) => body.jobName))
    assert.equal(names.size, 1, answers.map(({ text }) => text).join('\n'))
    const all = service.services.collections.pushJobs.list('svc-default')
    assert.equal(all.filter(({ value }) => value.image === 'ghcr.io/acme/once:latest').length, 1)
    await free()
  })
})

describe('a push is refused', () => {
  it('a push is refused: for Intel-based VMs', async () => {
    const answer = await push('ghcr.io/acme/x', 'intel')
    assert.equal(answer.status, 422, answer.text)
    assert.match(answer.body.message, /Apple silicon/)
  })

  it('a push is refused: without credentials for the registry, with the command that adds them', async () => {
    // Connections to these addresses are not allowed, so they are not probed.
    for (const reference of ['192.0.0.8/acme/x', '192.0.0.8:5000/acme/x', '169.254.169.254/a/b:c']) {
      const answer = await push(reference)
      assert.equal(answer.status, 409, answer.text)
      assert.match(answer.body.message, new RegExp(`${reference.split('/')[0]}.*svc-default`))
      assert.match(answer.body.hint, /svc3 regcred add https:\/\//)
    }
  })

  it('a push is refused: with the command for plain HTTP if the registry has no TLS', async () => {
    const plain = await startBadRegistry()
    try {
      const answer = await push(`127.0.0.1:${plain.port}/acme/x`)
      assert.equal(answer.status, 409, answer.text)
      const add = new RegExp(`svc3 regcred add ${plain.server} --allow-insecure -u USER .*-n svc-default`)
      assert.match(answer.body.hint, add)
      assert.deepEqual(plain.seen, [], 'nothing was asked in clear')
    } finally {
      await plain.close()
    }
  })

  it('a push is refused over HTTP unless that is allowed', async () => {
    await addCredentials('http://registry.test:5000', { allowInsecure: true })
    assert.equal((await push('registry.test:5000/acme/x')).status, 200)
    await free()
  })

  it('a push may be to a repository of one part', async () => {
    const answer = await push('ghcr.io/name:tag')
    assert.equal(answer.status, 200, answer.text)
    await free()
  })

  for (const reference of [
    `ghcr.io/a/b@${digest}`,
    'ghcr.io',
    'sonoma',
    'https://ghcr.io/a/b',
    'ghcr.io/A/b',
    '-x/a/b',
    'ghcr.io/a/b:-c',
    '',
  ])
    it(`a push is refused: to ${JSON.stringify(reference.slice(0, 30))}`, async () => {
      const before = service.services.collections.pushJobs.list('svc-default').length
      const answer = await push(reference)
      assert.equal(answer.status, 422, answer.text)
      assert.ok(answer.body.details.causes[0].field === 'imageReference' && answer.body.hint)
      assert.equal(service.services.collections.pushJobs.list('svc-default').length, before)
    })

  it('a push is refused for an unknown VM', async () => {
    assert.equal((await push('ghcr.io/a/b', 'nobody')).status, 404)
    assert.equal((await push(7)).status, 400)
  })
})

describe('abandoned jobs', () => {
  it('abandoned jobs fail when a server died before it wrote the VM’s record', async () => {
    const { name, capture } = await begun()
    await free()
    const entry = service.services.collections.vms.get('svc-default', 'apple')
    assert.ok(entry)
    const { captures: _, ...rest } = entry.value
    await service.services.collections.vms.update(entry, rest)
    const later = { now: () => new Date(service.services.clock.now().getTime() + 60_000) }
    await settleOnce({ collections: service.services.collections, clock: later })
    assert.equal(job(name)?.status, 'Failed', capture)
    assert.match(job(name)?.errorMessage ?? '', /interrupted/)
  })

  it('abandoned jobs fail when their VM is removed by force', async () => {
    await post('vms', { name: 'doomed', image: 'sonoma', cpu: 1 })
    const { jobName } = (await push('ghcr.io/acme/doomed', 'doomed')).body
    await service.call('DELETE', `${here}/vms/doomed?force=true`)
    await settleOnce(service.services)
    assert.match(job(jobName)?.errorMessage ?? '', /VM doomed was removed/)
  })

  it('abandoned jobs are kept for an hour after their end, and then removed', async () => {
    const { name, capture } = await begun()
    await agent('POST', `captures/${capture}`, { content: digest })
    await free()
    const running = await begun()
    const sweepAfter = (minutes: number) => {
      const now = service.services.clock.now().getTime() + minutes * 60_000
      return expireRecordsOnce(
        { ...service.services, clock: { now: () => new Date(now) } },
        new AbortController().signal,
      )
    }
    await sweepAfter(59)
    assert.ok(job(name))
    await sweepAfter(61)
    assert.equal(job(name), undefined)
    await sweepAfter(600)
    assert.ok(job(running.name), 'one that is under way is kept')
  })
})

// GitHub's scale sets against a stand-in of GitHub.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, before, beforeEach, describe, it } from 'node:test'
import { GitHubStandIn } from '../../../test/support/stand-ins/github.ts'
import { systemClock } from '../../platform/clock.ts'
import { parseRunnerScope } from '../../rules/runners/scope.ts'
import { type RunnerSource, SourceError } from '../source.ts'
import type { GitHubCredential } from './connection.ts'
import { GitHubSource } from './scale-set.ts'

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pem = privateKey.export({ type: 'pkcs1', format: 'pem' }) as string
const app: GitHubCredential = { kind: 'app', appId: 'Iv1.abc', installationId: '7', privateKey: pem }
const retry = { attempts: 5, firstDelayMs: 1, maxDelayMs: 5, maxRetryAfterMs: 100 }
const signal = AbortSignal.timeout(60_000)

describe('a scale set of GitHub', () => {
  let github: GitHubStandIn
  let source: RunnerSource
  const sourceWith = (
    more: { credential?: GitHubCredential; group?: string; labels?: string[] } = {},
  ): RunnerSource => {
    const parsed = parseRunnerScope(github.url)
    assert.ok(parsed.ok)
    return new GitHubSource({
      scope: parsed.scope,
      credential: app,
      clock: systemClock,
      retry,
      name: 'ios',
      labels: ['ios'],
      group: 'Default',
      ownerName: 'svc3',
      ...more,
    })
  }
  before(async () => {
    github = await GitHubStandIn.start({ appKey: publicKey, pollMs: 200, groups: { macs: 4 } })
  })
  after(() => github?.[Symbol.asyncDispose]())
  beforeEach(() => {
    github.endSessions()
    source = sourceWith()
  })
  const problemOf = async (work: Promise<unknown>): Promise<string> => {
    const error = await work.then(
      () => assert.fail('it was not refused'),
      (reason: unknown) => reason,
    )
    assert.ok(error instanceof SourceError, String(error))
    return error.problem
  }

  it('a whole cycle: set, session, job, runner, start, end, removal', async () => {
    const id = await source.prepare(undefined, signal)
    assert.equal(await sourceWith().prepare(undefined, signal), id, 'its own set is found again')
    const queue = await source.open(id, signal)
    assert.equal(await queue.next(0, 2, signal), undefined)
    const job = github.queueJob('build')
    const assigned = await queue.next(0, 2, signal)
    assert.deepEqual(
      assigned?.jobs.map(({ type, jobId, name, repository }) => ({ type, jobId, name, repository })),
      [{ type: 'assigned', jobId: job.id, name: 'build', repository: 'acme/app' }],
    )
    assert.equal(assigned?.demand?.assigned, 1)
    assert.deepEqual(await queue.next(0, 2, signal), assigned, 'it comes again until it is acknowledged')
    await queue.acknowledge(assigned ?? assert.fail(), signal)
    const { runnerId, secret } = await source.register(id, 'ios-1', signal)
    assert.equal(await problemOf(source.register(id, 'ios-1', signal)), 'NameTaken')
    assert.deepEqual(await source.find('ios-1', signal), { id: runnerId, name: 'ios-1', state: 'offline' })
    const running = await github.connect(secret)
    const started = await queue.next(assigned?.id ?? 0, 2, signal)
    assert.deepEqual(
      started?.jobs.map(({ type, runnerName }) => [type, runnerName]),
      [['started', 'ios-1']],
    )
    assert.equal(await source.remove(runnerId, signal), 'busy')
    await queue.acknowledge(started ?? assert.fail(), signal)
    running?.end()
    const completed = await queue.next(started?.id ?? 0, 2, signal)
    assert.deepEqual(
      completed?.jobs.map(({ type, result }) => [type, result]),
      [['completed', 'succeeded']],
    )
    await queue.acknowledge(completed ?? assert.fail(), signal)
    assert.deepEqual(await source.list(id, signal), [])
    assert.equal(await source.remove(runnerId, signal), 'removed')
    await queue.close(signal)
    await source.retire(id, signal)
    assert.equal(github.sets.size, 0)
    assert.deepEqual(github.violations, [])
  })

  it('refusals have a reason that people can act on', async () => {
    const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
      type: 'pkcs8',
      format: 'pem',
    })
    const wrongKey = { ...app, privateKey: other as string }
    assert.equal(await problemOf(sourceWith({ credential: wrongKey }).prepare(undefined, signal)), 'Unauthorized')
    const noKey = { ...app, privateKey: 'no key' }
    assert.equal(await problemOf(sourceWith({ credential: noKey }).prepare(undefined, signal)), 'Unauthorized')
    const token = { kind: 'token', token: 'ghp_wrong' } as const
    assert.equal(await problemOf(sourceWith({ credential: token }).prepare(undefined, signal)), 'Unauthorized')
    assert.equal(await problemOf(sourceWith({ group: 'windows' }).prepare(undefined, signal)), 'UnknownGroup')
    const id = await sourceWith({ group: 'macs', credential: { kind: 'token', token: 'ghp_standin' } }).prepare(
      undefined,
      signal,
    )
    assert.equal(await problemOf(sourceWith({ group: 'macs', labels: ['x'] }).prepare(undefined, signal)), 'NameTaken')
    assert.equal(await sourceWith({ group: 'macs', labels: ['x'] }).prepare(id, signal), id, 'its own labels change')
    const queue = await source.open(id, signal)
    assert.equal(await problemOf(sourceWith().open(id, signal)), 'SessionActive')
    await queue.close(signal)
  })

  for (const as of [401, 429, 502, 'empty', 'lost'] as const)
    it(`each call gets over ${as}`, async () => {
      const id = await source.prepare(undefined, signal)
      // A session that was opened without an answer lapses; that is the controller's to wait for.
      const queue = await source.open(id, signal)
      for (const match of [/GET .*_queue/, /GET .*agents/, /POST .*registration-token/, /runner-registration/]) {
        const isToken = /registration/.test(match.source)
        if (as === 401 && match.source.includes('registration-token')) continue
        github.faults.push({ match, as, times: 1 })
        if (isToken) await sourceWith().list(id, signal)
        else if (match.source.includes('agents')) await source.list(id, signal)
        else await queue.next(0, 1, signal)
      }
      assert.ok(github.faults.every(({ times }) => times === 0))
      await queue.close(signal)
    })

  it('a session that has ended is told apart, and a redirect is not followed', async () => {
    const id = await source.prepare(undefined, signal)
    const queue = await source.open(id, signal)
    github.endSessions()
    assert.equal(await problemOf(queue.next(0, 1, signal)), 'SessionLost')
    github.faults.push({ match: /GET .*agents/, as: 302, times: 1 })
    assert.equal(await problemOf(source.list(id, signal)), 'Refused')
  })

  it('jobs that are offered are taken with the token of the queue', async () => {
    await using server = await GitHubStandIn.start({ isOffering: true, pollMs: 200 })
    const parsed = parseRunnerScope(server.url)
    assert.ok(parsed.ok)
    const offered = new GitHubSource({ scope: parsed.scope, credential: app, clock: systemClock, retry, name: 'a', labels: ['a'], group: 'default', ownerName: 'svc3' }) // biome-ignore format: one source
    const id = await offered.prepare(undefined, signal)
    const queue = await offered.open(id, signal)
    await queue.next(0, 2, signal)
    server.queueJob()
    const batch = (await queue.next(0, 2, signal)) ?? assert.fail()
    assert.deepEqual(
      batch.jobs.map(({ type }) => type),
      ['available'],
    )
    await queue.acquire(batch.jobs, signal)
    await queue.acknowledge(batch, signal)
    const next = await queue.next(batch.id, 2, signal)
    assert.deepEqual(
      next?.jobs.map(({ type, jobId }) => [type, jobId]),
      [['assigned', 'request-1']],
    )
  })
})

// Plans of runner pools, and how news changes jobs.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { afterNews, type Job, type JobNews, noDemand, queueSeconds } from './jobs.ts'
import { planRunners, type Runner, type RunnerPoolState, runnerRestMs } from './runner-plan.ts'
import { parseRunnerScope } from './scope.ts'
import { isRunnerFolder, startScript } from './start-script.ts'

const runner = (name: string, more: Partial<Runner> = {}): Runner => ({
  name,
  createdMs: 0,
  isInHand: false,
  isRegistered: true,
  isBySsh: false,
  isStarted: false,
  vm: 'running',
  runningMs: 0,
  connectedMs: 0,
  hasJob: false,
  isJobDone: false,
  seen: 'online',
  isEnding: false,
  ...more,
})
const state = (more: Partial<RunnerPoolState> = {}): RunnerPoolState => ({
  nowMs: 1_000_000,
  minIdle: 0,
  max: 10,
  connectMs: 180_000,
  idleMs: 300_000,
  isPaused: false,
  isDrained: false,
  isDeleting: false,
  isForced: false,
  demand: noDemand,
  endedSince: 0,
  failing: { count: 0, lastMs: 0 },
  runners: [],
  ...more,
})
const assigned = (count: number) => ({ ...noDemand, assigned: count })
const endsOf = (of: Partial<RunnerPoolState>): string[] => planRunners(state(of)).ends.map(({ name, end }) => `${name} ${end.reason}`) // biome-ignore format: one line

describe('the plan of a runner pool', () => {
  it('there are as many runners as jobs plus idle ones, up to the maximum', () => {
    assert.equal(planRunners(state({ demand: assigned(3), minIdle: 2 })).create, 5)
    assert.equal(planRunners(state({ demand: assigned(30) })).create, 10)
    assert.equal(planRunners(state({ demand: assigned(3), endedSince: 2 })).create, 1)
    const runners = [runner('a', { hasJob: true }), runner('b', { isEnding: true }), runner('c', { isJobDone: true })]
    assert.equal(planRunners(state({ demand: assigned(4), runners, max: 4 })).create, 1)
    assert.equal(planRunners(state({ demand: assigned(4), isPaused: true })).create, 0)
  })

  it('a runner is judged by its VM and its state at GitHub', () => {
    const never = { connectedMs: undefined, seen: 'offline' } as const
    for (const [more, ends] of [
      [{ ...never, runningMs: 900_000 }, []],
      [{ ...never, runningMs: 800_000 }, ['a NotConnected']],
      [{ ...never, runningMs: 0, seen: 'unknown' }, []],
      [{ ...never, vm: 'down' }, ['a GuestEnded']],
      [{ ...never, vm: 'down', seen: 'absent' }, ['a Finished']],
      [{ hasJob: true, vm: 'down' }, ['a Finished']],
      [{ vm: 'gone' }, ['a VmDeleted']],
      [{ ...never, vm: 'failed', seen: undefined }, ['a DeployFailed']],
      [{ hasJob: true, seen: 'absent' }, []],
      [{ hasJob: true, seen: 'absent', missedMs: 960_000 }, ['a Finished']],
      [{ isRegistered: false, vm: 'none' }, ['a RegistrationLost']],
      [{ isRegistered: false, vm: 'none', isInHand: true }, []],
    ] as const)
      assert.deepEqual(endsOf({ demand: assigned(1), runners: [runner('a', more)] }), ends, JSON.stringify(more))
  })

  it('a runner that is started by SSH is registered when its VM runs, and can be lost only in between', () => {
    const bare = { isBySsh: true, isRegistered: false, connectedMs: undefined, seen: undefined } as const
    const plan = (more: Partial<Runner>, of: Partial<RunnerPoolState> = {}) =>
      planRunners(state({ demand: assigned(1), runners: [runner('a', { ...bare, ...more })], ...of }))
    assert.deepEqual([plan({}).starts, plan({}).ends], [['a'], []])
    assert.deepEqual(plan({ isInHand: true }).starts, [])
    assert.deepEqual(plan({ vm: 'pending' }).starts, [])
    assert.deepEqual(plan({}, { isPaused: true }).starts, [])
    assert.deepEqual(plan({ isRegistered: true }).ends[0]?.end.reason, 'RegistrationLost')
    assert.deepEqual(plan({ isRegistered: true, seen: 'busy', connectedMs: 1 }).ends, [])
    assert.deepEqual(plan({ isRegistered: true, isStarted: true, runningMs: 900_000, seen: 'offline' }).ends, [])
  })

  it('a runner with a job is never removed', () => {
    fc.assert(
      fc.property(
        fc.record({
          isPaused: fc.boolean(),
          isDrained: fc.boolean(),
          isDeleting: fc.boolean(),
          nowMs: fc.integer({ min: 0, max: 10 ** 12 }),
          max: fc.integer({ min: 1, max: 3 }),
        }),
        fc.array(fc.constantFrom<Partial<Runner>>({ hasJob: true, seen: 'busy' }, { seen: 'busy' }, {}), {
          maxLength: 6,
        }),
        (of, kinds) => {
          const runners = kinds.map((kind, index) => runner(String(index), kind))
          const gone = planRunners(state({ ...of, runners })).ends
          for (const { name } of gone) assert.equal(kinds[Number(name)]?.seen, undefined)
        },
      ),
    )
  })

  it('surplus runners are removed after their idle time, or at once if they have no node', () => {
    assert.deepEqual(endsOf({ runners: [runner('a', { connectedMs: 800_000 })] }), [])
    assert.deepEqual(endsOf({ runners: [runner('a', { connectedMs: 600_000 })] }), ['a Idle'])
    const pending = runner('b', { vm: 'pending', runningMs: undefined, connectedMs: undefined, seen: 'offline' })
    assert.deepEqual(endsOf({ runners: [runner('a'), pending], minIdle: 1 }), ['b Idle'])
    assert.deepEqual(endsOf({ runners: [runner('a', { connectedMs: 999_999 })], isPaused: true, isDrained: true }), [
      'a Drained',
    ])
  })

  it('five failures in a row make a pool rest, longer each time', () => {
    assert.deepEqual([4, 5, 6, 20].map(runnerRestMs), [0, 30_000, 60_000, 600_000])
    const failed = runner('a', { vm: 'down', connectedMs: undefined, seen: 'offline' })
    const plan = planRunners(state({ demand: assigned(1), runners: [failed], failing: { count: 4, lastMs: 0 } }))
    assert.deepEqual([plan.create, plan.restUntilMs], [0, 1_030_000])
  })
})

describe('jobs of a runner pool', () => {
  const news = (type: JobNews['type'], more: Partial<JobNews> = {}): JobNews => ({ type, jobId: 'j', requestId: 0, name: 'build', repository: 'a/b', workflow: '', runId: 0, event: 'push', ...more }) // biome-ignore format: one line

  it('a job never returns to an earlier state, in whatever order its news arrives', () => {
    const all = fc.array(fc.constantFrom<JobNews['type']>('available', 'assigned', 'started', 'completed'), {
      maxLength: 8,
    })
    const rank = { Waiting: 0, Running: 1, Completed: 2 }
    fc.assert(
      fc.property(all, (types) => {
        let job: Job | undefined
        for (const type of types) {
          const next = afterNews(job, news(type), '2026-11-17T09:00:00Z')
          assert.ok((next ? rank[next.state] : -1) >= (job ? rank[job.state] : -1))
          assert.equal(afterNews(next, news(type), '2026-11-17T10:00:00Z'), next, 'the same news again')
          job = next
        }
      }),
    )
  })

  it('queue times have a median and a 95th percentile', () => {
    const started = (seconds: number): Job => ({ ...news('started'), id: 'j', state: 'Running', queuedAt: '2026-11-17T09:00:00Z', startedAt: new Date(Date.parse('2026-11-17T09:00:00Z') + seconds * 1_000).toISOString() }) // biome-ignore format: one line
    assert.equal(queueSeconds([]), undefined)
    assert.deepEqual(queueSeconds(Array.from({ length: 100 }, (_, index) => started(index + 1))), { p50: 50, p95: 95 })
  })
})

describe('where jobs come from, and what a guest starts', () => {
  it('URLs of organizations, repositories and enterprises are parsed in common forms', () => {
    for (const [text, path, api] of [
      ['https://github.com/acme/', 'orgs/acme', 'https://api.github.com'],
      ['https://github.com/acme/app', 'repos/acme/app', 'https://api.github.com'],
      ['https://acme.ghe.com/enterprises/acme', 'enterprises/acme', 'https://api.acme.ghe.com'],
      ['https://git.acme.example:8443/acme', 'orgs/acme', 'https://git.acme.example:8443/api/v3'],
      ['http://127.0.0.1:3/acme', 'orgs/acme', 'http://127.0.0.1:3/api/v3'],
    ] as const) {
      const parsed = parseRunnerScope(text)
      assert.ok(parsed.ok, text)
      assert.deepEqual([parsed.scope.path, parsed.scope.api], [path, api])
    }
    for (const text of ['', 'acme', 'https://github.com', 'http://github.com/acme', 'https://a:b@github.com/acme', 'https://github.com/a/b/c', 'https://github.com/../x?y'])
      assert.ok(!parseRunnerScope(text).ok, text) // biome-ignore format: a list
  })

  it('the start script puts the configuration into the environment and always powers the guest off', () => {
    const script = startScript({ folder: '/opt/r', user: 'ci', secret: 'abc=' })
    assert.match(script, /^export ACTIONS_RUNNER_INPUT_JITCONFIG='abc='$/m)
    assert.match(script, /^su ci -c \.\/run\.sh$/m)
    assert.match(script, /^trap finish EXIT$/m)
    assert.throws(() => startScript({ folder: '/opt/r', secret: "a'; reboot" }))
    assert.deepEqual(['/opt/r', '/', 'opt', '/a b', '/a;b', '/a//b'].map(isRunnerFolder), [true, false, false, false, false, false]) // biome-ignore format: one line
  })
})

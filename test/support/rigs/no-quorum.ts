// Kills two of three etcd members under three servers with writers, and checks that every server does what is promised.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ControlPlane } from '../../../src/control-plane/control-plane.ts'
import { adminToken, ask, startShared } from '../processes/shared-servers.ts'
import { eventually } from '../tools/eventually.ts'

const accounts = '/namespaces/svc-default/serviceaccounts'
const timeoutMs = 60_000
/** Longer than an isolated server takes to notice and to ask the others. */
const watchedMs = 9_000
const everyMs = 300
/** The greatest possible age of the last read when the members were killed. */
const agesBeforeS = 10
/** The server gives up after 3 s; the rest is for slow machines. */
const refusedMs = 10_000

/** `round` chooses the surviving member. Servers and members are new in each round. */
export async function loseQuorum(round: number): Promise<void> {
  await using shared = await startShared({ size: 3, logLevel: 'warn' })
  // Retried as by a supervisor: on a busy machine etcd may not answer in time.
  const planes = await Promise.all([0, 1, 2].map(() => eventually(() => shared.start(), timeoutMs)))
  const [first] = planes as [ControlPlane]
  const token = await adminToken(first)
  const survivor = round % 3
  const killed = shared.etcd.members.filter((_, index) => index !== survivor)

  const acknowledged: string[] = []
  let isOver = false
  const writing = planes.map(async (plane, index) => {
    for (let n = 0; !isOver; n++) {
      const answer = await ask(plane, 'POST', `${accounts}/robot-${index}-${n}`, { token })
      await answer.text()
      if (answer.status === 201) acknowledged.push(`robot-${index}-${n}`)
      else {
        assert.equal(answer.status, 503)
        assert.ok(answer.headers.get('retry-after'), 'a refused write says when to try again')
        await sleep(everyMs)
      }
    }
  })
  await using stopWriting = new AsyncDisposableStack()
  stopWriting.defer(async () => {
    isOver = true
    await Promise.all(writing)
  })
  await eventually(() => assert.ok(acknowledged.length >= 10), timeoutMs)
  await Promise.all(killed.map((member) => member.kill()))
  const killedMs = performance.now()

  /** Once with the last known revision of this server, as clients send it. */
  const seen = new Map<ControlPlane, string>()
  const read = async (plane: ControlPlane): Promise<void> => {
    const known = seen.get(plane)
    for (const headers of [{}, known === undefined ? {} : { 'svc3-revision': known }]) {
      const askedMs = performance.now()
      const answer = await ask(plane, 'GET', accounts, { token, headers })
      const seconds = ((performance.now() - killedMs) / 1_000).toFixed(1)
      assert.equal(answer.status, 200, `after ${seconds} s: ${await answer.clone().text()}`)
      await answer.text()
      seen.set(plane, answer.headers.get('svc3-revision') ?? '')
      const age = answer.headers.get('svc3-read-age')
      if (askedMs - killedMs > watchedMs - 2_000)
        assert.ok(Number(age) >= 4 && Number(age) <= Number(seconds) + agesBeforeS, `age ${age} after ${seconds} s`)
    }
  }
  while (performance.now() - killedMs < watchedMs) {
    await Promise.all(planes.map(read))
    await sleep(everyMs)
  }
  assert.equal(new Set(seen.values()).size, 1, `all know the same: ${[...seen.values()].join()}`)
  for (const plane of planes) {
    // A client that has seen more elsewhere is not shown less.
    const further = { 'svc3-revision': String(Number(seen.get(plane)) + 1_000) }
    const askedMs = performance.now()
    const refused = await ask(plane, 'GET', accounts, { token, headers: further })
    assert.ok(performance.now() - askedMs < refusedMs, 'a read that cannot be promised is refused after 3 s')
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1'], await refused.text())
    const ready = await fetch(`${plane.localUrl}/readyz`)
    assert.deepEqual([ready.status, /changes are refused/.test(await ready.text())], [200, true])
    const metrics = await (
      await fetch(`${plane.localUrl}/metrics`, { headers: { authorization: `Bearer ${token}` } })
    ).text()
    assert.match(metrics, /^svc3_read_age_seconds [1-9]/m)
  }

  await Promise.all(killed.map((member) => member.start()))
  const before = acknowledged.length
  await eventually(() => assert.ok(acknowledged.length > before), timeoutMs)
  await stopWriting.disposeAsync()
  for (const plane of planes)
    await eventually(async () => {
      const answer = await ask(plane, 'GET', accounts, { token })
      const { items } = (await answer.json()) as { items: { name: string }[] }
      const names = new Set(items.map(({ name }) => name))
      assert.deepEqual(
        acknowledged.filter((name) => !names.has(name)),
        [],
      )
      assert.equal(answer.headers.get('svc3-read-age'), null)
    }, timeoutMs)
}

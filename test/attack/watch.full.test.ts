// The watcher notices each kind of excess, and nothing in a program that rests.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startOwnProgram } from './own-program.ts'
import { costOf, exceeded, joined, usualLimits, Watch } from './watch.ts'

const named: Readonly<Record<string, string>> = {
  time: 'the event loop held for',
  memory: 'memory +',
  descriptors: 'descriptors +',
  disk: 'disk +',
  log: 'log +',
  silence: 'a request of another caller unanswered: ECONNRESET',
}

it('the watcher notices time, memory, descriptors, disk space, log and silence of a program, each by itself', async () => {
  await using program = await startOwnProgram('wasteful-program.ts')
  await using watch = new Watch(program)
  await watch.period()
  const seen: Record<string, string[]> = {}
  for (const what of ['', ...Object.keys(named)]) {
    await (await fetch(`${program.url}/${what}`)).text()
    await sleep(200)
    // The limits apply to both halves as one period, whichever has the excess.
    const cost = costOf(joined(await watch.period(), await watch.period()))
    // The event loop is held for a short time by what the program does for each.
    const isTimed = what === 'time' || what === ''
    const texts = exceeded({ ...cost, heldMs: isTimed ? cost.heldMs : 0 }, usualLimits)
    seen[what] = [...new Set(texts.map((text) => text.replace(/\d.*| on a new connection/, '').trim()))]
  }
  assert.deepEqual(seen, { '': [], ...Object.fromEntries(Object.entries(named).map(([what, text]) => [what, [text]])) })
})

it('growth over several periods counts from the beginning of the first', () => {
  const period = { heldMs: 0, unanswered: [], mainThreadMs: 0, busyMs: 0, logBytes: 700 * 1_024 }
  const at = (first: number, max: number) => ({ first: first * 2 ** 20, max: max * 2 ** 20 })
  const still = { descriptors: { first: 0, max: 0 }, diskBytes: at(0, 30) }
  const both = joined({ ...period, rss: at(0, 150), ...still }, { ...period, rss: at(150, 300), ...still })
  assert.deepEqual(exceeded(costOf(both), usualLimits), ['memory + 300 MB (limit 200)', 'log + 1400 KB (limit 1024)'])
})

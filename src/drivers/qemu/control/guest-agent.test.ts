// Guests that flush and confirm their identity, that never answer, that say too much, and that stay frozen: none delays
// the host beyond its limit.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { flushGuest } from './flush-guest.ts'
import { GuestAgent } from './guest-agent.ts'
import type { Qmp } from './qmp.ts'
import { agentSocket } from './sockets.ts'
import { tellGuest } from './tell-guest.ts'

const short = { answerMs: 1_000, flushMs: 300 }
/** For guests that answer: longer than a busy machine needs. */
const long = { answerMs: 60_000, flushMs: 60_000 }
type Values = Readonly<Record<string, string | number>>
type Guest = (command: string, values: Values, say: (answer: unknown) => void, hangUp: () => void) => void

/** QEMU's knowledge of the port. */
const qemu = (isOpen: boolean): Qmp => ({
  execute: async () => [
    { label: 'console', 'frontend-open': true },
    { label: 'agent', 'frontend-open': isOpen },
  ],
  closed: new Promise(() => undefined),
  waitFor: async () => false,
  close: () => undefined,
})

/** The result of `host` with such a guest, and what the guest received. */
async function withGuest<T>(guest: Guest, host: (agent: GuestAgent, runtime: string) => Promise<T>) {
  const runtime = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-agent-'))
  const heard: string[] = []
  const writes: string[] = []
  const server = net.createServer((socket) => {
    socket.on('error', () => undefined)
    socket.setEncoding('latin1').on('data', (text: string) => {
      writes.push(text)
      for (const line of text.split('\n').filter((one) => one !== '')) {
        const { execute, arguments: values = {} } = JSON.parse(line.replace(/^\xff/, ''))
        heard.push(execute)
        const say = (answer: unknown) => socket.write(`${JSON.stringify(answer)}\n`, 'latin1')
        guest(execute, values, say, () => socket.destroy())
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(agentSocket(runtime), resolve))
  using agent = new GuestAgent(runtime, AbortSignal.timeout(120_000))
  const result = await host(agent, runtime)
  server.close()
  await fs.rm(runtime, { recursive: true })
  return { result, heard, writes }
}

async function flush(guest: Guest, limits = long) {
  const { result: flushed, ...rest } = await withGuest(guest, (agent, runtime) => flushGuest(agent, runtime, limits))
  return { flushed, ...rest }
}

const good: Guest = (command, { id }, say) => say({ return: command.startsWith('guest-sync') ? id : 1 })
const freeze = 'guest-fsfreeze-freeze'
const thaw = 'guest-fsfreeze-thaw'

describe('flushGuest', { concurrency: true }, () => {
  it('flushGuest sends freeze and thaw in one message, so that no crash leaves a guest frozen', async () => {
    const { flushed, heard, writes } = await flush(good)
    assert.equal(flushed, 'flushed')
    assert.deepEqual(heard, ['guest-sync-delimited', freeze, thaw])
    assert.ok(writes.some((text) => text.includes(freeze) && text.includes(thaw)))
  })

  it('flushGuest ignores answers to other questions, and continues if the guest must not freeze', async () => {
    const { flushed } = await flush((command, values, say, hangUp) => {
      if (command.startsWith('guest-sync')) {
        say({ return: 17 })
        say('noise')
      }
      if (command === freeze) say({ error: { class: 'CommandNotFound', desc: 'disabled' } })
      else good(command, values, say, hangUp)
    })
    assert.equal(flushed, 'unheard')
  })

  it('flushGuest continues without a guest that does not answer or sends garbage', async () => {
    const silent = await flush(() => undefined, short)
    assert.deepEqual([silent.flushed, silent.heard], ['unheard', ['guest-sync-delimited']])
    const noise = 'x'.repeat(2_000_000)
    assert.equal((await flush((_, __, say) => say(noise))).flushed, 'unheard')
  })

  it('flushGuest hangs up on a guest that sends lines by the thousand', async () => {
    const beganMs = performance.now()
    const { flushed } = await flush((_, __, say) => {
      for (let count = 0; count < 2_000; count++) say({})
    })
    // Otherwise it would wait for the right answer.
    assert.deepEqual([flushed, performance.now() - beganMs < long.answerMs / 2], ['unheard', true])
  })

  it('flushGuest repeats a thaw that is not confirmed, and reports the failure', async () => {
    let thaws = 0
    const late = await flush((command, values, say, hangUp) => {
      if (command === thaw && ++thaws < 3) return hangUp()
      good(command, values, say, hangUp)
    })
    assert.deepEqual([late.flushed, thaws], ['flushed', 3])
    // A late answer to the freeze is no answer to the thaw.
    const isLate: Guest = (command, values, say, hangUp) => {
      if (command === freeze) setTimeout(() => say({ return: 1 }), 350)
      else if (command !== thaw) good(command, values, say, hangUp)
      else if (++thaws > 1) hangUp()
    }
    thaws = 0
    const never = await flush(isLate, { ...long, flushMs: 300 })
    assert.equal(never.flushed, 'stuck')
    assert.equal(never.heard.filter((command) => command === thaw).length, 4)
  })
})

const own = { hostname: 'second', mac0: '52:54:00:00:00:01', mac1: '52:54:00:00:00:02' }
const patient = { allMs: 60_000, freshMs: 60_000 }

async function tell(guest: Guest, limits = patient, isOpen = true) {
  const told: Values[] = []
  const noting: Guest = (command, values, say, hangUp) => {
    if (command === 'svc3-identity') told.push(values)
    guest(command, values, say, hangUp)
  }
  const { result: note, heard } = await withGuest(noting, (agent) => tellGuest(qemu(isOpen), agent, own, limits))
  return { note, heard, told }
}

const all = { return: ['clock', 'name', 'network'] }

describe('tellGuest', { concurrency: true }, () => {
  it('tellGuest sends name, addresses, time and a random seed, and returns no note if the guest confirms them', async () => {
    const sentMs = Date.now()
    const { note, heard, told } = await tell((_, __, say) => say(all))
    assert.equal(note, undefined)
    assert.deepEqual(heard, ['svc3-identity'])
    const [{ time, seed, ...rest } = assert.fail()] = told
    assert.deepEqual(rest, own)
    assert.ok(Number(time) * 1_000 >= sentMs - 1 && Number(time) * 1_000 <= Date.now() + 1, String(time))
    assert.match(String(seed), /^[0-9a-f]{64}$/)
  })

  it('tellGuest does not wait for a guest that had not opened the port, and returns a note', async () => {
    const { note, heard } = await tell((_, __, say) => say(all), patient, false)
    assert.deepEqual(heard, [])
    assert.match(note ?? '', /may still have the name, clock and network addresses of the saved VM: no agent in it/)
  })

  it('tellGuest returns what a guest has not set', async () => {
    const { note } = await tell((_, __, say) => {
      // The answer to a question from before it was saved.
      say({ return: 17 })
      say({ return: ['clock', 'network', 'more'] })
    })
    assert.match(note ?? '', /may still have the name of the saved VM: it could not set them/)
    assert.match((await tell((_, __, say) => say({ return: 'all' }))).note ?? '', /name, clock and network addresses/)
    const odd = { return: ['clock', { toString: 1 }, [['name']]] }
    assert.match((await tell((_, __, say) => say(odd))).note ?? '', /the name and network addresses of the saved VM/)
  })

  it("tellGuest sets only the clock with QEMU's guest agent", async () => {
    const sentMs = Date.now()
    let set = 0
    const { note, heard } = await tell((command, { time }, say) => {
      if (command !== 'guest-set-time') return say({ error: { class: 'CommandNotFound', desc: 'not found' } })
      set = Number(time) / 1_000_000
      say({ return: {} })
    })
    assert.ok(set >= sentMs - 1 && set <= Date.now() + 1, String(set))
    assert.equal(heard.at(-1), 'guest-set-time')
    assert.match(
      note ?? '',
      /have the name and network addresses of the saved VM: its agent does not know svc3-identity/,
    )
  })

  it('tellGuest gives up on a guest that does not answer in time, disconnects or sends garbage', async () => {
    const { note } = await tell(() => undefined, { allMs: 200, freshMs: 100 })
    assert.match(note ?? '', /name, clock and network addresses.*it did not confirm new ones within 0.2 s/)
    assert.match((await tell((_, __, ___, hangUp) => hangUp())).note ?? '', /did not confirm/)
    assert.match((await tell((_, __, say) => say('x'.repeat(2_000_000)))).note ?? '', /did not confirm/)
  })

  it('tellGuest repeats the time for a slow guest', async () => {
    let answers = 0
    const { note, told } = await tell((_, __, say) => void setTimeout(() => say(all), answers++ === 0 ? 400 : 0), {
      allMs: 60_000,
      freshMs: 300,
    })
    assert.deepEqual([note, told.length > 1], [undefined, true])
    const never = await tell((_, __, say) => void setTimeout(() => say(all), 20), { allMs: 1_000, freshMs: 0 })
    assert.match(never.note ?? '', /may still have the clock of the saved VM/)
  })
})

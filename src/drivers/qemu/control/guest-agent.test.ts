// Guests that flush, that never answer, that say too much, and that stay frozen: none is waited for longer than its time.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { flushGuest } from './guest-agent.ts'
import type { Qmp } from './qmp.ts'
import { agentSocket } from './sockets.ts'

const short = { answerMs: 100, flushMs: 300 }
/** For guests that answer: more than a busy machine needs. */
const long = { answerMs: 60_000, flushMs: 60_000 }
type Guest = (command: string, id: number | undefined, say: (answer: unknown) => void, hangUp: () => void) => void

/** Of QEMU there is only what it knows about the port. */
const qemu = (isOpen: boolean): Qmp => ({
  execute: async () => [
    { label: 'console', 'frontend-open': true },
    { label: 'agent', 'frontend-open': isOpen },
  ],
  closed: new Promise(() => undefined),
  listen: () => undefined,
  waitFor: async () => false,
  close: () => undefined,
})

async function flush(guest: Guest, limits = long, isOpen = true) {
  const runtime = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-agent-'))
  const heard: string[] = []
  const writes: string[] = []
  const server = net.createServer((socket) => {
    socket.on('error', () => undefined)
    socket.setEncoding('latin1').on('data', (text: string) => {
      writes.push(text)
      for (const line of text.split('\n').filter((one) => one !== '')) {
        const { execute, arguments: values } = JSON.parse(line.replace(/^\xff/, ''))
        heard.push(execute)
        const say = (answer: unknown) => socket.write(`${JSON.stringify(answer)}\n`, 'latin1')
        guest(execute, values?.id, say, () => socket.destroy())
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(agentSocket(runtime), resolve))
  const flushed = await flushGuest(qemu(isOpen), runtime, AbortSignal.timeout(120_000), limits)
  server.close()
  await fs.rm(runtime, { recursive: true })
  return { flushed, heard, writes }
}

const good: Guest = (command, id, say) => say({ return: command.startsWith('guest-sync') ? id : 1 })
const freeze = 'guest-fsfreeze-freeze'
const thaw = 'guest-fsfreeze-thaw'

describe('flushGuest', { concurrency: true }, () => {
  it('flushGuest freezes and thaws in one message, so that a death in between leaves nothing frozen', async () => {
    const { flushed, heard, writes } = await flush(good)
    assert.equal(flushed, 'flushed')
    assert.deepEqual(heard, ['guest-sync-delimited', freeze, thaw])
    assert.ok(writes.some((text) => text.includes(freeze) && text.includes(thaw)))
  })

  it('flushGuest does not even connect where nobody has opened the port', async () => {
    const { flushed, heard } = await flush(good, long, false)
    assert.deepEqual([flushed, heard], ['unheard', []])
  })

  it('flushGuest passes over answers to others, and goes on where it may not freeze', async () => {
    const { flushed } = await flush((command, id, say, hangUp) => {
      if (command.startsWith('guest-sync')) {
        say({ return: 17 })
        say('noise')
      }
      if (command === freeze) say({ error: { class: 'CommandNotFound', desc: 'disabled' } })
      else good(command, id, say, hangUp)
    })
    assert.equal(flushed, 'unheard')
  })

  it('flushGuest goes on without one that never answers, or says nothing but noise', async () => {
    const silent = await flush(() => undefined, short)
    assert.deepEqual([silent.flushed, silent.heard], ['unheard', ['guest-sync-delimited']])
    const noise = 'x'.repeat(2_000_000)
    assert.equal((await flush((_, __, say) => say(noise))).flushed, 'unheard')
  })

  it('flushGuest thaws again and again what does not say that it is thawed, and says so in the end', async () => {
    let thaws = 0
    const late = await flush((command, id, say, hangUp) => {
      if (command === thaw && ++thaws < 3) return hangUp()
      good(command, id, say, hangUp)
    })
    assert.deepEqual([late.flushed, thaws], ['flushed', 3])
    // A freeze that takes too long is no answer to the thaw.
    const isLate: Guest = (command, id, say, hangUp) => {
      if (command === freeze) setTimeout(() => say({ return: 1 }), 350)
      else if (command !== thaw) good(command, id, say, hangUp)
      else if (++thaws > 1) hangUp()
    }
    thaws = 0
    const never = await flush(isLate, { ...long, flushMs: 300 })
    assert.equal(never.flushed, 'stuck')
    assert.equal(never.heard.filter((command) => command === thaw).length, 4)
  })
})

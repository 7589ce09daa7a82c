// Retries of new ports for a VM: at once, then with growing delays.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { PortTurns } from './new-ports.ts'

it('a VM that gets taken ports again and again waits longer each time, and others do not wait for it', () => {
  const turns = new PortTurns()
  const times: number[] = []
  for (let nowMs = 0; times.length < 12; nowMs += 500) if (turns.take('/vms/a', nowMs)) times.push(nowMs)
  const waits = times.slice(1).map((time, index) => time - (times[index] ?? 0))
  assert.deepEqual(waits, [500, 500, 500, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000])
  assert.ok(turns.take('/vms/b', 0))
  turns.forget('/vms/a')
  assert.ok(turns.take('/vms/a', 0))
})

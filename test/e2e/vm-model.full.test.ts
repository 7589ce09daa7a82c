// Random acts on VMs, with real disks and simulated guests, while server and agent are killed: the result is
// what the model says, byte by byte, and nothing else. Half a minute of it; 10,000 acts, and QEMU, are in test/long.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { runLayered } from '../support/vm-model/layered-run.ts'

for (const [architecture, steps, withinMs] of [
  ['amd64', 250, 15_000],
  ['arm64', 100, 8_000],
] as const)
  it(`VMs of ${architecture} are what a model says after up to ${steps} random acts, though server and agent are killed meanwhile`, {
    timeout: 900_000,
  }, async (t) => {
    const tell = (text: string): void => t.diagnostic(text)
    const done = await runLayered(architecture, { steps, withinMs, killEvery: 15, tell })
    t.diagnostic(JSON.stringify(done))
    // On a busy machine there are fewer of them.
    assert.ok(done.steps > 0 && done.checks > 0, JSON.stringify(done))
  })

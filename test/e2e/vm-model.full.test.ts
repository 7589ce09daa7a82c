// A thousand random acts on VMs, with real disks and simulated guests, while server and agent are killed: what is there
// afterwards is what the model says, byte by byte, and nothing else. Ten thousand, and QEMU, are in test/long.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { runLayered } from '../support/vm-model/layered-run.ts'

for (const [architecture, steps] of [
  ['amd64', 700],
  ['arm64', 300],
] as const)
  it(`VMs of ${architecture} are what a model says after ${steps} random acts, though server and agent are killed meanwhile`, {
    timeout: 900_000,
  }, async (t) => {
    const done = await runLayered(architecture, { steps, killEvery: 30, tell: (text) => t.diagnostic(text) })
    t.diagnostic(JSON.stringify(done))
    assert.ok(done.kills >= steps / 100, JSON.stringify(done))
  })

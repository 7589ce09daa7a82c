// 10,000 random acts on VMs with simulated guests, and 200 on QEMU, while server, agent and QEMU are killed: the result
// afterwards is what the model says, and nothing else. SVC3_MODEL_STEPS for more or fewer, SVC3_MODEL_SEED for the
// same.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { powerButtonDisk } from '../support/guests/boot-disc.ts'
import { runLayered } from '../support/vm-model/layered-run.ts'
import type { ActName } from '../support/vm-model/model.ts'
import { qemuWorld } from '../support/vm-model/qemu-world.ts'
import { runModel } from '../support/vm-model/run.ts'

const stepsOr = (usual: number): number => Number(process.env.SVC3_MODEL_STEPS ?? usual)

for (const [architecture, usual] of [
  ['amd64', 7_000],
  ['arm64', 3_000],
] as const)
  it(`VMs of ${architecture} are what a model says after ${stepsOr(usual)} random acts and many kills of server and agent`, {
    timeout: 14_400_000,
  }, async (t) => {
    const done = await runLayered(architecture, {
      steps: stepsOr(usual),
      killEvery: 10,
      tell: (text) => t.diagnostic(text),
    })
    t.diagnostic(JSON.stringify(done))
    assert.ok(done.kills >= done.steps / 100, JSON.stringify(done))
  })

it(`VMs of QEMU are what a model says after ${stepsOr(200)} random acts and many kills of the service and of QEMU`, {
  timeout: 7_200_000,
}, async (t) => {
  await using world = await qemuWorld()
  const power: readonly ActName[] = ['start', 'start', 'stop', 'suspend', 'resume', 'resume', 'revert', 'crash']
  const done = await runModel({
    world,
    tell: (text) => t.diagnostic(text),
    steps: stepsOr(200),
    slots: 2,
    disk: powerButtonDisk('booted at once'),
    mix: ['deploy', 'deploy', 'write', 'write', 'resize', 'save', 'commit', 'delete', 'delete image', ...power],
    between: 20,
    killEvery: 6,
    memory: 0.25,
  })
  t.diagnostic(JSON.stringify(done))
  assert.ok(done.kills >= done.steps / 50, JSON.stringify(done))
})

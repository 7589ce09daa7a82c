// An agent that is killed again and again while it captures one VM after the other: in the end each capture is what was on
// the disk when it was asked for. A short one is among the usual tests, a long one in test/long.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { eventually } from '../tools/eventually.ts'
import { CaptureRig } from './capture-rig.ts'

export async function killAtRandom(kills: number): Promise<void> {
  await using rig = await CaptureRig.make('random')
  await rig.start()
  await rig.deploy('a')
  await rig.stop()
  const expected: { id: string; disk: Buffer }[] = []
  for (let done = 0; done < kills; ) {
    await rig.write('a')
    const { id } = rig.capture('a')
    expected.push({ id, disk: Buffer.from(rig.disks.get('a') ?? []) })
    // A few lives for each, then one that is left in peace until it is frozen: the disk must not be written to before.
    for (let lives = 0; lives < 3 && done < kills; lives++, done++) {
      const child = rig.spawn()
      const ended = once(child, 'exit')
      await rig.server.stream()
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 250))
      child.kill('SIGKILL')
      assert.deepEqual(await ended, [null, 'SIGKILL'])
    }
    await rig.start()
    await rig.server.fulfilled(rig.server.desired.get('a') ?? assert.fail())
    await rig.stop()
  }
  await rig.start()
  for (const { id, disk } of expected) await rig.check(id, disk)
  await eventually(async () => assert.deepEqual(await rig.left(), []), 60_000)
}

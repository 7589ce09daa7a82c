// The model against a server and an agent with simulated guests and real disks, on one architecture.
import { randomBytes } from 'node:crypto'
import { layeredWorld } from './layered-world.ts'
import type { ActName } from './model.ts'
import { type Done, type ModelRun, runModel } from './run.ts'

const both: readonly ActName[] = ['deploy', 'deploy', 'write', 'write', 'resize', 'save', 'commit', 'delete', 'delete image'] // biome-ignore format: one line
const mixes: Readonly<Record<'amd64' | 'arm64', readonly ActName[]>> = {
  amd64: [...both, 'start', 'start', 'stop', 'suspend', 'resume', 'resume', 'revert'],
  arm64: [...both, 'push'],
}
const block = 65_536

export async function runLayered(
  architecture: 'amd64' | 'arm64',
  options: Pick<ModelRun, 'steps' | 'withinMs' | 'killEvery' | 'tell'>,
): Promise<Done> {
  await using world = await layeredWorld(architecture)
  const disk = Buffer.alloc(40 * block)
  randomBytes(10 * block).copy(disk, 2 * block)
  return await runModel({ world, slots: 3, disk, mix: mixes[architecture], between: 100, ...options })
}

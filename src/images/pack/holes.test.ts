// The ranges with data of a raw file, as qemu-img and Perl find them, and without both.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { dataAreas, perlMapper, qemuMapper } from './holes.ts'

const mib = 2 ** 20

describe('holes of a raw file', () => {
  for (const [what, tool] of Object.entries({ 'qemu-img': qemuMapper, 'Perl, as on a Mac': perlMapper }))
    it(`the holes of a raw file are found with ${what}`, async () => {
      const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-holes-'))
      const file = path.join(folder, "disk, with 'odd' name.raw")
      const handle = await fs.open(file, 'w')
      await handle.truncate(64 * mib + 100)
      for (const at of [0, 10 * mib + 70_000, 64 * mib + 50]) await handle.write(Buffer.from('data'), 0, 4, at)
      await handle.close()
      const block = 65_536
      const areas = [0, 10 * mib + block, 64 * mib].map((at) => [at, block])
      assert.deepEqual(await dataAreas(file, undefined, [tool]), areas)
      const missing = () => ['no-such-program'] as const
      assert.deepEqual(await dataAreas(file, undefined, [missing, tool]), areas, 'the next program is asked')
      assert.deepEqual(await dataAreas(file, undefined, [missing]), [[0, 64 * mib + block]], 'all of it')
      await fs.rm(folder, { recursive: true })
    })
})

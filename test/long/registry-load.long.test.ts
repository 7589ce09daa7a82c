// Twenty pushes, and twenty pulls, at once by one process: its memory does not grow with them. SVC3_LOAD_MIB=1024 makes
// them as large as the promise says; the limits on memory are the same.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { exec } from '../../src/platform/exec.ts'
import { type RegistryProcess, startRegistry } from '../support/processes/registry.ts'

const count = 20
const mebibytes = Number(process.env.SVC3_LOAD_MIB ?? 128)
const maxKilobytes = 400_000
const program = path.resolve(import.meta.dirname, './registry-load.ts')
let folder: string
let registry: RegistryProcess

before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-registry-load-'))
  registry = await startRegistry({ folder: path.join(folder, 'registry') })
})
after(async () => {
  await registry.kill()
  await fs.rm(folder, { recursive: true, force: true })
})

describe(`${count} at once, of ${mebibytes} MiB each`, { timeout: 3_600_000 }, () => {
  for (const [mode, what] of Object.entries({
    push: 'pushes',
    take: 'pulls by a server',
    fill: 'pulls by an agent',
  }))
    it(`${what} stay below 400 MB of memory, ${count} at once, of ${mebibytes} MiB each`, async (test) => {
      const place = path.join(folder, mode)
      const args = [program, mode, registry.server, place, String(count), String(mebibytes)]
      const { stdout } = await exec(process.execPath, args, { timeoutMs: 3_000_000 })
      const kilobytes = Number(stdout.trim())
      test.diagnostic(`${what}: ${Math.round(kilobytes / 1_000)} MB`)
      assert.ok(kilobytes > 0 && kilobytes <= maxKilobytes, `${kilobytes} kB`)
      await fs.rm(place, { recursive: true })
    })
})

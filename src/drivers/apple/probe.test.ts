// The probe of a host with tart, without it, and with an outdated one.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { isNewEnough, probeTart } from './probe.ts'

const alone = { left: async () => 2, refusal: async () => undefined }

describe('version of tart', () => {
  it('the version of tart is 2.35 or later', () => {
    for (const good of ['2.35.0', '2.35.0-stand-in', '2.100.1', '3.0', '10.0.0']) assert.ok(isNewEnough(good), good)
    for (const bad of ['2.34.9', '1.99.0', '0.1', '']) assert.ok(!isNewEnough(bad), bad)
  })

  it('the version of tart decides whether the host can run anything, and what to do about it', async () => {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-tart-probe-'))
    await fs.writeFile(path.join(folder, 'tart'), '#!/bin/sh\necho 2.40.1\n', { mode: 0o755 })
    const ask = async (script: string) => {
      const program = path.join(folder, `tart-${crypto.randomUUID()}`)
      await fs.writeFile(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
      return probeTart(program, alone)
    }
    const good = { ok: true, version: 'tart 2.40.1', architectures: ['arm64'], maxMacosVms: 2 }
    assert.deepEqual(await ask('echo 2.40.1'), good)
    const lost = { left: async () => 0, refusal: async () => 'restart this Mac' }
    const { maxMacosVms, noMacos, ...rest } = await probeTart(path.join(folder, 'tart'), lost)
    assert.deepEqual([rest.ok, maxMacosVms, noMacos], [true, 0, { arm64: 'restart this Mac' }])
    const old = await ask('echo 2.4.3')
    assert.deepEqual([old.ok, old.architectures], [false, []])
    assert.match(
      old.problem ?? '',
      /tart 2\.4\.3 is too old, 2\.35 is needed: run 'brew uninstall tart && brew install/,
    )
    for (const probe of [await ask('exit 1'), await probeTart('no-such-tart', alone)])
      assert.match(probe.problem ?? '', /tart is not on this host, or not in PATH: run 'brew install/)
    await fs.rm(folder, { recursive: true })
  })
})

// The probe runs a program for its version only when its file has changed.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { probeQemu } from './probe.ts'

describe('probe of QEMU', () => {
  it('the probe of QEMU runs each program once, and again after an update', async () => {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-probe-'))
    const runs = path.join(folder, 'runs')
    const install = async (version: string) => {
      for (const name of ['qemu-img', 'qemu-system-x86_64']) {
        const file = path.join(folder, name)
        await fs.writeFile(`${file}.new`, `#!/bin/sh\necho ${name} >> ${runs}\necho emulator version ${version}\n`)
        await fs.chmod(`${file}.new`, 0o755)
        await fs.rename(`${file}.new`, file)
      }
    }
    const ask = (problem?: string) => probeQemu({ desired: ['amd64'], network: 'sealed', problem, searchPath: folder })
    const count = async () => (await fs.readFile(runs, 'utf8')).trim().split('\n').length
    assert.match((await ask()).problem ?? '', /apt-get install/)
    await install('7.2.1')
    for (let time = 0; time < 3; time++) assert.match((await ask()).version, /^QEMU 7\.2\.1 \(\w+, sealed network\)$/)
    assert.equal(await count(), 2)
    await install('8.0')
    assert.match((await ask()).version, /^QEMU 8\.0 /)
    assert.equal(await count(), 4)
    const { ok, problem, architectures } = await ask('not sealed')
    assert.deepEqual({ ok, problem, architectures }, { ok: false, problem: 'not sealed', architectures: [] })
    await fs.rm(folder, { recursive: true })
  })
})

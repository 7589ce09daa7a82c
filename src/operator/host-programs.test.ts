// The programs that a host needs; on macOS only those that exist there.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { hostPrograms, hostProgramsOn } from './host-programs.ts'

const names = (platform: NodeJS.Platform) => hostProgramsOn(platform).map(({ program }) => program)

describe('host programs', () => {
  it('host programs are those of QEMU on macOS; on Linux also those that isolate guests and build images', () => {
    assert.deepEqual(names('darwin'), ['qemu-system-x86_64', 'qemu-system-aarch64', 'qemu-img', 'ssh'])
    for (const program of ['slirp4netns', 'unshare', 'ip', 'mke2fs', 'xz', ...names('darwin')])
      assert.ok(names('linux').includes(program), program)
    const packages = hostProgramsOn('linux').map(({ name }) => name)
    // Images of tart and uploaded arm64 disks boot by UEFI.
    for (const name of ['ovmf', 'qemu-efi-aarch64']) assert.ok(packages.includes(name), name)
    assert.deepEqual(hostPrograms, hostProgramsOn(process.platform))
  })

  it('npm start --help installs no programs and builds no image', () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-first-vm-'))
    try {
      const script = path.resolve(import.meta.dirname, '../../scripts/first-vm.ts')
      for (const word of ['--help', '-h']) {
        const data = path.join(folder, 'data')
        const { status, stderr } = spawnSync(process.execPath, [script, word, '--data', data], {
          encoding: 'utf8',
          timeout: 20_000,
        })
        assert.deepEqual([status, stderr, fs.existsSync(data)], [0, '', false], word)
      }
    } finally {
      fs.rmSync(folder, { recursive: true })
    }
  })
})

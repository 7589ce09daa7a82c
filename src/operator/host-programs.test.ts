// What a host is asked for: on macOS nothing that is not there to be had.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hostPrograms, hostProgramsOn } from './host-programs.ts'

const names = (platform: NodeJS.Platform) => hostProgramsOn(platform).map(({ program }) => program)

describe('host programs', () => {
  it('host programs are those of QEMU on macOS, and what seals guests and builds images on Linux, too', () => {
    assert.deepEqual(names('darwin'), ['qemu-system-x86_64', 'qemu-system-aarch64', 'qemu-img', 'ssh'])
    for (const program of ['slirp4netns', 'unshare', 'ip', 'mke2fs', 'xz', ...names('darwin')])
      assert.ok(names('linux').includes(program), program)
    assert.deepEqual(hostPrograms, hostProgramsOn(process.platform))
  })
})

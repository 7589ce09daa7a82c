// Leftovers in the temporary folder: only unused folders of this user without a VM are removed.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { makeRuntime } from './control/run.ts'
import { sweepRuntimes } from './sweep.ts'

describe('sweep of sockets', () => {
  it('the sweep of sockets removes those of VMs that are no more, and leaves all others', async () => {
    const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-sweep-'))
    const make = async (name: string, owner: string): Promise<string> => {
      const folder = path.join(root, name)
      await makeRuntime(folder, owner)
      return folder
    }
    const gone = path.join(root, 'no-such-vm')
    const orphan = await make('svc3-vm-orphan', gone)
    await make('svc3-vm-kept', root)
    await make('something-else', gone)
    const named = await make('svc3-vm-named', gone)
    const heard = await make('svc3-vm-heard', gone)
    await fs.chmod(await make('svc3-vm-open-to-others', gone), 0o755)
    await fs.symlink(root, path.join(root, 'svc3-vm-link'))
    await fs.mkdir(path.join(root, 'svc3-vm-nameless'), { mode: 0o700 })
    await fs.mkdir(path.join(root, 'svc3-try-abc'), { mode: 0o700 })
    const user = spawn('/bin/sh', ['-c', 'read line; :', path.join(named, 'life')], { stdio: 'pipe' })
    const server = net.createServer().listen(path.join(heard, 'qmp'))
    try {
      const before = await fs.readdir(root)
      assert.deepEqual(await sweepRuntimes(root), [orphan])
      assert.deepEqual(
        await fs.readdir(root),
        before.filter((name) => name !== 'svc3-vm-orphan'),
      )
      const later = await sweepRuntimes(root, Date.now() + 2 * 3_600_000)
      assert.deepEqual(later.map((folder) => path.basename(folder)).sort(), ['svc3-try-abc', 'svc3-vm-nameless'])
    } finally {
      user.kill('SIGKILL')
      await new Promise((resolve) => server.close(resolve))
      await fs.rm(root, { recursive: true })
    }
  })
})

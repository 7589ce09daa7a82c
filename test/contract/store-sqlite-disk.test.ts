// A full disk: a clear error, reads continue, and everything works again once there is space. A small tmpfs stands in.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

const filler = path.resolve(import.meta.dirname, './store-filler.ts')

test('SQLite on a full disk refuses writes clearly, loses nothing, and heals by itself', async (t) => {
  const mount = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-full-'))
  t.after(() => fs.rmSync(mount, { recursive: true, force: true }))
  // The mount lives in the child's namespace and goes with it. Without root, a user namespace gives the right to mount.
  const namespaces = process.getuid?.() === 0 ? ['-m'] : ['-r', '-m']
  const { stdout } = await promisify(execFile)('unshare', [...namespaces, process.execPath, filler, mount])
  assert.match(stdout, /^\d{3,} writes kept$/m)
})

// Data folders that no server starts on.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { it } from 'node:test'
import { assertUsersMoved } from './data-folder.ts'

it('a folder whose users are not in the store is refused with what to do, and one whose file is not used is not', (test) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-folder-'))
  test.after(() => fs.rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'users.json')
  const refusal = { fault: 'OtherFormat', message: /users\.json has the users .*start svc3 3\.0\.0-alpha\.31 on/ }
  assertUsersMoved(folder, { isEmpty: true })
  fs.writeFileSync(file, '{"users":[]}')
  assert.throws(() => assertUsersMoved(folder, { isEmpty: true }), refusal)
  assertUsersMoved(folder, { isEmpty: false })
  fs.renameSync(file, `${file}.importing`)
  assert.throws(() => assertUsersMoved(folder, { isEmpty: false }), refusal)
  fs.renameSync(`${file}.importing`, `${file}.imported`)
  assertUsersMoved(folder, { isEmpty: true })
})

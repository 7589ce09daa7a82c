// Messages of svc3 server restore about backups that were not restored.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, it } from 'node:test'
import { run } from '../../test/support/rigs/cli-host.ts'
import { TarWriter } from '../platform/tar.ts'

let folder: string
before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-restore-'))
})
after(() => fs.rm(folder, { recursive: true }))

async function backup(): Promise<string> {
  const file = path.join(folder, 'all.tar')
  const handle = await fs.open(file, 'w')
  const tar = new TarWriter(handle)
  const head = {
    format: 2,
    version: '3',
    createdAt: '2026-11-18T00:00:00Z',
    cluster: 'c',
    keyIds: [],
    hasImages: false,
  }
  await tar.add('backup.json', Buffer.from(JSON.stringify({ ...head, revision: '40', records: 1 })))
  await tar.add('records/000000.ndjson', Buffer.from('{"key":"/a/1","value":"kept"}\n'))
  await tar.add('folder/users.json', Buffer.from('{}\n'))
  await tar.add('checksum.json', Buffer.from(JSON.stringify({ sha256: tar.sha256() })))
  await tar.end()
  await handle.close()
  return file
}

it('a restore that did not begin says why; one that began says to run the same command again', async () => {
  const file = await backup()
  const restore = (from: string, name: string) => run(['server', 'restore', from, '--data', path.join(folder, name)])
  const begun = path.join(folder, 'begun')
  await fs.mkdir(path.join(begun, 'users.json'), { recursive: true })
  const cutOff = await restore(file, 'begun')
  assert.equal(cutOff.exitCode, 1)
  assert.match(cutOff.stderr, /\nsvc3: The restore did not finish\. .* run the same command again\n$/)
  await fs.rmdir(path.join(begun, 'users.json'))
  assert.match((await restore(file, 'begun')).stdout, /^Restored 1 record as of revision 40,/)
  const again = await restore(file, 'begun')
  assert.equal(again.exitCode, 1)
  assert.match(again.stderr, /it already has records\. Choose an empty folder.*\nsvc3: Nothing was restored\n$/)
  const missing = path.join(folder, 'none.tar')
  const lines = `svc3: File ${missing} not found\nsvc3: Nothing was restored\n`
  assert.equal((await restore(missing, 'never')).stderr, lines)
})

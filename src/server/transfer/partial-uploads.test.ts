// Uploads that are begun at the same time, and a disk that fills up while they arrive.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, it, type TestContext } from 'node:test'
import { startService } from '../../../test/support/rigs/service.ts'
import { DiskFullError } from '../../images/content/temporary-files.ts'
import { systemClock } from '../../platform/clock.ts'
import { PartialUploads } from './partial-uploads.ts'

let folder: string
let uploads: PartialUploads
beforeEach(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-partial-'))
  uploads = new PartialUploads(folder, systemClock)
})
afterEach(() => fs.rm(folder, { recursive: true, force: true }))

const upload = (index: number, size: number) => ({
  id: index.toString(16).padStart(32, '0'),
  caller: 'user ada',
  namespace: 'svc-default',
  kind: 'image' as const,
  name: `u${index}`,
  size,
  key: `${index}`,
})

/** The free space of the disk, in MiB, of 100 GiB. */
async function mockDisk(t: TestContext, freeMiB: () => number): Promise<void> {
  const real = await fs.statfs(folder)
  t.mock.method(fs, 'statfs', async () => ({ ...real, bsize: 2 ** 20, blocks: 102_400, bavail: freeMiB() }))
}

describe('resumable uploads', () => {
  it('a caller who begins many at once has no more than 20', async () => {
    await Promise.all(Array.from({ length: 60 }, (_, index) => uploads.begin(upload(index, 1_000))))
    assert.equal((await uploads.list()).length, 20)
  })

  it('a caller who begins large ones at once gets no more of the disk than one after another', async (t) => {
    await mockDisk(t, () => 11 * 1_024)
    // Ten GiB of the disk are free for uploads, of which three quarters may be of one caller.
    const begun = await Promise.allSettled([1, 2, 3, 4, 5].map((index) => uploads.begin(upload(index, 3 * 2 ** 30))))
    assert.equal(begun.filter(({ status }) => status === 'fulfilled').length, 2)
  })

  it('an upload ends when only the space for records is left, and keeps what arrived', async (t) => {
    let freeMiB = 2_048
    await mockDisk(t, () => freeMiB)
    const begun = { ...upload(1, 2 ** 30), updatedAt: '' }
    await uploads.begin(begun)
    const pieces = async function* () {
      for (let count = 0; count < 64; count++) {
        yield Buffer.alloc(2 ** 20, 1)
        if (count === 20) freeMiB = 1_000
      }
    }
    await assert.rejects(uploads.append(begun, 0, { pieces: pieces(), cancel: () => undefined }), DiskFullError)
    const received = await uploads.offset(begun.id)
    assert.ok(received > 20 * 2 ** 20 && received < 40 * 2 ** 20, `${received}`)
  })
})

describe('an upload without a length', () => {
  it('ends when only the space for records is left, and leaves nothing', async (t) => {
    await using service = await startService()
    await service.listen()
    await mockDisk(t, () => 1_000)
    const body = new Blob([Buffer.alloc(1_000, 1)]).stream()
    const url = `${service.apiUrl}/api/v1/namespaces/svc-default/upload/image?name=full`
    const headers = { authorization: `Bearer ${service.adminToken}` }
    const response = await fetch(url, { method: 'POST', headers, body, duplex: 'half' } as RequestInit)
    assert.equal(response.status, 413, await response.text())
    assert.deepEqual(await fs.readdir(service.services.uploads.folder), [])
  })
})

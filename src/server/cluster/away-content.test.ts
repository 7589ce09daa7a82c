// If several servers share content, a record is written before its content is held. The record is removed again if the
// content is on a server that does not respond, or is lost.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, beforeEach, describe, it } from 'node:test'
import { type Answer, startService, type TestService } from '../../../test/support/rigs/service.ts'
import { randomDisc } from '../../../test/support/tools/disc.ts'
import { chunksOf } from '../../images/format/manifest.ts'
import { readManifest } from '../../images/pack/stored-manifests.ts'
import { silentLog } from '../../platform/log.ts'
import type { KnownServerRecord } from '../../store/records/server-records.ts'
import type { ServerCalls } from './server-calls.ts'
import { shareContent } from './shared-content.ts'

const base = '/api/v1/namespaces/svc-default'
const gone: KnownServerRecord = { id: 'one', internalUrl: 'https://one:8443' }
const nobodyToCall = {} as ServerCalls

let service: TestService
let away: readonly KnownServerRecord[] = []
before(async () => {
  service = await startService({
    content: (own) => shareContent({ own, others: () => [], away: () => away, calls: nobodyToCall, log: silentLog }),
  })
})
after(() => service[Symbol.asyncDispose]())
beforeEach(() => {
  away = []
})

interface Uploaded {
  readonly digest: string
  /** Removes content from the disk of this server. */
  lose(): Promise<void>
  /** As if a server with the content had come back. */
  restore(): Promise<void>
}

async function upload(name: string, kind: 'image' | 'iso' = 'image'): Promise<Uploaded> {
  const { ownContent } = service.services
  const { status, text, body } = await service.call('POST', `${base}/upload/${kind}?name=${name}`, {
    body: kind === 'iso' ? randomDisc(40_000) : randomBytes(4_096),
    headers: { 'content-type': 'application/octet-stream' },
  })
  assert.equal(status, 201, text)
  const digest: string = body.checksum
  const [chunk] = chunksOf(await readManifest(ownContent, digest))
  assert.ok(chunk)
  const bytes = await ownContent.read(chunk.digest, chunk.storedBytes)
  return {
    digest,
    lose: async () => assert.ok(await ownContent.deleteUnused(chunk.digest, Number.POSITIVE_INFINITY)),
    restore: async () => void (await ownContent.put(bytes)),
  }
}

function isAway({ status, headers, body, text }: Answer): void {
  assert.deepEqual([status, headers['retry-after']], [503, '5'], text)
  assert.match(body.message, /not on any server that answers: the server one:8443 may have it/)
}

describe('a copy', () => {
  for (const [kind, noun] of [
    ['image', 'images'],
    ['iso', 'isos'],
  ] as const)
    it(`a copy of an ${kind} whose content is unavailable is removed again`, async () => {
      const { digest, lose, restore } = await upload('original', kind)
      const copy = (request: string): Promise<Answer> =>
        service.call('POST', `${base}/${noun}/original/copy`, {
          body: { name: 'copied' },
          headers: { 'idempotency-key': `${kind}-${request}` },
        })
      const isThere = () => service.services.collections[noun].get('', 'copied') !== undefined

      await lose()
      away = [gone]
      isAway(await copy('first'))
      assert.ok(!isThere(), 'while its server is away')

      away = []
      const lost = await copy('another')
      assert.deepEqual([lost.status, lost.body.hint], [409, 'Upload it again'], lost.text)
      assert.ok(!isThere(), 'when it is lost')

      await restore()
      // A later try succeeds.
      const { status, body, text } = await copy('first')
      assert.deepEqual([status, body.checksum], [202, digest], text)
      assert.ok(isThere())
    })
})

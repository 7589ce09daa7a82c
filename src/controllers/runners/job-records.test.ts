// Records of jobs, of which a source may report any number.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { JobNews } from '../../rules/runners/jobs.ts'
import { openMemory } from '../../store/memory.ts'
import { openCollections } from '../../store/records/collections.ts'
import type { RunnerPoolRecord } from '../../store/records/runner-records.ts'
import { storeNews } from './job-records.ts'

const now = '2026-11-01T00:00:00Z'
const pool = { namespace: 'svc-a', name: 'ios', uid: '0123456789' } as RunnerPoolRecord
const news = (type: JobNews['type'], jobId: string): JobNews => ({
  ...{ type, jobId, requestId: 0, name: jobId, repository: 'a/b' },
  ...{ workflow: '', runId: 0, event: 'push' },
})

it('news of more jobs than a pool may have are skipped, and those of known ones are stored', async (t) => {
  const store = openMemory()
  const collections = await openCollections(store)
  t.after(async () => {
    await collections[Symbol.asyncDispose]()
    await store.close()
  })
  const { runnerJobs } = collections
  const jobs = (count: number) => Array.from({ length: count }, (_, index) => news('assigned', `j${index}`))
  await storeNews(collections, { ...pool, uid: 'another-pool' }, jobs(5), now, 4)
  await storeNews(collections, pool, jobs(3), now, 4)
  await storeNews(collections, pool, [...jobs(10), news('started', 'j1')], now, 4)
  const own = runnerJobs.list('svc-a').filter(({ value }) => value.poolUid === pool.uid)
  assert.deepEqual(
    own.map(({ value: { id, state } }) => `${id} ${state}`),
    ['j0 Waiting', 'j1 Running', 'j2 Waiting', 'j3 Waiting'],
  )
})

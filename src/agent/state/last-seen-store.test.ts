// Data that went back are noticed however far they have grown since, by the eras of their servers.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { silentLog } from '../../platform/log.ts'
import { openStoreMemory, type StoreMemory } from './last-seen-store.ts'

const first = { uid: 'first', since: '0' }
const open = (): Promise<StoreMemory> => openStoreMemory('unused', 'memory', silentLog)
const hear = (memory: StoreMemory, revision: string, eras: readonly { uid: string; since: string }[]) =>
  memory.hear({ uid: 'data', revision, eras }, 'node', false)

describe('what a node remembers of the data of its server', () => {
  it('trusts a server that was started again', async () => {
    const memory = await open()
    assert.ok(hear(memory, '10', [first]).isNewest)
    memory.heard({ store: 'data', node: 'node', revision: '20' })
    const next = { uid: 'second', since: '21' }
    assert.deepEqual(pick(hear(memory, '30', [first, next])), [true, false])
    assert.deepEqual(pick(hear(memory, '40', [first, next, { uid: 'third', since: '35' }])), [true, false])
  })

  it('notices a backup of the same era, though it has grown past what was seen', async () => {
    const memory = await open()
    hear(memory, '10', [first])
    memory.heard({ store: 'data', node: 'node', revision: '20' })
    assert.deepEqual(pick(hear(memory, '99', [first, { uid: 'second', since: '15' }])), [false, true])
  })

  it('notices a backup of an earlier era', async () => {
    const memory = await open()
    hear(memory, '30', [first, { uid: 'second', since: '21' }])
    assert.deepEqual(pick(hear(memory, '99', [first, { uid: 'third', since: '12' }])), [false, true])
  })

  it('follows data that went back from then on', async () => {
    const memory = await open()
    hear(memory, '50', [first])
    const restored = [first, { uid: 'second', since: '15' }]
    assert.deepEqual(pick(hear(memory, '60', restored)), [false, true])
    assert.deepEqual(pick(hear(memory, '70', [...restored, { uid: 'third', since: '65' }])), [true, false])
  })

  it('remembers over a restart', async () => {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-memory-'))
    const before = await openStoreMemory(folder, 'synced', silentLog)
    hear(before, '20', [first])
    await before.stop()
    const after = await openStoreMemory(folder, 'synced', silentLog)
    assert.deepEqual(pick(hear(after, '99', [first, { uid: 'second', since: '15' }])), [false, true])
    await after.stop()
    await fs.rm(folder, { recursive: true })
  })
})

const pick = ({ isNewest, isAnew }: { isNewest: boolean; isAnew: boolean }) => [isNewest, isAnew]

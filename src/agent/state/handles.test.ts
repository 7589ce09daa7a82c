// The agent's records of VMs, in a format that other versions can read.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { it } from 'node:test'
import { desiredVm } from '../../../test/support/rigs/desired-vm.ts'
import { openHandles, storedOf } from './handles.ts'

it("an agent's record of a VM has its desired state as `wish`, without secrets, and is read again", async (test) => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-handles-'))
  test.after(() => fs.rm(folder, { recursive: true }))
  const handles = openHandles(folder, 'qemu', 'synced')
  const handle = handles.handleFor('a')
  const desired = storedOf(desiredVm('a'))
  const record = { version: 1, handle, desired, fulfilled: 1, diskGeneration: 1 } as const
  await handles.write(record)
  const text = await fs.readFile(path.join(handle.folder, 'svc3.json'), 'utf8')
  assert.deepEqual(JSON.parse(text).wish, desired)
  assert.ok(!/canary|"desired"/.test(text))
  assert.deepEqual(await handles.list(), [{ uid: 'a', record }])
})

it("an agent's records of simulated VMs are in one file", async (test) => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-handles-'))
  test.after(() => fs.rm(folder, { recursive: true }))
  const handles = openHandles(folder, 'simulated', 'written')
  const recordOf = (uid: string) =>
    ({
      version: 1,
      handle: handles.handleFor(uid),
      desired: storedOf(desiredVm(uid)),
      fulfilled: 1,
      diskGeneration: 1,
    }) as const
  await handles.write(recordOf('a'))
  await handles.write(recordOf('gone'))
  await handles.remove('gone')
  const again = openHandles(folder, 'simulated', 'written')
  const found = [{ uid: 'a', record: recordOf('a') }]
  for (const each of [handles, again]) assert.deepEqual(await each.list(), found)
  const files = await fs.readdir(path.join(folder, 'vms'), { recursive: true })
  assert.deepEqual(files.toSorted(), ['svc3.jsonl'])
  handles.close()
})

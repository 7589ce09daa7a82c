// A capture on a busy host waits for QEMU's late answers.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { it } from 'node:test'
import { specify } from '../../../../test/contract/driver-vm.ts'
import type { Qmp } from '../control/qmp.ts'
import { firstNode } from '../disks/chain.ts'
import { createDisk } from '../disks/disks.ts'
import { takeCapture } from './capture.ts'

const lateMs = 20_000
const usualMs = 10_000

/** A stand-in for the QEMU of a suspended VM that answers after 20 s, by a simulated clock. */
function lateQemu(): { readonly qmp: Qmp; readonly asked: string[] } {
  const asked: string[] = []
  let node = firstNode
  const answers: Readonly<Record<string, (args: Readonly<Record<string, unknown>>) => unknown>> = {
    'query-status': () => ({ status: 'paused' }),
    'query-block': () => [{ inserted: { 'node-name': node } }],
    'query-migrate': () => ({}),
    'blockdev-snapshot': ({ overlay }) => {
      node = String(overlay)
    },
  }
  const execute: Qmp['execute'] = async (command, args = {}, limitMs = usualMs) => {
    asked.push(command)
    if (limitMs < lateMs) throw new Error(`QEMU did not answer ${command} within ${limitMs} ms`)
    return answers[command]?.(args)
  }
  const { promise: closed } = Promise.withResolvers<void>()
  return {
    qmp: { execute, closed, waitFor: async () => false, close: () => undefined },
    asked,
  }
}

it('a capture waits for a QEMU that answers after 20 s, and the disk gets a new layer', async () => {
  const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-capture-'))
  try {
    const disk = path.join(root, 'disk.raw')
    await fs.writeFile(disk, Buffer.alloc(65_536))
    const base = { name: 'base', digest: 'sha256:first', disk, format: 'raw', virtualSizeBytes: 65_536 } as const
    const image = async () => ({ ...base, boot: { kind: 'firmware' } as const })
    const folder = path.join(root, 'vm')
    await createDisk(folder, await specify({ architecture: 'amd64', image }, root))
    const { qmp, asked } = lateQemu()
    const { layers } = await takeCapture(folder, { qmp, runtime: root }, { id: 'one' }, AbortSignal.timeout(60_000))
    assert.equal(layers.length, 1)
    for (const command of ['blockdev-add', 'stop', 'blockdev-snapshot', 'query-block'])
      assert.ok(asked.includes(command), `${command} is not among ${asked}`)
  } finally {
    await fs.rm(root, { recursive: true, force: true })
  }
})

// Saves the memory of a paused VM to a file, and loads it into a new QEMU. QEMU writes to a socket of this process instead
// of to a path; pages of zeros take a few bytes each.
import { createWriteStream } from 'node:fs'
import fs from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { MemoryState, VmSpec } from '../../driver.ts'
import { statusOf } from '../control/control.ts'
import type { Qmp } from '../control/qmp.ts'

/** Faster than any disk, because the VM stands still. QEMU's default is 128 MiB/s. */
const bytesPerSecond = 2 ** 40
const pollMs = 5
const over = new Set(['completed', 'failed', 'cancelled'])

/** Settles when the memory is in the file, which is not synced yet. The VM must be paused. */
export async function saveMemory(qmp: Qmp, runtime: string, file: string, signal: AbortSignal): Promise<void> {
  const socketPath = path.join(runtime, 'memory')
  await fs.rm(socketPath, { force: true })
  const server = net.createServer()
  const received = receive(server, file)
  received.catch(() => undefined)
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(socketPath, resolve)
    })
    await qmp.execute('migrate-set-parameters', { 'max-bandwidth': bytesPerSecond })
    await qmp.execute('migrate', { uri: `unix:${socketPath}` })
    const problem = received.then(
      () => new Promise<never>(() => undefined),
      (error: Error) => error,
    )
    const end = await Promise.race([untilOver(qmp, signal), problem])
    if (end instanceof Error) throw end
    if (end.status !== 'completed') {
      // If writing the file failed, that is the cause, and QEMU reports only a consequence.
      const own = await Promise.race([problem, sleep(50, undefined)])
      throw own ?? new Error(`QEMU could not save the memory: ${end['error-desc'] ?? end.status}`)
    }
    await received
  } catch (error) {
    await fs.rm(file, { force: true })
    throw error
  } finally {
    server.close()
    await fs.rm(socketPath, { force: true })
  }
}

async function receive(server: net.Server, file: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<net.Socket>()
  server.once('connection', resolve)
  await pipeline(await promise, createWriteStream(file, { flags: 'wx', mode: 0o600, highWaterMark: 4 * 1_048_576 }))
}

interface Migration {
  readonly status?: string
  readonly 'error-desc'?: string
}

async function untilOver(qmp: Qmp, signal?: AbortSignal): Promise<Migration> {
  for (;;) {
    signal?.throwIfAborted()
    const migration = (await qmp.execute('query-migrate')) as Migration
    if (migration.status === undefined || over.has(migration.status)) return migration
    await sleep(pollMs)
  }
}

/** Cancels saving. Afterwards QEMU may continue. */
export async function endSaving(qmp: Qmp): Promise<void> {
  await qmp.execute('migrate_cancel').catch(() => undefined)
  await untilOver(qmp, AbortSignal.timeout(10_000))
}

/**
 * Settles when the new QEMU has loaded the memory and is paused. If the memory does not fit, QEMU exits and its log says
 * why.
 */
export async function untilLoaded(qmp: Qmp, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted()
    const status = await statusOf(qmp)
    if (status === 'paused') return
    if (status !== 'inmigrate') throw new Error(`QEMU says ${status} instead of resuming from memory`)
    await sleep(pollMs)
  }
}

/** Why the memory of such a VM cannot be saved; undefined if it can. */
export function whyNoMemory(
  shape: MemoryState['description'] | undefined,
  vm: Pick<VmSpec, 'iso'> = {},
): string | undefined {
  if (!shape) return 'the VM was started by an earlier version of svc3; restart it first'
  if (vm.iso !== undefined) return 'an ISO is in its drive'
  if (/pflash/.test(String(shape.machine))) return 'it boots by UEFI, whose variables are a file of their own'
  if (shape.accelerator === 'hvf') return 'macOS does not let QEMU save it'
  return undefined
}

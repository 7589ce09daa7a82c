// Images that VMs run on while they are fetched: the disk on a socket, with the memory if it was fetched first, or the complete copy
// for a VM that needs memory that is fetched last.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { nbdOpening, nbdRead } from '../../../test/support/tools/nbd-client.ts'
import type { BaseImage } from '../../drivers/driver.ts'
import { silentLog } from '../../platform/log.ts'
import type { ArrivalUser } from './arrival.ts'
import { Arrivals } from './arrivals.ts'
import type { OpenedDisk } from './content.ts'
import type { ImageProvider } from './single-flight.ts'

const signal = new AbortController().signal

async function arrange(t: { after(work: () => Promise<void>): void }) {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-arrivals-'))
  const file = (name: string): string => path.join(folder, name)
  for (const name of ['disk', 'kernel', 'memory']) await fs.writeFile(file(name), name)
  const image: BaseImage = {
    ...{ name: 'x', digest: 'sha256:x', disk: file('disk'), format: 'raw', virtualSizeBytes: 4 },
    boot: { kind: 'kernel', kernel: file('kernel'), commandLine: '' },
  }
  const whole: BaseImage = { ...image, memory: { file: file('memory'), description: {} } }
  const fetched = Promise.withResolvers<BaseImage>()
  const came = Promise.withResolvers<void>()
  const asked: boolean[] = []
  const arrivals = new Arrivals({
    folder,
    socketFolder: file('s'),
    figures: { reads: 0, readWaitMs: 0 },
    log: silentLog,
    async fetch(_, { memoryFirst = false, opened, signal: cut }) {
      cut.addEventListener('abort', () => fetched.reject(cut.reason))
      asked.push(memoryFirst)
      // A fill that has no content yet.
      const ready = (): Promise<boolean> => came.promise.then(() => false)
      const progress = { bytes: 1, of: 4 }
      const fill = { expectReaders() {}, forgetReaders() {}, has: () => false, ready, progress } as never
      const lacksMemory = !memoryFirst
      const disk: OpenedDisk = { fill, file: file('disk'), lacksMemory, image: memoryFirst ? whole : image }
      await opened?.(disk)
      return fetched.promise
    },
  })
  t.after(async () => {
    await arrivals.stop()
    await fs.rm(folder, { recursive: true })
  })
  const provider = { key: 'sha256:x', title: 'image x', find: async () => undefined } as Partial<ImageProvider>
  const told: string[] = []
  const begin = (uid: string, isCold: boolean): Promise<BaseImage> => {
    const arrived = async (): Promise<void> => void told.push(uid)
    const user: ArrivalUser = { uid, changed: () => undefined, arrived }
    return arrivals.begin(provider as ImageProvider, user, { signal, isCold })
  }
  return { arrivals, begin, asked, told, whole, fetched, came, file }
}

const isOver = (work: Promise<void>): Promise<boolean> =>
  Promise.race([work.then(() => true), new Promise<boolean>((resolve) => setTimeout(resolve, 20, false))])

describe('an arriving image', () => {
  it('an arriving image has its memory first for a VM that resumes from it', async (t) => {
    const { begin, asked, file } = await arrange(t)
    const image = await begin('warm', false)
    assert.deepEqual(asked, [true])
    assert.ok(image.socket)
    assert.equal(await fs.readFile(image.memory?.file ?? '', 'utf8'), 'memory')
    // The memory is linked, because its folder is temporary.
    assert.notEqual(image.memory?.file, file('memory'))
  })

  it('an arriving image is idle while no read waits for it', async (t) => {
    const { arrivals, begin, came } = await arrange(t)
    const { socket = '' } = await begin('cold', true)
    await arrivals.idle('cold', signal)
    await arrivals.idle('somebody else', signal)
    const reader = net.connect(socket)
    t.after(async () => void reader.destroy())
    reader.write(Buffer.concat([nbdOpening(), nbdRead(1, 4)]))
    await eventually(async () => assert.equal(await isOver(arrivals.idle('cold', signal)), false))
    const given = AbortSignal.abort(new Error('given up'))
    await assert.rejects(arrivals.idle('cold', given), /given up/)
    const quiet = arrivals.idle('cold', signal)
    came.resolve()
    await quiet
  })

  it('an arriving image is fetched once for two VMs, and both are served until they leave', async (t) => {
    const { arrivals, begin, asked, fetched } = await arrange(t)
    await Promise.all([begin('one', true), begin('two', true)])
    assert.deepEqual(asked, [false])
    await arrivals.leave('one')
    assert.ok(arrivals.of('two'))
    await arrivals.leave('two')
    assert.deepEqual(arrivals.list(), [])
    await assert.rejects(fetched.promise, /no longer used/)
  })

  it('an arriving image on which a cold VM runs is awaited by a VM that needs its memory', async (t) => {
    const { arrivals, begin, asked, told, whole, fetched } = await arrange(t)
    const cold = await begin('cold', true)
    assert.deepEqual([asked, cold.memory], [[false], undefined])
    const warm = begin('warm', false)
    assert.equal(await Promise.race([warm, new Promise((resolve) => setTimeout(resolve, 50, 'waits'))]), 'waits')
    await arrivals.leave('cold')
    assert.equal(arrivals.list().length, 1, 'it goes on for the other')
    fetched.resolve(whole)
    assert.deepEqual(await warm, whole)
    assert.deepEqual([told, arrivals.list()], [[], []])
  })
})

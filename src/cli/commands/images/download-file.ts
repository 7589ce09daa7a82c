// Saves what the service sends. What has come is kept in FILE.<content>.part, so that the same command goes on where it
// was cut off, and only with the same content; the file itself is there when all of it is.
import { ApiError } from '../../../api/errors.ts'
import type { Image } from '../../../api/images.ts'
import type { Client } from '../../../client/client.ts'
import { backOff, defaultRetry, wait } from '../../../client/retry.ts'
import { ConnectionError, type TransportResponse } from '../../../client/transport.ts'
import { syncFolder } from '../../../platform/files.ts'
import type { Context } from '../../context.ts'
import { type Meter, startMeter } from '../../transfer.ts'
import { Failure, Interrupted } from '../../usage.ts'
import type { ImageKind } from './kind.ts'

export interface DownloadChoice {
  readonly name: string
  readonly file: string | undefined
  readonly force: boolean
}

/** Tries in a row that bring nothing. */
const mostTries = 6

export async function downloadFile(context: Context, kind: ImageKind, choice: DownloadChoice): Promise<number> {
  const { host, signal } = context
  const fs = process.getBuiltinModule('node:fs/promises')
  const path = process.getBuiltinModule('node:path')
  const { name } = choice
  const file = path.resolve(host.workingDir, choice.file ?? name)
  if (!choice.force && (await fs.stat(file).catch(() => undefined)))
    throw new Failure(`${file} is there already`, 'give another one with -o, or replace it with --force')
  const { client, namespace } = await context.connect()
  const image = await kind.get(client, { namespace, name, signal })
  const part = `${file}.${(image.checksum ?? '').replace('sha256:', '').slice(0, 12)}.part`
  await using handle = await openPart(part)
  const from = { client, kind, namespace, image, signal }
  let meter: Meter | undefined
  try {
    let tries = 0
    for (let isDone = false; !isDone; ) {
      const bytesBefore = (await handle.stat()).size
      try {
        const answer = await ask(from, bytesBefore)
        const { start, totalBytes } = placeOf(answer, bytesBefore)
        meter ??= startMeter(context, `${kind.word} ${name}`, totalBytes, start)
        await save(answer, handle, start, totalBytes, meter)
        isDone = true
      } catch (error) {
        tries = (await handle.stat()).size > bytesBefore ? 1 : tries + 1
        if (signal.aborted || tries >= mostTries || !(await isPassing(error, handle))) throw error
        await wait(backOff(tries, { ...defaultRetry, firstDelayMs: 300 }, Math.random), signal)
      }
    }
    await handle.sync()
    await fs.rename(part, file)
    await syncFolder(path.dirname(file))
  } catch (error) {
    if ((await handle.stat()).size === 0) await fs.rm(part, { force: true })
    if (signal.aborted) throw new Interrupted('interrupted', 'the same command goes on from here')
    throw error
  } finally {
    meter?.end()
  }
  await context.done(`${kind.word === 'iso' ? 'ISO' : 'Image'} ${name} is saved as ${file}.`, image)
  return 0
}

interface From {
  readonly client: Client
  readonly kind: ImageKind
  readonly namespace: string
  readonly image: Image
  readonly signal: AbortSignal
}

async function ask({ client, kind, namespace, image, signal }: From, bytes: number): Promise<TransportResponse> {
  const tag = `"${image.checksum}"`
  const answer = await client.open(kind.download, {
    params: { namespace, [kind.word]: image.name },
    // From the last byte that is there: so there always is one to ask for, also when all have come.
    ...(bytes > 0 && { headers: { range: `bytes=${bytes - 1}-`, 'if-range': tag } }),
    signal,
  })
  if (answer.header('etag') === tag) return answer
  throw new Failure(`${kind.word} "${image.name}" changed while it was downloaded`, 'download it again')
}

/** Where the answer begins, and how long the whole is. */
function placeOf(answer: TransportResponse, bytes: number): { start: number; totalBytes: number } {
  const [, first, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(answer.header('content-range') ?? '') ?? []
  if (answer.status === 206 && Number(first) === bytes - 1) return { start: bytes - 1, totalBytes: Number(total) }
  const length = answer.header('content-length')
  if (answer.status === 200 && length !== undefined) return { start: 0, totalBytes: Number(length) }
  throw new Failure('the service answered with another part than was asked for', 'remove the .part file and try again')
}

type Handle = Awaited<ReturnType<typeof import('node:fs/promises').open>>

async function openPart(part: string): Promise<Handle> {
  const { constants, promises } = process.getBuiltinModule('node:fs')
  try {
    return await promises.open(part, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  } catch (error) {
    throw new Failure(`cannot write ${part} (${(error as NodeJS.ErrnoException).code})`, 'choose another place with -o')
  }
}

/** Zeros are not written but left out; the size of the file always says how far it is. */
async function save(
  answer: TransportResponse,
  handle: Handle,
  start: number,
  totalBytes: number,
  meter: Meter,
): Promise<void> {
  let at = start
  await handle.truncate(start)
  try {
    for await (const piece of answer.body) {
      if (!isZero(piece))
        for (let done = 0; done < piece.length; )
          done += (await handle.write(piece, done, piece.length - done, at + done)).bytesWritten
      at += piece.length
      meter.at(at)
    }
  } finally {
    await handle.truncate(at)
  }
  if (at !== totalBytes)
    throw new ConnectionError('lost', '', `the download ended after ${at} of ${totalBytes} bytes`, 'try again')
}

const zeros = Buffer.alloc(65_536)
const isZero = (piece: Uint8Array): boolean =>
  piece.length <= zeros.length && zeros.subarray(0, piece.length).equals(piece)

/** A part that is longer than the whole is none. */
async function isPassing(error: unknown, handle: Handle): Promise<boolean> {
  if (error instanceof ApiError && error.reason === 'RangeNotSatisfiable') await handle.truncate(0)
  else if (error instanceof ApiError) return error.code === 503 || error.code === 429
  else return error instanceof ConnectionError && (error.fault === 'lost' || error.fault === 'refused')
  return true
}

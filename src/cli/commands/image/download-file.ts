// Downloads to a file. The data is stored in FILE.<checksum>.part, so that the same command resumes if the content is the
// same. FILE appears when the download is complete.

import crypto from 'node:crypto'
import { constants, promises } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { ApiError } from '../../../api/errors.ts'
import type { Image } from '../../../api/images/images.ts'
import type { Client } from '../../../client/client.ts'
import { ConnectionError, type TransportResponse } from '../../../client/transport.ts'
import { syncFolder } from '../../../platform/files.ts'
import { LockedError, withLockFile } from '../../../platform/lock-file.ts'
import { Backoff, isTransient, retryPolicies } from '../../../platform/retry.ts'
import type { Context } from '../../command.ts'
import { Failure, Interrupted } from '../../line/usage.ts'
import { startMeter, type TransferMeter } from '../../output/progress.ts'
import type { ImageKind } from './kind.ts'

interface DownloadChoice {
  readonly name: string
  readonly file: string | undefined
  readonly force: boolean
  /** For images; ISOs have one format. */
  readonly format?: string
}

/** The size of one request, whose digest is checked. The service stores disks in parts of this size. */
const partBytes = 16 * 2 ** 20

export async function downloadFile(context: Context, kind: ImageKind, choice: DownloadChoice): Promise<undefined> {
  const { host, signal } = context
  const { name, format = 'raw' } = choice
  const file = path.resolve(host.workingDir, choice.file ?? fileName(name, format))
  if (!choice.force && (await fs.stat(file).catch(() => undefined)))
    throw new Failure(`${file} already exists`, 'Choose another name with --file, or replace it with --force')
  const { client, namespace } = await context.connect()
  const image = (await client.call(kind.get, {
    params: { namespace, [kind.word]: name } as never,
    signal,
  })) as Image
  const suffix = format === 'raw' ? '' : `-${format}`
  const version = `${(image.checksum ?? '').replace('sha256:', '').slice(0, 12)}${suffix}`
  const from = { client, kind, namespace, image, signal, format, tag: `"${image.checksum}${suffix}"` }
  await fetchFile(context, from, file, version)
  await context.done(`${kind.label} ${name} saved as ${file}.`, image)
}

/** Resumes a partial download of the same version. */
export function fetchFile(context: Context, from: DownloadSource, file: string, version: string): Promise<void> {
  const part = `${file}.${version}.part`
  return withPartLock(part, file, () => fetchAll(context, from, part, file))
}

/** Locks the partial file: the slower of two processes would truncate what the other has completed. */
async function withPartLock(part: string, file: string, work: () => Promise<void>): Promise<void> {
  let hasLock = false
  try {
    await withLockFile(`${part}.lock`, () => {
      hasLock = true
      return work()
    })
  } catch (error) {
    if (hasLock) throw error
    // Continues without a lock if the file system has none, such as exFAT. `work` reports other errors of the folder.
    if (!(error instanceof LockedError)) return work()
    throw new Failure(
      `Process ${error.pid} is already downloading ${file}`,
      'Wait until it finishes, or choose another path with --file',
    )
  }
}

async function fetchAll(context: Context, from: DownloadSource, part: string, file: string): Promise<void> {
  const { kind, image, signal } = from
  await using handle = await openPart(part)
  let meter: TransferMeter | undefined
  try {
    const backoff = new Backoff({ policy: retryPolicies.transfer, signal, isRetriable: () => true })
    for (let isDone = false; !isDone; ) {
      const bytesBefore = (await handle.stat()).size
      try {
        // The first request includes the last stored byte, because a range must not be empty.
        const first = meter ? bytesBefore : Math.max(0, bytesBefore - 1)
        const answer = await fetchPart(from, first)
        const { start, totalBytes } = rangeOf(answer, first)
        meter ??= startMeter(context, `${kind.word} ${image.name}`, totalBytes, start)
        const reached = await skipZeros(answer, handle, await save(answer, handle, start, meter), totalBytes)
        meter.at(reached)
        isDone = reached === totalBytes
        backoff.progressed()
      } catch (error) {
        if ((await handle.stat()).size > bytesBefore) backoff.progressed()
        if (signal.aborted || !(await isRetriable(error, handle))) throw error
        await backoff.failed(error)
      }
    }
    await handle.sync()
    await fs.rename(part, file)
    await syncFolder(path.dirname(file))
  } catch (error) {
    meter?.end()
    const { size } = await handle.stat()
    if (size === 0) await fs.rm(part, { force: true })
    if (signal.aborted) throw new Interrupted('Download interrupted', 'Run the same command to resume')
    if (size > 0) context.note(`Partial download kept in ${part}. Run the same command to resume`)
    throw error
  } finally {
    meter?.end()
  }
}

interface DownloadSource {
  readonly client: Client
  readonly kind: ImageKind
  readonly namespace: string
  readonly image: Pick<Image, 'name'>
  readonly signal: AbortSignal
  readonly format: string
  /** The ETag of the content; absent for servers that send none. */
  readonly tag?: string
}

const fileName = (name: string, format: string): string =>
  format === 'raw' || name.endsWith(`.${format}`) ? name : `${name}.${format}`

async function fetchPart(from: DownloadSource, first: number): Promise<TransportResponse> {
  const { client, kind, namespace, image, signal, format, tag } = from
  const range = `bytes=${first}-${(Math.floor(first / partBytes) + 1) * partBytes - 1}`
  const answer = await client.open(kind.download, {
    params: { namespace, [kind.word]: image.name },
    ...(format !== 'raw' && { query: { format } }),
    headers: { range, ...(tag !== undefined && { 'if-range': tag }), 'want-content-digest': 'sha-256=10' },
    signal,
  })
  if (tag === undefined || answer.header('etag') === tag) return answer
  throw new Failure(`${kind.word} ${image.name} changed during the download`, 'Download it again')
}

/** The offset of the response, and the length of the whole file. */
function rangeOf(answer: TransportResponse, requested: number): { start: number; totalBytes: number } {
  const [, first, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(answer.header('content-range') ?? '') ?? []
  if (answer.status === 206 && Number(first) === requested) return { start: requested, totalBytes: Number(total) }
  const length = answer.header('content-length')
  if (answer.status === 200 && length !== undefined) return { start: 0, totalBytes: Number(length) }
  throw new Failure('The server sent another part than requested', 'Delete the .part file and try again')
}

type Handle = Awaited<ReturnType<typeof import('node:fs/promises').open>>

async function openPart(part: string): Promise<Handle> {
  try {
    return await promises.open(part, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  } catch (error) {
    throw new Failure(
      `Cannot write ${part} (${(error as NodeJS.ErrnoException).code})`,
      'Choose another path with --file',
    )
  }
}

/** Writes the response, with holes for zeros. Returns the size of the file, which is the progress even on an error. */
async function save(answer: TransportResponse, handle: Handle, start: number, meter: TransferMeter): Promise<number> {
  const hash = crypto.createHash('sha256')
  const length = Number(answer.header('content-length'))
  let at = start
  await handle.truncate(start)
  try {
    for await (const piece of answer.body) {
      hash.update(piece)
      if (!isZero(piece))
        for (let done = 0; done < piece.length; )
          done += (await handle.write(piece, done, piece.length - done, at + done)).bytesWritten
      at += piece.length
      meter.at(at)
    }
  } finally {
    await handle.truncate(at)
  }
  const lost = (what: string) => new ConnectionError('lost', '', what, 'Try again')
  if (at - start !== length) throw lost(`The download ended after ${at - start} of ${length} bytes`)
  const digest = /^sha-256=:(.*):$/.exec(answer.header('content-digest') ?? '')?.[1]
  if (digest === undefined || digest === hash.digest('base64')) return at
  await handle.truncate(start)
  throw lost('The downloaded data is corrupt')
}

/** Skips data that the service reports as zeros: the file gets a hole. Returns the new size. */
async function skipZeros(answer: TransportResponse, handle: Handle, at: number, totalBytes: number): Promise<number> {
  const next = Number(answer.header('svc3-next-data') ?? 0)
  if (!Number.isSafeInteger(next) || next <= at || next > totalBytes) return at
  await handle.truncate(next)
  return next
}

const zeros = Buffer.alloc(65_536)
const isZero = (piece: Uint8Array): boolean =>
  piece.length <= zeros.length && zeros.subarray(0, piece.length).equals(piece)

/** Reports whether to try again. Discards a partial file that is longer than the whole. */
async function isRetriable(error: unknown, handle: Handle): Promise<boolean> {
  if (!(error instanceof ApiError && error.reason === 'RangeNotSatisfiable')) return isTransient(error)
  await handle.truncate(0)
  return true
}

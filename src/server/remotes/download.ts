// Downloads the file of a remote item to disk, resumes after a restart, and verifies it at the end. The size of the
// file is the only state.
import fs from 'node:fs/promises'
import path from 'node:path'
import { DiskFullError, explainFull, roomOn } from '../../images/content/temporary-files.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { reasonOf } from '../../platform/reason.ts'
import { type RetryPolicy, retry, retryPolicies, waitingText } from '../../platform/retry.ts'
import { fileDigest, writePieces } from '../transfer/write-pieces.ts'
import { RemoteError } from './http.ts'

interface ExpectedFile {
  readonly bytes: number
  /** In hexadecimal. */
  readonly sha256: string
}

interface OpenedFile {
  /** The requested offset, or 0 if the remote does not support ranges. */
  readonly start: number
  readonly pieces: AsyncIterable<Buffer>
}

interface DownloadOptions {
  readonly signal: AbortSignal
  open(start: number, signal: AbortSignal): Promise<OpenedFile>
  progress(bytes: number): void
  /** Called with the reason when the download waits for a retry. */
  waits(reason: string): void
  readonly retry?: RetryPolicy | undefined
}

export async function downloadTo(file: string, expected: ExpectedFile, options: DownloadOptions): Promise<void> {
  await using handle = await fs.open(file, 'a+', 0o600).then(async (made) => {
    await made.close()
    return fs.open(file, 'r+')
  })
  // Bytes of an earlier try may be wrong, so a resumed file that does not match is downloaded again from the start.
  for (let isLast = ((await handle.stat()).size === 0) as boolean; ; isLast = true) {
    await complete(handle, file, expected, options)
    if ((await fileDigest(file, options.signal)) === expected.sha256) break
    await handle.truncate(0)
    if (isLast) throw new RemoteError('The downloaded file does not match the SHA-256 checksum of the remote', false)
  }
  await handle.sync()
}

async function complete(
  handle: fs.FileHandle,
  file: string,
  { bytes }: ExpectedFile,
  { signal, open, progress, waits, retry: policy = retryPolicies.transfer }: DownloadOptions,
): Promise<void> {
  if ((await handle.stat()).size > bytes) await handle.truncate(bytes)
  const work = async (progressed: () => void): Promise<void> => {
    const { size } = await handle.stat()
    if (size === bytes) return
    try {
      await checkRoom(path.dirname(file), bytes - size)
      await append(handle, await open(size, signal), bytes, progress)
      if ((await handle.stat()).size < bytes)
        throw new RemoteError('The remote closed the connection before the end of the file', true)
    } catch (error) {
      if ((await handle.stat()).size > size) progressed()
      throw explainFull(error, 'the server')
    }
  }
  await retry(work, {
    policy,
    signal,
    isRetriable: (error) => (error instanceof RemoteError ? error.isTransient : !(error instanceof DiskFullError)),
    onWait: ({ error, delayMs }) => waits(waitingText(reasonOf(error), new Date(Date.now() + delayMs))),
  })
}

async function append(
  handle: fs.FileHandle,
  { start, pieces }: OpenedFile,
  bytes: number,
  progress: (bytes: number) => void,
): Promise<void> {
  await handle.truncate(start)
  await writePieces(handle, pieces, start, (end) => {
    if (end > bytes) throw new RemoteError('The file is larger than the remote announced', false)
    progress(end)
    if (end > bytes / 2) failpoint('pull.half')
  })
}

async function checkRoom(folder: string, bytes: number): Promise<void> {
  if (bytes > (await roomOn(folder))) throw new DiskFullError('the server', undefined)
}

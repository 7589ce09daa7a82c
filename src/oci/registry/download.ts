// Downloads a blob. Resumes interrupted downloads by ranges, reads no more than the declared size, and verifies the
// digest.
import { createHash } from 'node:crypto'
import { digestOfBuffer } from '../../images/content/content.ts'
import type { HttpResponse } from '../../platform/http.ts'
import { Backoff } from '../../platform/retry.ts'
import { RegistryError } from '../artifact/errors.ts'
import type { Descriptor } from '../artifact/oci-manifest.ts'
import type { OpenOptions } from '../artifact/target.ts'
import type { RegistryExchange } from './exchange.ts'
import { networkError } from './network-error.ts'

interface DownloadOptions {
  readonly exchange: RegistryExchange
  readonly repository: string
  readonly signal?: AbortSignal | undefined
}

const pieceBytes = 2 ** 20

/** Streams pieces of a mebibyte. Verifies the digest unless `isUnchecked`, or if the stream begins at an offset. */
export async function* streamBlob(
  blob: Descriptor,
  { offset = 0, isUnchecked = false }: OpenOptions,
  options: DownloadOptions,
): AsyncGenerator<Buffer> {
  const hasher = offset === 0 && !isUnchecked ? createHash('sha256') : undefined
  // Gathers small pieces, because callers write each of them to a disk.
  let gathered: Buffer[] = []
  let bytes = 0
  for await (const piece of fetchFrom(offset, blob, options)) {
    hasher?.update(piece)
    gathered.push(piece)
    bytes += piece.length
    if (bytes < pieceBytes) continue
    yield Buffer.concat(gathered, bytes)
    gathered = []
    bytes = 0
  }
  if (bytes > 0) yield Buffer.concat(gathered, bytes)
  if (hasher && `sha256:${hasher.digest('hex')}` !== blob.digest)
    throw wrong(blob, options, 'does not match its digest')
}

export async function readBlob(blob: Descriptor, options: DownloadOptions): Promise<Buffer> {
  const content = Buffer.allocUnsafe(blob.size)
  let at = 0
  for await (const piece of fetchFrom(0, blob, options)) at += piece.copy(content, at)
  if ((await digestOfBuffer(content)) !== blob.digest) throw wrong(blob, options, 'does not match its digest')
  return content
}

/** Streams a blob from `offset`, unverified, over as many connections as it takes. */
async function* fetchFrom(offset: number, blob: Descriptor, options: DownloadOptions): AsyncGenerator<Buffer> {
  const { exchange, signal } = options
  const backoff = new Backoff(exchange.retryOptions(signal))
  let at = offset
  while (at < blob.size) {
    try {
      const opened = await openAt(blob, at, options)
      for await (const piece of bodyOf(opened, blob.size - at, signal)) {
        at += piece.length
        backoff.progressed()
        yield piece
      }
      if (at < blob.size) throw brokenOff(opened)
    } catch (error) {
      await backoff.failed(error)
    }
  }
}

async function* bodyOf({ answer, skipBytes }: Opened, maxBytes: number, signal?: AbortSignal): AsyncGenerator<Buffer> {
  let toSkip = skipBytes
  let bytes = 0
  try {
    for await (const received of answer.body as AsyncIterable<Buffer>) {
      const piece = received.subarray(toSkip)
      toSkip -= received.length - piece.length
      bytes += piece.length
      if (bytes > maxBytes) throw new RegistryError('invalid', `${answer.url.host} sent more bytes than a blob has`)
      if (piece.length > 0) yield piece
    }
  } catch (error) {
    signal?.throwIfAborted()
    throw networkError(answer.url, error as Error)
  } finally {
    answer.body.destroy()
  }
}

interface Opened {
  readonly answer: HttpResponse
  /** A registry without support for ranges sends the whole blob. */
  readonly skipBytes: number
}

async function openAt(blob: Descriptor, at: number, options: DownloadOptions): Promise<Opened> {
  const { exchange, repository, signal } = options
  const url = new URL(`/v2/${repository}/blobs/${blob.digest}`, exchange.origin)
  const headers: Record<string, string> = { accept: '*/*', ...(at > 0 && { range: `bytes=${at}-${blob.size - 1}` }) }
  const answer = await exchange.ask({ method: 'GET', url, headers, signal }, [`repository:${repository}:pull`])
  if (answer.status !== 200 && answer.status !== 206) throw await exchange.refuse(answer, `Fetching from ${repository}`)
  const [, start = '', whole = '*'] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(answer.headers['content-range'] ?? '') ?? []
  const begins = answer.status === 206 ? Number(start || -1) : 0
  const length = answer.status === 206 ? whole : (answer.headers['content-length'] ?? '*')
  const isWrong = length !== '*' && Number(length) !== blob.size
  if (isWrong || (begins !== at && begins !== 0)) {
    answer.body.destroy()
    throw wrong(blob, options, isWrong ? `has ${length} bytes, not ${blob.size}` : 'has another range than requested')
  }
  return { answer, skipBytes: at - begins }
}

const brokenOff = ({ answer: { url } }: Opened): RegistryError =>
  new RegistryError('unavailable', `${url.host} interrupted a download`)

const wrong = ({ digest }: Descriptor, { repository }: DownloadOptions, problem: string): RegistryError =>
  new RegistryError('invalid', `Content ${digest} of ${repository} ${problem}`)

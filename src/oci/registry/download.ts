// One blob from a registry: as a stream, or all of it. Goes on with a range where a connection broke off, never takes
// more than was declared, and checks the digest.
import { createHash } from 'node:crypto'
import { digestOfBuffer } from '../../images/content.ts'
import { createBackoff, isTransient } from '../../rules/retry.ts'
import { RegistryError } from '../errors.ts'
import { networkError } from '../network-error.ts'
import type { Descriptor, OpenOptions } from '../target.ts'
import type { Exchange } from './exchange.ts'
import type { Answer } from './send.ts'

export interface DownloadOptions {
  readonly exchange: Exchange
  readonly repository: string
  readonly signal?: AbortSignal | undefined
}

const pieceBytes = 2 ** 20
const worthReceivingBytes = 2 ** 18

/** In pieces of up to a mebibyte. From the beginning on it is checked; a part of it cannot be. */
export async function* streamBlob(
  blob: Descriptor,
  { offset = 0, isUnchecked = false }: OpenOptions,
  options: DownloadOptions,
): AsyncGenerator<Buffer> {
  const { exchange, signal } = options
  const backoff = createBackoff(exchange.retry, signal)
  const hasher = offset === 0 && !isUnchecked ? createHash('sha256') : undefined
  let at = offset
  while (at < blob.size) {
    try {
      const opened = await openAt(blob, at, options)
      for await (const piece of gather(opened, blob.size - at, options)) {
        hasher?.update(piece)
        at += piece.length
        backoff.reset()
        yield piece
      }
      if (at < blob.size) throw brokenOff(opened)
    } catch (error) {
      await backoff.failed(error)
    }
  }
  if (hasher && `sha256:${hasher.digest('hex')}` !== blob.digest) throw wrong(blob, options, 'is something else')
}

/** All of it, checked. */
export async function readBlob(blob: Descriptor, options: DownloadOptions, into?: Buffer): Promise<Buffer> {
  const { exchange, signal } = options
  const backoff = createBackoff(exchange.retry, signal)
  const content = into?.length === blob.size ? into : Buffer.allocUnsafeSlow(blob.size)
  let at = blob.size < worthReceivingBytes ? 0 : await receive(blob, content, options)
  while (at < blob.size) {
    try {
      const opened = await openAt(blob, at, options)
      const before = at
      at = await fill(content, at, opened, options)
      if (at > before) backoff.reset()
      if (at < blob.size) throw brokenOff(opened)
    } catch (error) {
      if (error instanceof Partial) at = error.at
      await backoff.failed(error instanceof Partial ? error.cause : error)
    }
  }
  if ((await digestOfBuffer(content)) !== blob.digest) throw wrong(blob, options, 'is something else')
  return content
}

class Partial extends Error {
  readonly at: number
  constructor(at: number, cause: unknown) {
    super('broken off', { cause })
    this.at = at
  }
}

/** By events and not by an iterator, which is slower. */
function fill(content: Buffer, from: number, opened: Opened, { signal }: DownloadOptions): Promise<number> {
  const { body, url } = opened.answer
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  let { skipBytes } = opened
  let at = from
  body.on('data', (received: Buffer) => {
    const piece = received.subarray(skipBytes)
    skipBytes -= received.length - piece.length
    if (at + piece.length > content.length) {
      reject(new RegistryError('invalid', `${url.host} sent more than the ${content.length} bytes of a blob`))
      body.destroy()
      return
    }
    piece.copy(content, at)
    at += piece.length
  })
  const fail = (error: Error) => reject(new Partial(at, signal?.aborted ? signal.reason : networkError(url, error)))
  body.on('error', fail).on('end', () => resolve(at))
  body.on('close', () => fail(new Error('closed')))
  return promise
}

/** Small pieces as larger ones: each costs whoever takes it a write to the disk. */
async function* gather(
  { answer, skipBytes }: Opened,
  mostBytes: number,
  { signal }: DownloadOptions,
): AsyncGenerator<Buffer> {
  let toSkip = skipBytes
  let gathered = Buffer.allocUnsafe(pieceBytes)
  let used = 0
  let bytes = 0
  const full = (): Buffer => {
    const piece = gathered.subarray(0, used)
    gathered = Buffer.allocUnsafe(pieceBytes)
    used = 0
    return piece
  }
  let failure: unknown
  try {
    for await (const received of answer.body as AsyncIterable<Buffer>) {
      const piece = received.subarray(toSkip)
      toSkip -= received.length - piece.length
      bytes += piece.length
      if (bytes > mostBytes) throw new RegistryError('invalid', `${answer.url.host} sent more bytes than a blob has`)
      for (let done = 0; done < piece.length; ) {
        const copied = piece.copy(gathered, used, done)
        used += copied
        done += copied
        if (used === pieceBytes) yield full()
      }
    }
  } catch (error) {
    signal?.throwIfAborted()
    failure = networkError(answer.url, error as Error)
  } finally {
    answer.body.destroy()
  }
  // What came before it broke off is good.
  if (used > 0) yield full()
  if (failure !== undefined) throw failure
}

interface Opened {
  readonly answer: Answer
  /** A registry that does not know ranges sends it all again. */
  readonly skipBytes: number
}

const urlOf = ({ digest }: Descriptor, { exchange, repository }: DownloadOptions): URL =>
  new URL(`/v2/${repository}/blobs/${digest}`, exchange.origin)

const scopesOf = ({ repository }: DownloadOptions): readonly string[] => [`repository:${repository}:pull`]

/** A registry that cannot be reached now is for the ordinary way to say, and to try again. */
const receive = (blob: Descriptor, into: Buffer, options: DownloadOptions): Promise<number> =>
  options.exchange.receive(urlOf(blob, options), into, scopesOf(options), options.signal).catch((error: unknown) => {
    options.signal?.throwIfAborted()
    if (isTransient(error)) return 0
    throw error
  })

async function openAt(blob: Descriptor, at: number, options: DownloadOptions): Promise<Opened> {
  const { exchange, repository, signal } = options
  const url = urlOf(blob, options)
  const headers: Record<string, string> = { accept: '*/*', ...(at > 0 && { range: `bytes=${at}-${blob.size - 1}` }) }
  const answer = await exchange.ask({ method: 'GET', url, headers, signal }, scopesOf(options))
  if (answer.status !== 200 && answer.status !== 206) throw await exchange.refuse(answer, `fetching from ${repository}`)
  const [, start = '', whole = '*'] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(answer.headers['content-range'] ?? '') ?? []
  const begins = answer.status === 206 ? Number(start || -1) : 0
  const length = answer.status === 206 ? whole : (answer.headers['content-length'] ?? '*')
  const isWrong = length !== '*' && Number(length) !== blob.size
  if (isWrong || (begins !== at && begins !== 0)) {
    answer.body.destroy()
    throw wrong(
      blob,
      options,
      isWrong ? `has ${length} bytes, not ${blob.size}` : 'comes from another place than asked',
    )
  }
  return { answer, skipBytes: at - begins }
}

const brokenOff = ({ answer: { url } }: Opened): RegistryError =>
  new RegistryError('unavailable', `${url.host} broke off a download`)

const wrong = ({ digest }: Descriptor, { repository }: DownloadOptions, problem: string): RegistryError =>
  new RegistryError('invalid', `what ${repository} has as ${digest} ${problem}`)

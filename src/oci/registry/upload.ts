// Uploads a blob. It is mounted from another repository if possible, otherwise sent in one piece, or in several if it
// is long or the registry requires it. After a failure the upload resumes where the registry says.

import { discard, type HttpBody, type HttpResponse } from '../../platform/http.ts'
import { Backoff, isTransientStatus } from '../../platform/retry.ts'
import { RegistryError } from '../artifact/errors.ts'
import type { Descriptor } from '../artifact/oci-manifest.ts'
import type { BlobContent, BlobPutOptions } from '../artifact/target.ts'
import type { RegistryExchange } from './exchange.ts'
import { redactUrl } from './redact.ts'
import { registryLocation } from './send.ts'

interface UploadOptions extends BlobPutOptions {
  readonly exchange: RegistryExchange
  readonly repository: string
  /** A repository of the same registry that may have the blob. */
  readonly mountFrom?: string | undefined
  /** Called when the registry cannot mount from there. */
  readonly onMountRefused?: (() => void) | undefined
  /** Longer blobs are sent in several pieces. */
  readonly pieceBytes: number
  /** Called when the registry accepts only smaller pieces. */
  readonly onPieceRefused: (bytes: number) => void
  /** Called when the outcome of an upload is unknown. */
  isThere(): Promise<boolean>
}

interface Session {
  readonly location: URL
  readonly offset: number
  readonly minPieceBytes: number
}

const minPieceBytes = 2 ** 18
const octets = { 'content-type': 'application/octet-stream' } as const

/** Returns false if the registry had the blob, so that nothing was sent. */
export async function uploadBlob(blob: Descriptor, content: BlobContent, options: UploadOptions): Promise<boolean> {
  const { exchange, signal, onPosition, isThere } = options
  const backoff = new Backoff(exchange.retryOptions(signal))
  let { pieceBytes } = options
  let isTooMuch = false
  let session: Session | undefined
  let isUncertain = false
  let wrongArrivals = 0
  /** Only bytes beyond this count as progress. Otherwise a registry that forgets uploads would be retried forever. */
  let furthestBytes = 0
  const reached = (bytes: number): void => {
    if (bytes > furthestBytes) backoff.progressed()
    furthestBytes = Math.max(furthestBytes, bytes)
  }
  for (;;) {
    try {
      if (isUncertain) {
        session = session && (await findSession(session, blob, options))
        reached(session?.offset ?? 0)
        onPosition?.(session?.offset ?? 0)
        // The upload may have succeeded, with its response lost.
        if (!session && (await isThere())) return true
        isUncertain = false
      }
      session ??= await start(blob, options)
      if (session === undefined) return false
      while (blob.size - session.offset > Math.max(pieceBytes, session.minPieceBytes)) {
        const end: number = session.offset + Math.max(pieceBytes, session.minPieceBytes)
        session = await sendPiece(session, end, blob, content, options)
        reached(end)
      }
      await sendLast(session, blob, content, options)
      // Reported only after success. If no size works, later blobs begin with the full size again.
      if (isTooMuch) options.onPieceRefused(pieceBytes)
      return true
    } catch (error) {
      if (error instanceof WrongArrival && ++wrongArrivals > 1) throw damaged(blob, error)
      const smaller = smallerPieces(error, Math.min(pieceBytes, blob.size))
      if (smaller === undefined) await backoff.failed(error)
      isTooMuch ||= smaller !== undefined
      pieceBytes = smaller ?? pieceBytes
      isUncertain = true
    }
  }
}

/** Half of `bytes` if the registry, or a proxy before it, refused the size. */
function smallerPieces(error: unknown, bytes: number): number | undefined {
  if (!(error instanceof RegistryError) || error.fault !== 'tooLarge') return undefined
  const half = Math.ceil(bytes / 2)
  return half >= minPieceBytes ? half : undefined
}

const scopesOf = ({ repository }: UploadOptions): string[] => [`repository:${repository}:pull,push`]

/** Undefined if the blob was mounted. */
async function start(blob: Descriptor, options: UploadOptions): Promise<Session | undefined> {
  const { mountFrom, onMountRefused } = options
  if (mountFrom === undefined) return await begin(uploadsOf(options), scopesOf(options), options)
  const url = uploadsOf(options)
  url.searchParams.set('mount', blob.digest)
  url.searchParams.set('from', mountFrom)
  try {
    return await begin(url, [...scopesOf(options), `repository:${mountFrom}:pull`], options)
  } catch (error) {
    if (!(error instanceof RegistryError) || error.isTransient) throw error
    // The user may lack read permission there.
    onMountRefused?.()
    return await begin(uploadsOf(options), scopesOf(options), options)
  }
}

const uploadsOf = ({ exchange, repository }: UploadOptions): URL =>
  new URL(`/v2/${repository}/blobs/uploads/`, exchange.origin)

async function begin(url: URL, scopes: readonly string[], options: UploadOptions): Promise<Session | undefined> {
  const { exchange, repository, signal } = options
  const answer = await exchange.ask({ method: 'POST', url, signal }, scopes)
  if (answer.status === 201 && url.searchParams.has('mount')) return void discard(answer)
  if (answer.status !== 202) throw await exchange.refuse(answer, `Starting an upload to ${repository}`)
  return sessionOf(answer, 0)
}

/** Each response may change the address of the upload. */
function sessionOf(answer: HttpResponse, offset: number, before?: Session): Session {
  discard(answer)
  const { location } = answer.headers
  if (location === undefined && !before)
    throw new RegistryError('invalid', `${redactUrl(answer.url)} gave no upload address`)
  const asked = Number(answer.headers['oci-chunk-min-length'] ?? 0)
  return {
    location: location === undefined && before ? before.location : registryLocation(location ?? '', answer.url),
    offset,
    minPieceBytes: Math.max(asked > 0 && Number.isSafeInteger(asked) ? asked : 0, before?.minPieceBytes ?? 0),
  }
}

async function sendPiece(
  session: Session,
  end: number,
  { size }: Descriptor,
  content: BlobContent,
  options: UploadOptions,
): Promise<Session> {
  const { exchange, repository, signal } = options
  const { location, offset } = session
  const answer = await exchange.ask(
    {
      method: 'PATCH',
      url: location,
      headers: { ...octets, 'content-range': `${offset}-${end - 1}` },
      body: bodyOf(content, offset, end, size, options),
      signal,
    },
    scopesOf(options),
  )
  if (answer.status !== 202) throw await failure(answer, options)
  const reached = rangeEnd(answer.headers.range) ?? end
  if (reached !== end) throw new RegistryError('session', `${repository} took ${reached} of ${end} bytes`)
  return sessionOf(answer, end, session)
}

async function sendLast(
  session: Session,
  blob: Descriptor,
  content: BlobContent,
  options: UploadOptions,
): Promise<void> {
  const { exchange, repository, signal } = options
  const { location, offset } = session
  const url = new URL(location)
  url.searchParams.set('digest', blob.digest)
  const answer = await exchange.ask(
    {
      method: 'PUT',
      url,
      headers: {
        ...octets,
        ...(offset > 0 && offset < blob.size && { 'content-range': `${offset}-${blob.size - 1}` }),
      },
      body: bodyOf(content, offset, blob.size, blob.size, options),
      signal,
    },
    scopesOf(options),
  )
  if (answer.status !== 201 && answer.status !== 204) throw await failure(answer, options)
  discard(answer)
  const named = answer.headers['docker-content-digest']
  if (named !== undefined && named !== blob.digest)
    throw new RegistryError('invalid', `The registry stored ${blob.digest} in ${repository} with another digest`)
}

/** Returns an error that makes the upload start over if the registry lost it, or bytes were damaged in transit. */
async function failure(answer: HttpResponse, { exchange, repository }: UploadOptions): Promise<RegistryError> {
  const error = await exchange.refuse(answer, `Uploading to ${repository}`)
  if (error.message.includes('DIGEST_INVALID')) return new WrongArrival('session', error.message, { cause: error })
  const isSession = answer.status === 404 || answer.status === 416
  return isSession ? new RegistryError('session', error.message, { status: answer.status, cause: error }) : error
}

class WrongArrival extends RegistryError {}

/** The error after a second wrong digest. The first may have been a network fault. */
const damaged = ({ digest }: Descriptor, cause: unknown): RegistryError =>
  new RegistryError('invalid', `Content ${digest} arrived twice with another digest`, {
    hint: 'Create the image again: it is damaged here',
    cause,
  })

/** Undefined if the upload must start over. */
async function findSession(session: Session, blob: Descriptor, options: UploadOptions): Promise<Session | undefined> {
  const { exchange, signal } = options
  const answer = await exchange.ask({ method: 'GET', url: session.location, signal }, scopesOf(options))
  if (isTransientStatus(answer.status)) throw await failure(answer, options)
  const reached = rangeEnd(answer.headers.range)
  if (answer.status !== 204 || reached === undefined || reached > blob.size) return void discard(answer)
  return sessionOf(answer, reached, session)
}

/** `0-41` → 42. `0-0` is ambiguous: none or one byte. */
function rangeEnd(range: string | undefined): number | undefined {
  const [, end] = /^(?:bytes=)?0-(\d{1,15})$/.exec(range ?? '') ?? []
  return end === undefined || end === '0' ? undefined : Number(end) + 1
}

function bodyOf(
  content: BlobContent,
  start: number,
  end: number,
  size: number,
  { onPosition }: UploadOptions,
): HttpBody {
  return {
    bytes: end - start,
    // The last piece is read to its end, where the content is verified.
    open: () => (end === size ? content.open(start) : firstOf(content.open(start), end - start)),
    onSent: (bytes) => onPosition?.(start + bytes),
  }
}

async function* firstOf(pieces: AsyncIterable<Buffer>, bytes: number): AsyncGenerator<Buffer> {
  let left = bytes
  for await (const piece of pieces) {
    yield piece.subarray(0, left)
    left -= Math.min(piece.length, left)
    if (left === 0) return
  }
}

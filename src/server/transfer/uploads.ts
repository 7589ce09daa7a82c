// File uploads: bytes are streamed to a temporary file, never into memory. No byte of the body is read until the
// handler has accepted the metadata.
import fs from 'node:fs/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError, badRequest } from '../../api/errors.ts'
import type { Operation } from '../../api/operation.ts'
import {
  DiskFullError,
  explainFull,
  removeUnfinished,
  roomOn,
  temporaryName,
} from '../../images/content/temporary-files.ts'
import { largestDiskBytes, sizeText } from '../../rules/sizes.ts'
import { fieldTooLong, refusalOfForm, twice } from './multipart.ts'
import type { Incoming } from './partial-uploads.ts'
import { isExpecting } from './request-timeout.ts'
import { writePieces } from './write-pieces.ts'

/** What comes with a file: in the query, or as fields of the form, before the file or after it. */
export interface UploadFields {
  readonly name?: string
  readonly description?: string
  readonly type?: string
  readonly firmware?: string
  readonly os?: string
}

interface Received extends AsyncDisposable {
  readonly file: string
  readonly bytes: number
  readonly fields: UploadFields
  /** As the form calls the file; undefined without a form. */
  readonly fileName: string | undefined
  /** Aborted when the client is gone: nobody waits for what becomes of it. */
  readonly left: AbortSignal
}

export interface OpenUpload {
  /** It has its fields in its body; otherwise the body is the file. */
  readonly isForm: boolean
  /**
   * Puts the body on the disk. `judge` gets the fields when they become known, once more whenever there are more of
   * them, and throws when it makes no sense to go on. Disposing of what was received removes the file.
   */
  receive(judge: (fields: UploadFields) => void): Promise<Received>
  /** Instead of that: passes the body through as a stream. Its length must be known, and at most `maxBytes`. */
  pass<T>(maxBytes: number, take: (body: Passing) => Promise<T>): Promise<T>
  /** The body as it comes, asked for when it is first read; for those who keep what came of one that is cut off. */
  stream<T>(work: (incoming: Incoming) => Promise<T>): Promise<T>
}

interface Passing {
  readonly bytes: number
  readonly pieces: AsyncIterable<Uint8Array>
}

/** The folder of unfinished uploads, and when the oldest of those that are becoming content began. */
export class Uploads {
  readonly folder: string
  readonly #startsMs = new Set<number>()

  private constructor(folder: string) {
    this.folder = folder
  }

  /** Removes what a killed server left. */
  static async open(folder: string): Promise<Uploads> {
    await fs.mkdir(folder, { recursive: true, mode: 0o700 })
    await removeUnfinished(folder)
    return new Uploads(folder)
  }

  /** Content that came later than this may belong to an upload that is not done. */
  oldestStartMs(): number {
    return Math.min(Date.now(), ...this.#startsMs)
  }

  /** From the first content that comes into the store until a record names all of it. */
  hold(): Disposable {
    // Two in one millisecond are two entries.
    let startMs = Date.now()
    while (this.#startsMs.has(startMs)) startMs -= 0.001
    this.#startsMs.add(startMs)
    return { [Symbol.dispose]: () => this.#startsMs.delete(startMs) }
  }
}

const fieldNames = ['name', 'description', 'type', 'firmware', 'os'] as const
type FieldName = (typeof fieldNames)[number]
const fieldBytes = 8_192
/** How long a client that is refused in the middle of a body has to notice; then the connection ends. */
const lingerMs = 5_000

export function openUpload(
  operation: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
  { folder }: Pick<Uploads, 'folder'>,
): OpenUpload {
  const part = operation.isUpload ?? ''
  return {
    isForm: request.isMultipart(),
    async stream(work) {
      const pieces = (async function* () {
        if (isExpecting(request)) reply.raw.writeContinue()
        yield* request.raw
      })()
      try {
        return await work({ pieces, cancel: () => request.raw.destroy() })
      } catch (error) {
        throw refusalOf(error, request)
      } finally {
        letGo(request, reply)
      }
    },
    async receive(judge) {
      const fields: Partial<Record<FieldName, string>> = { ...(request.query as UploadFields) }
      const leaving = new AbortController()
      reply.raw.once('close', () => leaving.abort())
      try {
        judge(fields)
        await checkLength(request, folder)
        if (isExpecting(request)) reply.raw.writeContinue()
        const file = await temporaryName(folder)
        try {
          const source = request.isMultipart()
            ? await receiveForm(request, part, { file, fields, judge })
            : { bytes: await writeTo(file, request.raw), fileName: undefined }
          if (source.bytes === 0) throw nothing(part)
          const remove = (): Promise<void> => fs.rm(file, { force: true })
          return { file, fields, ...source, left: leaving.signal, [Symbol.asyncDispose]: remove }
        } catch (error) {
          await fs.rm(file, { force: true })
          throw error
        }
      } catch (error) {
        letGo(request, reply)
        throw refusalOf(error, request)
      }
    },
    async pass(maxBytes, take) {
      try {
        const bytes = Number(request.headers['content-length'] ?? 0)
        if (bytes === 0) throw nothing(part)
        if (bytes > maxBytes) throw fieldTooLong('The upload', maxBytes)
        await checkLength(request, folder)
        if (isExpecting(request)) reply.raw.writeContinue()
        return await take({ bytes, pieces: request.raw })
      } catch (error) {
        letGo(request, reply)
        throw refusalOf(error, request)
      }
    },
  }
}

interface Form {
  readonly file: string
  readonly fields: Partial<Record<FieldName, string>>
  judge(fields: UploadFields): void
}

async function receiveForm(
  request: FastifyRequest,
  partName: string,
  { file, fields, judge }: Form,
): Promise<{ bytes: number; fileName: string | undefined }> {
  const limits = { fileSize: largestDiskBytes, fieldSize: fieldBytes, parts: 20, headerPairs: 20 }
  let received: { bytes: number; fileName: string | undefined } | undefined
  const inForm = new Set<string>()
  for await (const part of request.parts({ limits })) {
    const { fieldname } = part
    const name = fieldNames.find((each) => each === fieldname)
    if (part.type === 'file' && fieldname === partName) {
      if (received) throw twice(partName)
      received = { bytes: await writeTo(file, part.file), fileName: part.filename }
    } else if (part.type === 'file') part.file.resume()
    else if (name) {
      if (inForm.has(name)) throw twice(name)
      inForm.add(name)
      if (part.valueTruncated) throw fieldTooLong(name, fieldBytes)
      fields[name] = String(part.value)
      judge(fields)
    }
  }
  if (received) return received
  const message = `The form has no file in part ${partName}`
  throw badRequest(
    [{ field: partName, reason: 'FieldValueRequired', message }],
    `Send it, for example with curl -F ${partName}=@FILE`,
  )
}

/** Returns the size of the file. */
async function writeTo(file: string, source: AsyncIterable<Buffer>): Promise<number> {
  await using handle = await fs.open(file, 'wx', 0o600)
  return await writePieces(handle, source)
}

/** What surely does not fit is refused before it is sent. */
async function checkLength({ headers }: FastifyRequest, folder: string): Promise<void> {
  const bytes = Number(headers['content-length'] ?? 0)
  if (bytes > largestDiskBytes) throw fieldTooLong('The upload', largestDiskBytes)
  const room = await roomOn(folder)
  if (bytes <= room) return
  throw new ApiError(
    'RequestEntityTooLarge',
    `The upload needs ${sizeText(bytes)}, and the disk of the server has ${sizeText(room)} free`,
    { hint: 'Delete unused images, or ask the operator of the server for space' },
  )
}

/** What is left of the body is not wanted: it is read and dropped for a moment, so that the refusal is seen. */
function letGo({ raw }: FastifyRequest, reply: FastifyReply): void {
  if (raw.complete || raw.destroyed) return
  raw.unpipe()
  raw.on('error', () => undefined).resume()
  reply.raw.once('finish', () => {
    const timer = setTimeout(() => raw.complete || raw.destroy(), lingerMs).unref()
    raw.once('close', () => clearTimeout(timer))
  })
}

function refusalOf(error: unknown, request: FastifyRequest): unknown {
  const { raw } = request
  if (error instanceof ApiError) return error
  const explained = explainFull(error, 'the server')
  if (explained instanceof DiskFullError) return diskFull(explained)
  const isCutOff = (raw.destroyed || raw.errored) && !raw.complete
  if (isCutOff) return endedEarly()
  return request.isMultipart() && isOfForm(error) ? refusalOfForm(error, fieldBytes) : error
}

/** The reader of forms fails with plain errors; those of the disk name their system call. */
const isOfForm = (error: unknown): boolean =>
  String((error as { code?: unknown }).code).startsWith('FST_') ||
  (error instanceof Error && error.constructor === Error && !('syscall' in error))

export const endedEarly = (): ApiError =>
  new ApiError('BadRequest', 'The upload ended early', { hint: 'Upload it again' })

/** Fails at once instead of retrying: whoever waits can do something about it. */
export const diskFull = (cause: unknown): ApiError =>
  new ApiError('RequestEntityTooLarge', 'The disk of the server is full; nothing was kept', {
    hint: 'Delete unused images, or ask the operator of the server for space; then upload it again',
    cause,
  })

const nothing = (part: string): ApiError => {
  const message = 'The upload is empty'
  return badRequest([{ field: part, reason: 'FieldValueRequired', message }], 'Check that it is the right file')
}

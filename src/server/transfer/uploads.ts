// File uploads: bytes are streamed to a temporary file, never into memory. The body is not read until the handler has
// accepted the metadata.
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
import { maxDiskBytes, sizeText } from '../../rules/sizes.ts'
import { fieldTooLong, refusalOfForm, twice } from './multipart.ts'
import type { Incoming } from './partial-uploads.ts'
import { isExpecting } from './request-timeout.ts'
import { whileRoom, writePieces } from './write-pieces.ts'

/** The metadata of a file: in the query, or as fields of the form, before or after the file. */
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
  readonly fileName: string | undefined
  readonly left: AbortSignal
}

export interface OpenUpload {
  /** The body is a form. Otherwise the body is the file. */
  readonly isForm: boolean
  /**
   * Writes the body to disk. `check` is called with the fields known so far, again for each further field, and throws
   * to refuse the upload. Disposing of the result removes the file.
   */
  receive(check: (fields: UploadFields) => void): Promise<Received>
  /** Passes the body on as a stream. Its length must be known, and at most `maxBytes`. */
  pass<T>(maxBytes: number, take: (body: SizedBody) => Promise<T>): Promise<T>
  /** Passes the body on as it arrives, for callers that use a part of an interrupted one. */
  stream<T>(work: (incoming: Incoming) => Promise<T>): Promise<T>
}

interface SizedBody {
  readonly bytes: number
  readonly pieces: AsyncIterable<Uint8Array>
}

/** The folder of unfinished uploads. Also knows since when uploads are being stored, for the garbage collector. */
export class Uploads {
  readonly folder: string
  readonly #running = new Set<{ readonly startMs: number }>()

  private constructor(folder: string) {
    this.folder = folder
  }

  static async open(folder: string): Promise<Uploads> {
    await fs.mkdir(folder, { recursive: true, mode: 0o700 })
    await removeUnfinished(folder)
    return new Uploads(folder)
  }

  /** Content that was stored after this may not be named by a record yet, so the collector must keep it. */
  oldestStartMs(): number {
    return Math.min(Date.now(), ...[...this.#running].map(({ startMs }) => startMs))
  }

  /** Callers hold this from before the first content is stored until a record names all of it. */
  hold(): Disposable {
    const upload = { startMs: Date.now() }
    this.#running.add(upload)
    return { [Symbol.dispose]: () => this.#running.delete(upload) }
  }
}

const fieldNames = ['name', 'description', 'type', 'firmware', 'os'] as const
type FieldName = (typeof fieldNames)[number]
const fieldBytes = 8_192
/** How long the rest of a refused body is read, so that the client reads the refusal before the connection ends. */
const lingerMs = 5_000

export function openUpload(
  operation: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
  { folder }: Pick<Uploads, 'folder'>,
): OpenUpload {
  const part = operation.isUpload ?? ''
  const begin = (): void => {
    if (isExpecting(request)) reply.raw.writeContinue()
  }
  const reading = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      discardRest(request, reply)
      throw refusalOf(error, request)
    }
  }
  return {
    isForm: request.isMultipart(),
    stream(work) {
      const pieces = (async function* () {
        begin()
        yield* request.raw
      })()
      const incoming = { pieces, cancel: () => request.raw.destroy() }
      return reading(() => work(incoming).finally(() => discardRest(request, reply)))
    },
    receive(check) {
      const fields: Partial<Record<FieldName, string>> = { ...(request.query as UploadFields) }
      const leaving = new AbortController()
      reply.raw.once('close', () => leaving.abort())
      return reading(async () => {
        check(fields)
        await checkLength(request, folder)
        begin()
        const file = await temporaryName(folder)
        const remove = (): Promise<void> => fs.rm(file, { force: true })
        try {
          const source = request.isMultipart()
            ? await receiveForm(request, part, { folder, file, fields, check })
            : { bytes: await writeTo(file, whileRoom(folder, request.raw)), fileName: undefined }
          if (source.bytes === 0) throw nothing(part)
          return { file, fields, ...source, left: leaving.signal, [Symbol.asyncDispose]: remove }
        } catch (error) {
          await remove()
          throw error
        }
      })
    },
    pass: (maxBytes, take) =>
      reading(async () => {
        const bytes = Number(request.headers['content-length'] ?? 0)
        if (bytes === 0) throw nothing(part)
        if (bytes > maxBytes) throw fieldTooLong('The upload', maxBytes)
        await checkLength(request, folder)
        begin()
        return await take({ bytes, pieces: request.raw })
      }),
  }
}

interface FormTarget {
  readonly folder: string
  readonly file: string
  readonly fields: Partial<Record<FieldName, string>>
  check(fields: UploadFields): void
}

async function receiveForm(
  request: FastifyRequest,
  partName: string,
  { folder, file, fields, check }: FormTarget,
): Promise<{ bytes: number; fileName: string | undefined }> {
  const limits = { fileSize: maxDiskBytes, fieldSize: fieldBytes, parts: 20, headerPairs: 20 }
  let received: { bytes: number; fileName: string | undefined } | undefined
  const inForm = new Set<string>()
  for await (const part of request.parts({ limits })) {
    const { fieldname } = part
    const name = fieldNames.find((each) => each === fieldname)
    if (part.type === 'file' && fieldname === partName) {
      if (received) throw twice(partName)
      received = { bytes: await writeTo(file, whileRoom(folder, part.file)), fileName: part.filename }
    } else if (part.type === 'file') part.file.resume()
    else if (name) {
      if (inForm.has(name)) throw twice(name)
      inForm.add(name)
      if (part.valueTruncated) throw fieldTooLong(name, fieldBytes)
      fields[name] = String(part.value)
      check(fields)
    }
  }
  if (received) return received
  const message = `The form has no file in part ${partName}`
  throw badRequest(
    [{ field: partName, reason: 'FieldValueRequired', message }],
    `Send it, for example with curl -F ${partName}=@FILE`,
  )
}

async function writeTo(file: string, source: AsyncIterable<Buffer>): Promise<number> {
  await using handle = await fs.open(file, 'wx', 0o600)
  return await writePieces(handle, source)
}

/** Refuses a file that does not fit on the disk before it is sent. */
async function checkLength({ headers }: FastifyRequest, folder: string): Promise<void> {
  const bytes = Number(headers['content-length'] ?? 0)
  if (bytes > maxDiskBytes) throw fieldTooLong('The upload', maxDiskBytes)
  const room = await roomOn(folder)
  if (bytes <= room) return
  throw new ApiError(
    'RequestEntityTooLarge',
    `The upload needs ${sizeText(bytes)}, and the disk of the server has ${sizeText(room)} free`,
    { hint: 'Delete unused images, or ask the operator of the server for space' },
  )
}

/** Reads the rest of a refused body for a moment, because clients read a refusal only after they have sent it. */
function discardRest({ raw }: FastifyRequest, reply: FastifyReply): void {
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

/** The multipart parser throws plain errors. Those of the disk have a system call. */
const isOfForm = (error: unknown): boolean =>
  String((error as { code?: unknown }).code).startsWith('FST_') ||
  (error instanceof Error && error.constructor === Error && !('syscall' in error))

export const endedEarly = (): ApiError =>
  new ApiError('BadRequest', 'The upload ended early', { hint: 'Upload it again' })

/** Refused instead of retried, because the user can free space. */
export const diskFull = (cause: unknown): ApiError =>
  new ApiError('RequestEntityTooLarge', 'The disk of the server is full; nothing was kept', {
    hint: 'Delete unused images, or ask the operator of the server for space; then upload it again',
    cause,
  })

const nothing = (part: string): ApiError => {
  const message = 'The upload is empty'
  return badRequest([{ field: part, reason: 'FieldValueRequired', message }], 'Check that it is the right file')
}

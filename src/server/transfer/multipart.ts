// Multipart forms with files. The parts become one object, which is validated with the operation's schema. The parser
// is registered in a separate scope, so that other operations refuse forms.
import multipart from '@fastify/multipart'
import type { FastifyRequest, preValidationAsyncHookHandler } from 'fastify'
import type { TObject } from 'typebox'
import { ApiError, invalidField } from '../../api/errors.ts'
import type { Operation } from '../../api/operation.ts'
import type { App } from '../gate/charges.ts'

const registerWith =
  (otherBody: () => ApiError | null) =>
  (app: App, register: (scope: App) => void): void => {
    app.register(async (scope) => {
      scope.removeAllContentTypeParsers()
      await scope.register(multipart as never)
      scope.addContentTypeParser('*', (_request, _payload, done) => done(otherBody()))
      register(scope)
    })
  }

export const registerForms = registerWith(() => notAForm())

/** Registers operations in a scope where forms, like all other bodies, stay streams. */
export const registerUploads = registerWith(() => null)

export function readForm(operation: Operation, totalBytes: number): preValidationAsyncHookHandler {
  const { properties } = operation.body as TObject
  const names = Object.keys(properties)
  const partBytes = Math.max(
    ...Object.values(properties).map((schema) => (schema as { maxLength?: number }).maxLength ?? 0),
  )
  return async (request, reply) => {
    if (request.body === undefined && !request.isMultipart()) throw notAForm()
    try {
      if (Number(request.headers['content-length'] ?? 0) > totalBytes) throw fieldTooLong('The form', totalBytes)
      request.body = await within(request, totalBytes, readParts(request, names, partBytes))
    } catch (error) {
      const refusal = refusalOfForm(error, partBytes)
      if (refusal.code === 413) reply.header('connection', 'close')
      throw refusal
    }
  }
}

async function readParts(request: FastifyRequest, names: readonly string[], partBytes: number): Promise<object> {
  // One more than allowed, because the parser truncates a part that reaches its limit.
  const limits = { fileSize: partBytes + 1, fieldSize: partBytes + 1, parts: names.length + 10, headerPairs: 20 }
  const form: Record<string, string> = {}
  for await (const part of request.parts({ limits })) {
    const { fieldname } = part
    if (!names.includes(fieldname)) {
      // An unknown file has to be read as well, because the next part follows it.
      if (part.type === 'file') part.file.resume()
      continue
    }
    if (Object.hasOwn(form, fieldname)) throw twice(fieldname)
    const text = part.type === 'file' ? (await part.toBuffer()).toString('utf8') : String(part.value)
    if (text.length > partBytes) throw fieldTooLong(fieldname, partBytes)
    form[fieldname] = text
  }
  return form
}

/** Refuses a body without a length when it becomes too long. */
function within<T>(request: FastifyRequest, totalBytes: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    let bytes = 0
    request.raw.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > totalBytes) reject(fieldTooLong('The form', totalBytes))
    })
    work.then(resolve, reject)
  })
}

export function refusalOfForm(error: unknown, partBytes: number): ApiError {
  if (error instanceof ApiError) return error
  const { code, part } = error as { code?: string; part?: { fieldname?: string } }
  if (code === 'FST_REQ_FILE_TOO_LARGE') return fieldTooLong(part?.fieldname ?? 'A part', partBytes)
  if (code === 'FST_PARTS_LIMIT')
    return new ApiError('RequestEntityTooLarge', 'The form has too many parts', {
      hint: 'Send only the parts of this operation',
    })
  return new ApiError('BadRequest', 'Cannot read the multipart body', {
    hint: 'Send a form, for example with curl -F',
  })
}

export const fieldTooLong = (field: string, bytes: number): ApiError => {
  const message = `${field} must have at most ${bytes} bytes`
  return new ApiError('RequestEntityTooLarge', message, {
    causes: [invalidField(field, message)],
    hint: 'Check that it is the right file',
  })
}

export const twice = (field: string): ApiError => {
  const message = `${field} appears twice`
  return new ApiError('BadRequest', message, {
    causes: [{ field, reason: 'FieldValueDuplicate', message }],
    hint: 'Send it once',
  })
}

const notAForm = (): ApiError =>
  new ApiError('BadRequest', 'The request body is not multipart/form-data', {
    hint: 'Send a form, for example with curl -F',
  })

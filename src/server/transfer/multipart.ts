// Multipart forms with files: the parts become one object that the operation's schema checks like any other. Registered
// in a scope of its own, so that only operations with forms pay for it.
import multipart, { type MultipartFile } from '@fastify/multipart'
import type { FastifyInstance, FastifyRequest, preValidationAsyncHookHandler } from 'fastify'
import type { TObject } from 'typebox'
import { ApiError, invalidField } from '../../api/errors.ts'
import type { Operation } from '../../api/operation.ts'

/** Runs `register` where forms are understood, and nothing else is. */
export function registerForms(app: FastifyInstance, register: (scope: FastifyInstance) => void): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    await scope.register(multipart)
    scope.addContentTypeParser('*', (_request, _payload, done) => done(notAForm()))
    register(scope)
  })
}

/** Runs `register` where a body stays a stream, whatever it is; that it is a form is known. */
export function registerUploads(app: FastifyInstance, register: (scope: FastifyInstance) => void): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    await scope.register(multipart)
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
    register(scope)
  })
}

export function readForm(operation: Operation, totalBytes: number): preValidationAsyncHookHandler {
  const { properties } = operation.body as TObject
  const names = Object.keys(properties)
  const partBytes = Math.max(
    ...Object.values(properties).map((schema) => (schema as { maxLength?: number }).maxLength ?? 0),
  )
  // One more than is allowed, so that what is exactly as long is not taken for too long.
  const limits = { fileSize: partBytes + 1, fieldSize: partBytes + 1, parts: names.length + 10, headerPairs: 20 }
  const readText = async (part: MultipartFile, field: string): Promise<string> => {
    const text = (await part.toBuffer()).toString('utf8')
    if (text.length > partBytes) throw fieldTooLong(field, partBytes)
    return text
  }

  return async (request, reply) => {
    if (request.body === undefined && !request.isMultipart()) throw notAForm()
    try {
      // More than this is not even read to its end.
      if (Number(request.headers['content-length'] ?? 0) > totalBytes) throw fieldTooLong('The form', totalBytes)
      request.body = await within(request, totalBytes, readParts(request, names, limits, readText))
    } catch (error) {
      const refusal = refusalOfForm(error, partBytes)
      if (refusal.code === 413) reply.header('connection', 'close')
      throw refusal
    }
  }
}

type Limits = NonNullable<Parameters<FastifyRequest['parts']>[0]>['limits']

async function readParts(
  request: FastifyRequest,
  names: readonly string[],
  limits: Limits,
  receive: (part: MultipartFile, field: string) => Promise<string>,
): Promise<object> {
  const form: Record<string, unknown> = {}
  for await (const part of request.parts({ limits: limits ?? {} })) {
    const { fieldname } = part
    const isKnown = names.includes(fieldname)
    if (isKnown && Object.hasOwn(form, fieldname)) throw twice(fieldname)
    if (part.type === 'file') {
      // Also of those that nobody asked for: the next part comes after this one.
      const value = isKnown ? await receive(part, fieldname) : part.file.resume()
      if (isKnown) form[fieldname] = value
    } else if (isKnown) {
      if (part.valueTruncated) throw fieldTooLong(fieldname, limits?.fieldSize ?? 0)
      form[fieldname] = part.value
    }
  }
  return form
}

/** A body that does not say how long it is, is cut off when it becomes too long. */
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

/** `partBytes`: what a part may have. */
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

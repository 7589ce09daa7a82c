// Parses bodies of 2.4.x clients: JSON or a form, whatever the Content-Type, because `curl -d` labels JSON as a form.
import { ApiError } from '../../api/errors.ts'
import type { App } from '../gate/charges.ts'
import { refuseExcessiveJson } from '../http/json-limits.ts'

export type BodyFields = Readonly<Record<string, unknown>>

export function parseLegacyBodies(scope: App): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser<Buffer>('*', { parseAs: 'buffer' }, (_request, bytes, done) => {
    try {
      done(null, fieldsOf(bytes))
    } catch (error) {
      done(error as Error)
    }
  })
}

/** Reads bodies without parsing them, for calls that use none. */
export function dropBodies(scope: App): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser<Buffer>('*', { parseAs: 'buffer' }, (_request, _bytes, done) => done(null, undefined))
}

const decoder = new TextDecoder('utf-8', { fatal: true })

function fieldsOf(bytes: Uint8Array): BodyFields {
  const text = textOf(bytes).trim()
  if (text === '') return {}
  return /^[[{"]/.test(text) || text === 'null' ? jsonFields(text) : formFields(text)
}

function textOf(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw unreadable('it is not UTF-8')
  }
}

function jsonFields(text: string): BodyFields {
  refuseExcessiveJson(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw unreadable('it is neither JSON nor a form')
  }
  if (value === null) return {}
  if (typeof value !== 'object' || Array.isArray(value)) throw unreadable('it is not an object')
  const fields = value as Record<string, unknown>
  if (Object.hasOwn(fields, '__proto__')) throw unreadable('a field has a name that is not possible')
  return fields
}

/** Reads a form such as `reserved_ports[]=8000:80&…`. */
function formFields(text: string): BodyFields {
  // Counted before parsing, because parsing half a million fields takes seconds.
  let count = 1
  for (let at = text.indexOf('&'); at !== -1; at = text.indexOf('&', at + 1))
    if (++count > maxFormFields) throw unreadable(`it has more than ${maxFormFields} fields`)
  const fields: Record<string, string | string[]> = Object.create(null)
  for (const [name, value] of new URLSearchParams(text)) {
    const key = name.replace(/\[\d*\]$/, '')
    const known = fields[key]
    if (Array.isArray(known)) known.push(value)
    else if (known !== undefined) fields[key] = [known, value]
    else fields[key] = key === name ? value : [value]
  }
  return fields
}

const maxFormFields = 1_000

const unreadable = (why: string): ApiError =>
  new ApiError('BadRequest', `The request body cannot be read: ${why}`, {
    hint: 'Send JSON with Content-Type: application/json',
  })

// Request bodies in protobuf, which typed clients send for kinds of Kubernetes itself. Responses are JSON, which those
// clients accept.
import { ApiError } from '../../api/errors.ts'
import { type FieldValue, ProtobufError, readFields } from '../../platform/protobuf.ts'
import { maxValues, tooMany } from '../http/json-limits.ts'

type Type = 'text' | 'int' | 'flag' | Message
interface Field {
  readonly name: string
  readonly type: Type
  readonly form?: 'list' | 'map'
}
/** Fields by number. Decoding skips other fields. */
interface Message {
  readonly [number: number]: Field
}

const text = (name: string): Field => ({ name, type: 'text' })
const texts = (name: string): Field => ({ name, type: 'text', form: 'list' })
const int = (name: string): Field => ({ name, type: 'int' })
const flag = (name: string): Field => ({ name, type: 'flag' })
const message = (name: string, type: Message): Field => ({ name, type })
const map = (name: string): Field => ({ name, type: { 1: text('key'), 2: text('value') }, form: 'map' })

const ownerReference: Message = {
  1: text('kind'),
  3: text('name'),
  4: text('uid'),
  5: text('apiVersion'),
  6: flag('controller'),
  7: flag('blockOwnerDeletion'),
}

const metadata = message('metadata', {
  1: text('name'),
  2: text('generateName'),
  3: text('namespace'),
  5: text('uid'),
  6: text('resourceVersion'),
  11: map('labels'),
  12: map('annotations'),
  13: { name: 'ownerReferences', type: ownerReference, form: 'list' },
  14: texts('finalizers'),
})

const resourceAttributes: Message = {
  1: text('namespace'),
  2: text('verb'),
  3: text('group'),
  4: text('version'),
  5: text('resource'),
  6: text('subresource'),
  7: text('name'),
}

const messages: Readonly<Record<string, Message>> = {
  DeleteOptions: {
    1: int('gracePeriodSeconds'),
    2: message('preconditions', { 1: text('uid'), 2: text('resourceVersion') }),
    4: text('propagationPolicy'),
    5: texts('dryRun'),
  },
  SelfSubjectReview: { 1: metadata },
  SelfSubjectAccessReview: {
    1: metadata,
    2: message('spec', {
      1: message('resourceAttributes', resourceAttributes),
      2: message('nonResourceAttributes', { 1: text('path'), 2: text('verb') }),
    }),
  },
  SelfSubjectRulesReview: { 1: metadata, 2: message('spec', { 1: text('namespace') }) },
  TokenRequest: { 1: metadata, 2: message('spec', { 1: texts('audiences'), 4: int('expirationSeconds') }) },
  Namespace: { 1: metadata },
  ServiceAccount: { 1: metadata },
  RoleBinding: {
    1: metadata,
    2: {
      name: 'subjects',
      type: { 1: text('kind'), 2: text('apiGroup'), 3: text('name'), 4: text('namespace') },
      form: 'list',
    },
    3: message('roleRef', { 1: text('apiGroup'), 2: text('kind'), 3: text('name') }),
  },
}

/** The kinds that are read from protobuf. */
export const decodable: readonly string[] = Object.keys(messages)

export const protobufType = 'application/vnd.kubernetes.protobuf'
const magic = Buffer.from([0x6b, 0x38, 0x73, 0x00])
const envelope: Message = { 1: message('typeMeta', { 1: text('apiVersion'), 2: text('kind') }) }
const rawField = 2

/** Returns the object as if it had been sent as JSON. */
export function decodeProtobuf(bytes: Buffer): Readonly<Record<string, unknown>> {
  if (bytes.length === 0) return {}
  if (!bytes.subarray(0, magic.length).equals(magic)) throw unreadable('it does not begin as one')
  const inner = bytes.subarray(magic.length)
  const budget: Budget = { fields: 0 }
  const { typeMeta = {} } = decode(inner, envelope, budget) as { typeMeta?: { apiVersion?: string; kind?: string } }
  const { apiVersion = '', kind = '' } = typeMeta
  const known = Object.hasOwn(messages, kind) ? messages[kind] : undefined
  if (!known)
    throw new ApiError('UnsupportedMediaType', `This server reads no ${kind.slice(0, 63) || 'object'} in protobuf`, {
      hint: 'Send Content-Type: application/json',
    })
  let raw: Buffer = Buffer.alloc(0)
  eachField(inner, budget, (number, value) => {
    if (number === rawField && value instanceof Buffer) raw = value
  })
  return { apiVersion, kind, ...decode(raw, known, budget) }
}

interface Budget {
  fields: number
}

function decode(bytes: Buffer, known: Message, budget: Budget): Record<string, unknown> {
  const found = new Map<string, unknown[]>()
  eachField(bytes, budget, (number, value) => {
    const field = known[number]
    if (!field) return
    const values = found.get(field.name) ?? []
    values.push(read(value, field.type, budget))
    found.set(field.name, values)
  })
  const named = Object.values(known).filter(({ name }) => found.has(name))
  return Object.fromEntries(named.map(({ name, form }) => [name, formed(found.get(name) ?? [], form)]))
}

/** The last value of a singular field wins, as protobuf requires. */
function formed(values: readonly unknown[], form: Field['form']): unknown {
  if (form === 'list') return values
  if (form !== 'map') return values.at(-1)
  return Object.fromEntries(
    (values as readonly { key?: string; value?: string }[]).map(({ key = '', value = '' }) => [key, value]),
  )
}

const decoder = new TextDecoder('utf-8', { fatal: true })

function read(value: FieldValue, type: Type, budget: Budget): unknown {
  if (type === 'int' || type === 'flag') {
    if (typeof value !== 'number') throw unreadable('a number has another type')
    return type === 'int' ? value : value !== 0
  }
  if (typeof value === 'number') throw unreadable('a text has another type')
  if (type !== 'text') return decode(value, type, budget)
  try {
    return decoder.decode(value)
  } catch {
    throw unreadable('a text is not UTF-8')
  }
}

function eachField(bytes: Buffer, budget: Budget, visit: (field: number, value: FieldValue) => void): void {
  try {
    readFields(bytes, (field, value) => {
      if (++budget.fields > maxValues) throw tooMany('fields', maxValues)
      visit(field, value)
    })
  } catch (error) {
    throw error instanceof ProtobufError ? unreadable(error.message) : error
  }
}

const unreadable = (why: string): ApiError =>
  new ApiError('BadRequest', `The request body cannot be read as protobuf: ${why}`, {
    hint: 'Send JSON with Content-Type: application/json',
  })

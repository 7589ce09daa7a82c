// Reads an object that a client sends: checks its kind, metadata and spec, and finds fields that the schema does not have.
import { randomBytes } from 'node:crypto'
import * as t from 'typebox'
import { ApiError, badRequest, type Cause, invalid, invalidField } from '../../api/errors.ts'
import { nameSuffix, realNamespace } from '../../rules/names.ts'
import type { OwnerReference } from '../../store/records/record-meta.ts'
import type { Settings } from '../config/settings.ts'
import { countProblems, metadataProblems } from '../gate/record-metadata.ts'
import { refusalOf } from '../http/refusals.ts'
import { bodyValidator, type Validator } from '../http/validate.ts'
import { clientMetadata } from './changes/client-metadata.ts'
import {
  apiVersionOf,
  type Kind,
  type ObjectFields,
  type ObjectInput,
  type ObjectMeta,
  objectFields,
  type StringMap,
} from './kinds/kind.ts'
import type { KubeQuery } from './query.ts'
import { wrongKind } from './status.ts'

interface ReadOptions {
  readonly kind: Kind
  /** With aliases resolved. Undefined for kinds without a namespace. */
  readonly namespace: string | undefined
  readonly aliases: Settings['compat']['namespaceAliases']
  readonly fieldValidation: KubeQuery['fieldValidation']
  /** Fields that occur twice in the text of the body. */
  readonly duplicates: readonly string[]
  /** The object is part of a stored one: `checkSpec` checks the merged object later. */
  readonly isPart?: boolean
}

interface ReadResult {
  readonly object: ObjectInput
  /** Unknown and duplicate fields, for the header `Warning`. */
  readonly warnings: readonly string[]
}

export function readObject(
  body: unknown,
  { kind, namespace, aliases, fieldValidation, duplicates, isPart }: ReadOptions,
): ReadResult {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new ApiError('BadRequest', 'The request body is no object', {
      hint: 'Send an object with apiVersion and kind',
    })
  refuseMetadata(kind, countProblems(objectFields((body as ObjectFields).metadata), maxComputed))
  const fields = withoutNulls(body as ObjectFields)
  checkKind(kind, fields)
  const metadata = objectFields(fields.metadata)
  const { namespace: ofObject } = metadata
  if (
    typeof ofObject === 'string' &&
    ofObject !== '' &&
    namespace !== undefined &&
    realNamespace(ofObject, aliases) !== namespace
  )
    throw new ApiError(
      'BadRequest',
      `The namespace of the object (${ofObject}) does not match the namespace of the request`,
    )
  const name = nameIn(metadata)
  if (!validateMetadata({ metadata })) throw violationOf(validateMetadata)
  const { labels = {}, annotations = {}, finalizers = [], ownerReferences = [] } = metadata as Partial<ObjectMeta>
  const object: ObjectInput = {
    ...fields,
    metadata: {
      ...metadata,
      name,
      labels,
      annotations,
      finalizers: [...new Set(finalizers)],
      ownerReferences: ownersOf(ownerReferences),
    },
  }
  checkLabels(kind, object.metadata.labels)
  refuseMetadata(kind, metadataProblems(clientMetadata(kind, object)))
  const all =
    fieldValidation === 'Ignore'
      ? []
      : [
          ...unknownFields(fields, shapeOf(kind), '').map((field) => `unknown field "${field}"`),
          ...duplicates.map((field) => `duplicate field "${field}"`),
        ]
  const faults = all.length > maxNamed ? [...all.slice(0, maxNamed), 'and more fields'] : all
  if (faults.length > 0 && fieldValidation === 'Strict')
    throw new ApiError(
      'BadRequest',
      `${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}: strict decoding error: ${faults.join(', ')}`,
    )
  if (!isPart) checkSpec(kind, fields)
  return { object, warnings: faults }
}

function refuseMetadata(kind: Kind, causes: readonly Cause[]): void {
  if (causes.length === 0) return
  throw invalid(
    kind.plural,
    causes.map((cause) => ({ ...cause, field: `metadata.${cause.field}` })),
  )
}

function checkKind(kind: Kind, { apiVersion, kind: name }: ObjectFields): void {
  const isRight =
    (apiVersion === undefined || apiVersion === apiVersionOf(kind)) && (name === undefined || name === kind.kind)
  // String(…) of an object would call a function `toString` that the client sent.
  const textOf = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
  if (!isRight) throw wrongKind(kind, `${textOf(apiVersion)} ${textOf(name)}`.trim().slice(0, 200))
}

const withoutNulls = (fields: ObjectFields): ObjectFields =>
  Object.fromEntries(
    Object.entries(fields)
      .filter(([, value]) => value !== null)
      .map(([name, value]) => [
        name,
        typeof value === 'object' && !Array.isArray(value) ? withoutNulls(value as ObjectFields) : value,
      ]),
  )

function nameIn({ name, generateName }: ObjectFields): string {
  if (typeof name === 'string' && name !== '') return name
  if (typeof generateName === 'string' && generateName !== '') return ''
  const message = 'Specify metadata.name or metadata.generateName'
  throw invalid('', [{ field: 'metadata.name', reason: 'FieldValueRequired', message }])
}

/** The prefix and five random characters, as Kubernetes generates names. */
export const generatedName = (prefix: string): string => `${prefix.slice(0, 58)}${nameSuffix(randomBytes(5))}`

const Texts = t.Optional(t.Object({}, { additionalProperties: t.String() }))
const Name = t.String({ minLength: 1, maxLength: 253 })
const Metadata = t.Object({
  labels: Texts,
  annotations: Texts,
  finalizers: t.Optional(t.Array(t.String())),
  ownerReferences: t.Optional(t.Array(t.Object({ apiVersion: Name, kind: Name, name: Name, uid: Name }))),
})
const validateMetadata = bodyValidator(t.Object({ metadata: Metadata }))

const ownerOf = ({ apiVersion, kind, name, uid, controller, blockOwnerDeletion }: OwnerReference): OwnerReference => ({
  apiVersion,
  kind,
  name,
  uid,
  ...(controller === true && { controller }),
  ...(blockOwnerDeletion === true && { blockOwnerDeletion }),
})

function ownersOf(references: readonly OwnerReference[]): readonly OwnerReference[] {
  if (new Set(references.map(({ uid }) => uid)).size === references.length) return references.map(ownerOf)
  const message = 'Specify each uid in metadata.ownerReferences once'
  throw badRequest([invalidField('metadata.ownerReferences', message)])
}

function violationOf({ errors }: Validator): ApiError {
  const error = new Error('the object is not valid')
  return refusalOf(Object.assign(error, { validation: errors, validationContext: 'body' }))
}

const labelValue = /^(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$/

/** The rule of Kubernetes: selectors must be able to name every value. */
function checkLabels(kind: Kind, labels: StringMap): void {
  const causes = Object.entries(labels)
    .filter(([, value]) => !labelValue.test(value))
    .map(
      ([name]): Cause =>
        invalidField(
          'metadata.labels',
          `metadata.labels: the value of ${JSON.stringify(name.slice(0, 63))} must be at most 63 letters, digits, dashes, underscores and dots, with a letter or digit at both ends`,
        ),
    )
  if (causes.length > 0) throw invalid(kind.plural, causes.slice(0, 16))
}

const validators = new WeakMap<Kind, Validator>()

export function checkSpec(kind: Kind, fields: ObjectFields): void {
  const { status: _, ...schema } = kind.schema
  const validate = validators.get(kind) ?? bodyValidator(t.Object(optional(schema)))
  validators.set(kind, validate)
  if (validate(fields)) return
  const { causes, message } = violationOf(validate)
  throw new ApiError('Invalid', message, { causes })
}

const optional = (schema: Readonly<Record<string, t.TSchema>>): Record<string, t.TSchema> =>
  Object.fromEntries(Object.entries(schema).map(([name, each]) => [name, t.Optional(each)]))

interface Shape {
  readonly properties?: Readonly<Record<string, Shape>>
  /** True: other fields are allowed. */
  readonly additionalProperties?: unknown
  readonly items?: Shape
}

const any: Shape = {}
const metadataFields =
  'name generateName namespace labels annotations finalizers ownerReferences managedFields uid resourceVersion generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds selfLink'

const shapeOf = (kind: Kind): Shape => ({
  properties: {
    apiVersion: any,
    kind: any,
    metadata: { properties: Object.fromEntries(metadataFields.split(' ').map((name) => [name, any])) },
    status: any,
    ...(Object.fromEntries(Object.entries(kind.schema).filter(([name]) => name !== 'status')) as Readonly<
      Record<string, Shape>
    >),
  },
})

/** No kind computes more labels or annotations, which clients send back. */
const maxComputed = 16
/** Each is a header `Warning`. */
const maxNamed = 10

/** Paths such as `spec.cpus` of fields that the schema does not name. */
function unknownFields(value: unknown, shape: Shape, path: string): string[] {
  const found: string[] = []
  const look = (each: unknown, { properties, additionalProperties, items }: Shape, at: string): void => {
    if (found.length > maxNamed || typeof each !== 'object' || each === null) return
    if (Array.isArray(each)) {
      if (items) for (const [index, part] of each.entries()) look(part, items, `${at}[${index}]`)
      return
    }
    if (!properties || additionalProperties === true) return
    for (const [name, part] of Object.entries(each)) {
      if (found.length > maxNamed) return
      const inside = at === '' ? name : `${at}.${name}`
      if (Object.hasOwn(properties, name)) look(part, properties[name] as Shape, inside)
      else found.push(inside.slice(0, 200))
    }
  }
  look(value, shape, path)
  return found
}

// Refusals as a Status of Kubernetes, with the paths of faulty fields in the object.
import { ApiError, type Cause } from '../../api/errors.ts'
import { apiVersionOf, type Kind, resourceName } from './kinds/kind.ts'

export interface About {
  readonly kind?: Kind | undefined
  readonly name?: string | undefined
  /** The request has an object, so a missing record that the object names makes the object invalid. */
  readonly isWrite?: boolean
}

/** Reasons that Kubernetes does not have → a reason that its clients know. */
const reasons: Readonly<Record<string, string>> = { Gone: 'Gone', RangeNotSatisfiable: 'BadRequest' }

export function statusObject(refusal: ApiError, about: About, requestId: string) {
  const status = asKubernetes(refusal, about)
  const { kind } = about
  const { causes, retryAfterSeconds, hint } = status.options
  const name = about.name ?? status.options.name
  const details = {
    ...(name && { name }),
    ...(kind && { ...(kind.group !== '' && { group: kind.group }), kind: kind.plural }),
    ...(causes && { causes: causes.map((cause) => withPath(cause, kind)) }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  }
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: hint === undefined ? status.message : `${status.message}. ${hint}`,
    reason: reasons[status.reason] ?? status.reason,
    ...(Object.keys(details).length > 0 && { details }),
    code: status.code,
    requestId,
  }
}

/** Gives a refusal the reason and message that Kubernetes would give it, which clients match. */
function asKubernetes(refusal: ApiError, { kind, name = '', isWrite }: About): ApiError {
  if (!kind) return refusal
  const { reason, options } = refusal
  const isOfItself = options.name === undefined || options.name === name || options.kind === undefined
  if (reason === 'NotFound' && isWrite && options.kind !== 'namespaces' && !isOfItself)
    return new ApiError('Invalid', `${kind.kind} "${name}" is invalid: ${refusal.message}`, {
      ...options,
      causes: [{ field: 'spec', reason: 'FieldValueNotFound', message: refusal.message }],
    })
  if (reason === 'AlreadyExists' && isOfItself)
    return new ApiError('AlreadyExists', `${resourceName(kind)} "${name}" already exists`, withoutHint(options))
  if (reason === 'Invalid' && isWrite)
    return new ApiError('Invalid', `${kind.kind} "${name}" is invalid: ${refusal.message}`, options)
  return refusal
}

const withoutHint = ({ hint: _, ...options }: ApiError['options']) => options

export const objectNotFound = (kind: Kind, name: string): ApiError =>
  new ApiError('NotFound', `${resourceName(kind)} "${name.slice(0, 253)}" not found`, { kind: kind.plural, name })

/** Translates a field of a REST body to its path in the object, such as `node` to `spec.nodeName`. */
function withPath(cause: Cause, kind: Kind | undefined): Cause {
  const { field } = cause
  if (!kind || field.startsWith('.') || /^(?:metadata|spec|status|apiVersion|kind)\b/.test(field)) return cause
  return { ...cause, field: kind.fieldPaths?.[field] ?? `spec.${field}` }
}

export const conflictError = (kind: Kind, name: string): ApiError =>
  new ApiError(
    'Conflict',
    `Operation cannot be fulfilled on ${resourceName(kind)} "${name}": the object has been modified; apply your changes to the latest version and try again`,
    { kind: kind.plural, name },
  )

export const wrongKind = (kind: Kind, asked: string): ApiError =>
  new ApiError(
    'BadRequest',
    `The object is ${asked || 'without apiVersion and kind'}; this path takes ${apiVersionOf(kind)} ${kind.kind}`,
  )

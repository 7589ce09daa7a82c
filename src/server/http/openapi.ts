// Generates the OpenAPI 3.1 document from the table of operations and their TypeBox schemas. A test keeps its copy,
// docs/openapi.json, current.
import { codes, type Reason, Status } from '../../api/errors.ts'
import { publishedOperations } from '../../api/index.ts'
import { type Operation, paramNames } from '../../api/operation.ts'

type Json = Record<string, unknown>

/** Refusals of every operation. Those with a token also have 401 and 403. */
const everyRefusal: readonly Reason[] = ['BadRequest', 'TooManyRequests', 'InternalError', 'ServiceUnavailable']
const refusalTexts: Readonly<Partial<Record<Reason, string>>> = {
  BadRequest: 'The request cannot be read; `details.causes` names the faulty fields',
  Unauthorized: 'No valid token',
  Forbidden: 'Not allowed in this namespace or for this operation',
  NotFound: 'The record or the namespace does not exist',
  AlreadyExists: 'A record with this name already exists',
  Conflict: 'The current state does not allow it, or the record changed in the meantime',
  Expired: 'The requested version has expired: list again',
  Invalid: 'A value is invalid',
  RangeNotSatisfiable: '`Range` starts after the end; `Content-Range` gives the size',
  RequestEntityTooLarge: 'The body is too large',
  UnsupportedMediaType: '`Content-Type` cannot be read',
  TooManyRequests: 'Wait for the time in `Retry-After`',
  InternalError: 'Internal error; the server log has the cause under the request ID',
  ServiceUnavailable:
    'The service is unavailable; wait for the time in `Retry-After`, then check the record before you try again',
}

export function openApiDocument(version: string): Json {
  const components = new Map<string, Json>()
  const status = reference(Status, components)
  const paths: Record<string, Json> = {}
  for (const operation of publishedOperations) {
    const method = operation.method.toLowerCase()
    paths[operation.path] = { ...paths[operation.path], [method]: describe(operation, status, components) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'svc3',
      version,
      summary: 'A cluster VM service for macOS virtual machines',
      description:
        'Times are RFC 3339 in UTC. Lists are `{"items":[…]}` and take `limit`, `continue`, `labelSelector`, `fieldSelector` and `watch`. Errors are `Status` objects. With an `Idempotency-Key`, a POST can be repeated safely for 24 hours.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'This server' }],
    tags: [...new Set(publishedOperations.map(({ noun }) => noun))].map((name) => ({
      name,
      description: `Operations on ${name.replaceAll('-', ' ')}`,
    })),
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'Run `svc3 user get-token` to get a token',
        },
      },
      schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
    },
  }
}

function describe(operation: Operation, status: Json, components: Map<string, Json>): Json {
  const { id, noun, summary, description, allow, accounts, body, consumes = 'application/json', example } = operation
  return {
    operationId: id,
    tags: [noun],
    summary,
    ...(description && { description }),
    'x-allow': allow,
    ...(accounts && { 'x-allow-accounts': accounts }),
    ...(allow === 'anyone' && { security: [] }),
    parameters: parametersOf(operation, components),
    ...(body && {
      requestBody: {
        required: true,
        content: { [consumes]: { schema: reference(body, components), example: example.body } },
      },
    }),
    responses: responsesOf(operation, status, components),
  }
}

const ifNoneMatch = {
  name: 'If-None-Match',
  in: 'header',
  schema: { type: 'string' },
  description: '`ETag` of an earlier response; the answer is 304 if nothing changed',
}
const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
  description: 'A repeated request with the same key within 24 hours gets the first answer',
}

function parametersOf(operation: Operation, components: Map<string, Json>): Json[] {
  const { path, method, query, example } = operation
  const inPath = paramNames(path).map((name) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
    example: example.params?.[name],
  }))
  const inQuery = Object.entries((query as { properties?: object } | undefined)?.properties ?? {}).map(
    ([name, schema]) => ({
      name,
      in: 'query',
      schema: reference(schema as Json, components),
    }),
  )
  return [
    ...inPath,
    ...inQuery,
    ...(method === 'POST' ? [idempotencyKey] : []),
    ...(hasTag(operation) ? [ifNoneMatch] : []),
  ]
}

const hasTag = ({ method, produces, isStream, isDownload, isUpgrade }: Operation): boolean =>
  method === 'GET' && !produces && !isStream && !isDownload && !isUpgrade

const text = (description: string): Json => ({ description, schema: { type: 'string' } })
const tagHeaders = { ETag: text('Version of the content'), 'X-Request-Id': text('ID of the request in the server log') }
const listHeaders = { ...tagHeaders, 'Resource-Version': text('Version to watch from') }

function responsesOf(operation: Operation, status: Json, components: Map<string, Json>): Json {
  const example = operation.example.response
  const content: Record<string, Json> = {
    [operation.produces?.split(';')[0] ?? 'application/json']: {
      schema: reference(operation.response, components),
      example,
    },
    ...(operation.item && {
      'application/x-ndjson': { schema: { type: 'string', description: 'With `watch`: one change per line' } },
    }),
  }
  const headers = operation.item ? listHeaders : hasTag(operation) ? tagHeaders : undefined
  const responses: Record<string, Json> = {
    [operation.status]: { description: 'Done', ...(headers && { headers }), content },
  }
  for (const [code, description] of Object.entries(operation.also ?? {})) responses[code] = { description, content }
  if (hasTag(operation)) responses[304] = { description: 'Nothing changed since the `ETag` of the request' }
  for (const reason of refusalsOf(operation)) {
    const code = codes[reason]
    const meaning = refusalTexts[reason] ?? reason
    const other = responses[code]
    if (other && String(code) in (operation.also ?? {})) continue
    const description = other ? `${other.description}. ${meaning}` : meaning
    responses[code] = { description, content: { 'application/json': { schema: status } } }
  }
  return responses
}

/** General refusals, those that follow from a token, a body, a path or pages, and the operation's own. */
function refusalsOf({ id, method, path, allow, body, query, refuses }: Operation): ReadonlySet<Reason> {
  const isProbe = id === 'getHealth' || id === 'getReadiness'
  const denied: readonly Reason[] = allow === 'anyone' ? [] : ['Unauthorized', 'Forbidden']
  const general = everyRefusal.filter((reason) => !isProbe || reason !== 'TooManyRequests')
  const ofBodies: readonly Reason[] = body ? ['RequestEntityTooLarge', 'Invalid'] : []
  const ofPaths: readonly Reason[] = path.includes('{') ? ['NotFound'] : []
  const ofTypes: readonly Reason[] = method === 'GET' ? [] : ['UnsupportedMediaType']
  const ofPages: readonly Reason[] = Object.hasOwn(
    (query as { properties?: object } | undefined)?.properties ?? {},
    'continue',
  )
    ? ['Expired']
    : []
  return new Set([...general, ...denied, ...ofBodies, ...ofPaths, ...ofTypes, ...ofPages, ...refuses])
}

/** Turns schemas with a title, at any depth, into components. */
function reference(schema: object, components: Map<string, Json>): Json {
  const plain = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, within(value, components)]))
  const title = plain.title
  if (typeof title !== 'string') return plain
  components.set(title, plain)
  return { $ref: `#/components/schemas/${title}` }
}

function within(value: unknown, components: Map<string, Json>): unknown {
  if (Array.isArray(value)) return value.map((each) => within(each, components))
  if (typeof value !== 'object' || value === null) return value
  return reference(value, components)
}

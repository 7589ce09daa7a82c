// OpenAPI v3 of each group, from the schemas of the table of kinds. `kubectl explain` reads it, and kubectl learns from it
// that the server validates fields.
import { createHash } from 'node:crypto'
import { apiVersionOf, type Kind, verbsOf } from './kinds/kind.ts'

const prefixOf = ({ group, version }: Pick<Kind, 'group' | 'version'>): string =>
  group === '' ? `api/${version}` : `apis/${group}/${version}`

/** `com.macstadium.orka.v1.Image`, the name that client generators expect. */
const schemaName = ({ group, version, kind }: Kind): string =>
  [...(group === '' ? ['io', 'k8s', 'api', 'core'] : group.split('.').toReversed()), version, kind].join('.')

const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` })
const gvk = ({ group, version, kind }: Kind) => ({ group, version, kind })
const metaName = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'
const map = { type: 'object', additionalProperties: { type: 'string' } }

const ObjectMeta = {
  type: 'object',
  description: 'Metadata that every object has',
  properties: {
    name: { type: 'string', description: 'Unique in its namespace' },
    generateName: { type: 'string', description: 'Prefix of a name that the server makes' },
    namespace: { type: 'string' },
    labels: { ...map, description: 'Keys and values to select by' },
    annotations: { ...map, description: 'Keys and values that nothing selects by' },
    uid: { type: 'string', description: 'Of this object and of none of the same name' },
    resourceVersion: { type: 'string', description: 'Changes with every change' },
    generation: { type: 'integer', format: 'int64', description: 'Rises with every change of the spec' },
    creationTimestamp: { type: 'string', format: 'date-time' },
    deletionTimestamp: { type: 'string', format: 'date-time' },
    deletionGracePeriodSeconds: { type: 'integer', format: 'int64' },
    finalizers: {
      type: 'array',
      items: { type: 'string' },
      description: 'A deletion waits until there are none',
      'x-kubernetes-list-type': 'set',
      'x-kubernetes-patch-strategy': 'merge',
    },
    ownerReferences: {
      type: 'array',
      items: { type: 'object' },
      description: 'Objects that this one belongs to; kept for clients',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
      'x-kubernetes-patch-merge-key': 'uid',
      'x-kubernetes-patch-strategy': 'merge',
    },
    managedFields: { type: 'array', items: { type: 'object' }, description: 'Who manages which fields' },
  },
}

/** The documents as text, by path below /openapi/v3, such as `apis/orka.macstadium.com/v1`. */
export function openApiDocuments(kinds: readonly Kind[], version: string): ReadonlyMap<string, string> {
  const groups = Map.groupBy(kinds, prefixOf)
  return new Map(
    [...groups].map(([prefix, members]) => [prefix, JSON.stringify(document(prefix, members, version))] as const),
  )
}

export const openApiIndex = (documents: ReadonlyMap<string, string>) => ({
  paths: Object.fromEntries(
    [...documents].map(([prefix, text]) => [
      prefix,
      {
        serverRelativeURL: `/openapi/v3/${prefix}?hash=${createHash('sha256').update(text).digest('hex').slice(0, 32).toUpperCase()}`,
      },
    ]),
  ),
})

function document(prefix: string, kinds: readonly Kind[], version: string) {
  const paths = kinds.flatMap((kind) => {
    const scope = kind.scope === 'cluster' ? '' : '/namespaces/{namespace}'
    const list = `/${prefix}${scope}/${kind.plural}`
    return [
      [list, listPath(kind)],
      [`${list}/{name}`, itemPath(kind)],
    ] as const
  })
  const schemas = kinds.flatMap((kind) => [
    [schemaName(kind), objectSchema(kind)] as const,
    [`${schemaName(kind)}List`, listSchema(kind)] as const,
  ])
  return {
    openapi: '3.0.0',
    info: { title: 'svc3', version },
    paths: Object.fromEntries(paths),
    components: { schemas: Object.fromEntries([...schemas, [metaName, ObjectMeta]]) },
  }
}

const objectSchema = (kind: Kind) => ({
  type: 'object',
  description: kind.description,
  properties: {
    apiVersion: { type: 'string', description: apiVersionOf(kind) },
    kind: { type: 'string', description: kind.kind },
    metadata: { allOf: [reference(metaName)], default: {}, description: 'Metadata that every object has' },
    ...Object.fromEntries(Object.entries(kind.schema).map(([name, schema]) => [name, plainSchema(schema)])),
  },
  'x-kubernetes-group-version-kind': [gvk(kind)],
})

const listSchema = (kind: Kind) => ({
  type: 'object',
  properties: {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { type: 'object' },
    items: { type: 'array', items: reference(schemaName(kind)) },
  },
  'x-kubernetes-group-version-kind': [{ ...gvk(kind), kind: `${kind.kind}List` }],
})

/** A schema without the fields of TypeBox. */
function plainSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(plainSchema)
  if (typeof schema !== 'object' || schema === null) return schema
  const entries = Object.entries(schema).filter(([name]) => !name.startsWith('~') && name !== 'title')
  const plain = Object.fromEntries(entries.map(([name, value]) => [name, plainSchema(value)]))
  // OpenAPI 3.0 has no patternProperties, which TypeBox uses for maps.
  if ('patternProperties' in plain) {
    const { patternProperties, ...rest } = plain
    return { ...rest, additionalProperties: Object.values(patternProperties as object)[0] }
  }
  return plain
}

const parameters = ['dryRun', 'fieldManager', 'fieldValidation'].map((name) => ({
  name,
  in: 'query',
  schema: { type: 'string', uniqueItems: true },
}))

const content = (kind: Kind) => ({ 'application/json': { schema: reference(schemaName(kind)) } })
const answers = (kind: Kind, status: string) => ({ [status]: { description: 'OK', content: content(kind) } })

function operation(kind: Kind, verb: string, status = '200', hasBody = false) {
  return {
    operationId: `${verb}${kind.scope === 'cluster' ? '' : 'Namespaced'}${kind.kind}`,
    ...(hasBody && { requestBody: { content: content(kind), required: true } }),
    parameters,
    responses: answers(kind, status),
    'x-kubernetes-action': verb,
    'x-kubernetes-group-version-kind': gvk(kind),
  }
}

const listPath = (kind: Kind) => ({
  get: operation(kind, 'list'),
  ...(verbsOf(kind).includes('create') && { post: operation(kind, 'post', '201', true) }),
  parameters: kind.scope === 'cluster' ? [] : [pathParameter('namespace')],
})

/** Lists `patch` for every kind, because kubectl reads the parameters of `patch` before it creates an object. */
const itemPath = (kind: Kind) => ({
  get: operation(kind, 'get'),
  ...(verbsOf(kind).includes('delete') && { delete: operation(kind, 'delete') }),
  patch: operation(kind, 'patch', '200', true),
  parameters: [...(kind.scope === 'cluster' ? [] : [pathParameter('namespace')]), pathParameter('name')],
})

const pathParameter = (name: string) => ({ name, in: 'path', required: true, schema: { type: 'string' } })

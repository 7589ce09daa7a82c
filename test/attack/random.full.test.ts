// Random requests to every operation of the REST API and every kind of the Kubernetes API, by every kind of caller.
import * as t from 'typebox'
import { allOperations } from '../../src/api/index.ts'
import type { Operation } from '../../src/api/operation.ts'
import { kinds } from '../../src/server/kubernetes/kinds/index.ts'
import { apiVersionOf, type Kind } from '../../src/server/kubernetes/kinds/kind.ts'
import type { Attacker } from './attacker.ts'
import { randomBody, randomText, randomValue, withOneChange } from './random-values.ts'
import { attackAll } from './suite.ts'
import { startTarget, type Target, team } from './target.ts'

/** Watches never end, disks have any size, and an upload of random bytes is another door. */
const isPlain = ({ allow, isUpgrade, isUpload, isDownload, consumes }: Operation): boolean =>
  !isUpgrade && !isUpload && !consumes && (!isDownload || allow === 'agent')

const operations = allOperations.filter(isPlain)
const agentOperations = operations.filter(({ allow }) => allow === 'agent')

/** The example of a body, without hosts of others: a server connects to what its administrators name. */
const exampleOf = ({ example }: Operation): unknown =>
  JSON.parse(
    JSON.stringify(example.body ?? null)
      .replaceAll(/https:\/\/[\w.]+/g, 'http://127.0.0.1:1')
      .replaceAll('ghcr.io', '127.0.0.1:1'),
  )

/** Most names are those of things that exist. */
function pathOf({ path, example }: Operation, { random }: Attacker): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    if (name === 'namespace') return random.chance(0.9) ? team : encodeURIComponent(wellFormed(randomText(random)))
    const text = random.chance(0.3) ? (example.params?.[name] ?? 'any') : randomText(random)
    return encodeURIComponent(wellFormed(text).slice(0, 2_000))
  })
}

const wellFormed = (text: string): string => text.toWellFormed()
/** Random objects have a field toString that is no function. */
const asText = (value: unknown): string => wellFormed(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))

/** Parameters that make a request wait for something. */
const waiting: Readonly<Record<string, unknown>> = { wait: false, watch: false, follow: false, onQuota: 'refuse' }

function queryOf(schema: t.TSchema | undefined, { random }: Attacker): string {
  const value = schema && random.chance(0.5) ? randomValue(schema, random) : {}
  if (typeof value !== 'object' || value === null) return `?${encodeURIComponent(asText(value).slice(0, 500))}`
  const { properties = {} } = (schema ?? {}) as { readonly properties?: object }
  const values = { ...value, ...Object.fromEntries(Object.entries(waiting).filter(([name]) => name in properties)) }
  const words = Object.entries(values).map(
    ([name, each]) => `${encodeURIComponent(wellFormed(name))}=${encodeURIComponent(asText(each))}`,
  )
  return `?${words.join('&').slice(0, 4_000)}`
}

function headersOf({ random }: Attacker): Record<string, string> {
  if (random.chance(0.7)) return {}
  return random.pick<Record<string, string>>([
    { 'idempotency-key': `k${random.integer(0, 50)}` },
    { 'if-match': '"1"' },
    { 'if-none-match': '*' },
    { range: 'bytes=5-1,0-,-9999999999999999999' },
    { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' },
    { accept: 'text/html;q=x, */*;q=-1' },
    { 'content-type': 'application/json; charset=utf-7' },
    { 'content-type': 'text/plain' },
    { 'accept-encoding': 'gzip, br;q=0' },
    { 'x-forwarded-for': '1.2.3.4, '.repeat(200) },
    { expect: '100-continue' },
  ])
}

type Person = keyof Target['tokens'] | 'anonymous'

/** The limit of one address would refuse nearly all requests without a token. */
const addressOf = (person: Person, { random }: Attacker): string | undefined =>
  person === 'anonymous' ? `127.9.0.${random.integer(1, 40)}` : undefined

/** An administrator's own operations; developers and others try them as well. */
const forAdministrators: readonly Operation['allow'][] = ['admin', 'agent', 'server']

async function callOne(attacker: Attacker, { apiUrl, tokens }: Target, person: Person): Promise<void> {
  const { random } = attacker
  const operation = random.pick(person === 'node' && random.chance(0.8) ? agentOperations : operations)
  const { method, allow, body, query } = operation
  // The namespace of the attack must survive.
  const isFatal = method === 'DELETE' && forAdministrators.includes(allow) && person === 'admin'
  const token = person === 'anonymous' ? undefined : tokens[isFatal ? 'developer' : person]
  const url = `${apiUrl}${pathOf(operation, attacker)}${queryOf(query, attacker)}`
  const value = () => (random.chance(0.5) ? withOneChange(exampleOf(operation), random) : randomValue(body, random))
  const sent = body && method !== 'GET' ? { body: randomBody(value(), random) } : {}
  await attacker.call(method, url, {
    token,
    address: addressOf(person, attacker),
    headers: headersOf(attacker),
    ...sent,
  })
}

const patchTypes = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
  'application/json',
  'application/vnd.kubernetes.protobuf',
]

const Metadata = t.Object({
  name: t.Optional(t.String()),
  generateName: t.Optional(t.String()),
  labels: t.Optional(t.Record(t.String(), t.String())),
  annotations: t.Optional(t.Record(t.String(), t.String())),
  finalizers: t.Optional(t.Array(t.String())),
  resourceVersion: t.Optional(t.String()),
  ownerReferences: t.Optional(
    t.Array(t.Object({ kind: t.String(), name: t.String(), uid: t.String(), apiVersion: t.String() })),
  ),
  managedFields: t.Optional(
    t.Array(
      t.Object({
        manager: t.String(),
        operation: t.Enum(['Apply', 'Update']),
        fieldsV1: t.Record(t.String(), t.Unknown()),
      }),
    ),
  ),
})

const KubeQuery = t.Object({
  limit: t.Optional(t.Integer()),
  continue: t.Optional(t.String()),
  labelSelector: t.Optional(t.String()),
  fieldSelector: t.Optional(t.String()),
  resourceVersion: t.Optional(t.String()),
  resourceVersionMatch: t.Optional(t.Enum(['Exact', 'NotOlderThan'])),
  dryRun: t.Optional(t.Enum(['All'])),
  fieldManager: t.Optional(t.String()),
  fieldValidation: t.Optional(t.Enum(['Strict', 'Warn', 'Ignore'])),
  force: t.Optional(t.Boolean()),
  propagationPolicy: t.Optional(t.String()),
})

const JsonPatch = t.Array(
  t.Object({
    op: t.Enum(['add', 'remove', 'replace', 'move', 'copy', 'test']),
    path: t.Enum([
      '/metadata/labels',
      '/metadata/annotations/a',
      '/spec/cpu',
      '/spec/x',
      '/',
      '/metadata',
      '/metadata/finalizers/-',
    ]),
    from: t.Optional(t.Enum(['/metadata', '/spec', '/metadata/labels'])),
    value: t.Optional(t.Unknown()),
  }),
)

function urlOf(kind: Kind, { random }: Attacker): { readonly list: string; readonly item: string } {
  const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`
  const list = `${root}${kind.scope === 'cluster' ? '' : `/namespaces/${team.replace('svc-', 'orka-')}`}/${kind.plural}`
  const name = encodeURIComponent(wellFormed(randomText(random)).slice(0, 500))
  const part = random.chance(0.1) ? random.pick(['/status', '/log', '/scale']) : ''
  return { list, item: `${list}/${name}${part}` }
}

async function touchOne(attacker: Attacker, { kubernetesUrl, tokens }: Target, person: Person): Promise<void> {
  const { random } = attacker
  const kind = random.pick(kinds)
  const { list, item } = urlOf(kind, attacker)
  const method = random.pick(['GET', 'GET', 'POST', 'POST', 'PUT', 'PATCH', 'PATCH', 'DELETE'])
  // As above: administrators delete no namespaces and no role bindings.
  const isFatal = method === 'DELETE' && person === 'admin'
  const token = person === 'anonymous' ? undefined : tokens[isFatal ? 'developer' : person]
  const object = t.Object({ metadata: Metadata, ...kind.schema })
  const isPatch = method === 'PATCH'
  const schema = isPatch && random.chance(0.3) ? JsonPatch : object
  const grown = randomValue(schema, random)
  const whole = { apiVersion: apiVersionOf(kind), kind: kind.kind, ...(typeof grown === 'object' ? grown : {}) }
  const body = randomBody(Array.isArray(grown) || random.chance(0.05) ? grown : whole, random)
  const url = `${kubernetesUrl}${method === 'POST' || random.chance(0.2) ? list : item}${queryOf(KubeQuery, attacker)}`
  const type = isPatch ? { 'content-type': random.pick(patchTypes) } : {}
  await attacker.call(method, url, {
    token,
    address: addressOf(person, attacker),
    headers: { ...headersOf(attacker), ...type },
    ...(method !== 'GET' && { body }),
  })
}

const people: readonly Person[] = ['anonymous', 'lowest', 'developer', 'admin', 'node']

attackAll<Target>('random requests', {
  start: startTarget,
  doors: people.flatMap((person) => [
    {
      name: `random requests: ${person}, REST`,
      attack: (attacker: Attacker, target: Target) => attacker.repeat(10, () => callOne(attacker, target, person)),
    },
    {
      name: `random requests: ${person}, Kubernetes`,
      attack: (attacker: Attacker, target: Target) => attacker.repeat(10, () => touchOne(attacker, target, person)),
    },
  ]),
})

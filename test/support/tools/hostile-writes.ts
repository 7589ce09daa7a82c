// Every way to send a body to the service, from the tables of operations, kinds and calls of 2.4.x, with the shapes of body that
// each may be sent. A new operation, kind or call is in here without being added.
import { randomUUID } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { vmRecord } from '../../../bench/records.ts'
import { allOperations } from '../../../src/api/index.ts'
import type { Operation } from '../../../src/api/operation.ts'
import { legacyCalls } from '../../../src/legacy/find.ts'
import { message, messageField } from '../../../src/platform/protobuf.ts'
import { patches } from '../../../src/server/kubernetes/changes/patch.ts'
import { kinds } from '../../../src/server/kubernetes/kinds/index.ts'
import { apiVersionOf, type Kind, verbsOf } from '../../../src/server/kubernetes/kinds/kind.ts'
import { decodable, protobufType } from '../../../src/server/kubernetes/protobuf.ts'
import { reviews } from '../../../src/server/kubernetes/reviews.ts'
import { nothingYet } from '../../../src/store/records/push-jobs.ts'
import { startKubernetes } from '../rigs/kubernetes.ts'
import { startService } from '../rigs/service.ts'
import { addImage, startNode } from '../stand-ins/node.ts'
import { filled, jsonShapes, patchShapes, type Shape } from './hostile-bodies.ts'

export interface Way {
  readonly name: string
  readonly wire: 'rest' | 'kubernetes'
  readonly as: 'admin' | 'agent' | 'server' | 'anyone'
  readonly method: string
  readonly url: string
  readonly type: string
  readonly shapes: readonly Shape[]
}

/** One shape of `step`, others for each way: what reads them is the same for all. */
const someOf = (shapes: readonly Shape[], way: number, step = 4): readonly Shape[] =>
  shapes.filter((_, index) => (index + way) % step === 0)

const json = 'application/json'
const namespace = 'svc-default'

const formShapes: readonly Shape[] = Object.entries({
  'a form with many fields': (bytes: number) => filled(bytes, (index) => `k${index}=1`).replaceAll(',', '&'),
  'a form with one field many times': (bytes: number) => 'a[]=1&'.repeat(bytes / 6),
  'a form with a long field': (bytes: number) => `email=${'%41'.repeat(bytes / 3)}`,
  'a form with brackets': (bytes: number) => `a${'['.repeat(bytes)}=1`,
}).map(([name, body]) => ({ name, body }))

const part = (name: string, content: string): string =>
  `--b\r\nContent-Disposition: form-data; name="${name}"; filename="a"\r\n\r\n${content}\r\n`
const multipartShapes: readonly Shape[] = Object.entries({
  // A socket brings pieces of 64 KiB, and the rest of a form that is refused is not parsed. The rig sends all at once.
  'many parts': (bytes: number) => part('x', '').repeat(Math.min(bytes, 131_072) / part('x', '').length),
  'a long part': (bytes: number) => part('cert_path', 'a'.repeat(bytes)),
  'a long unknown part': (bytes: number) => part('x', '\r\n--'.repeat(bytes / 4)),
  'many headers': (bytes: number) => `--b\r\n${'a: b\r\n'.repeat(bytes / 6)}`,
}).map(([name, body]) => ({ name, body: (bytes) => `${body(bytes)}--b--\r\n` }))
const multipart = { type: 'multipart/form-data; boundary=b', shapes: multipartShapes }

const authors: Readonly<Partial<Record<Operation['allow'], Way['as']>>> = {
  agent: 'agent',
  server: 'server',
  anyone: 'anyone',
}

function restWays(): Way[] {
  return (allOperations as readonly Operation[])
    .filter(({ body, isUpload }) => body && !isUpload)
    .map((operation) => {
      const { id, method, allow, body, consumes, query, example } = operation
      const params: Readonly<Record<string, string>> = { ...example.params, namespace }
      const place = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
        encodeURIComponent(params[name] ?? 'x'),
      )
      const { wait } = (query as { properties?: { wait?: object } } | undefined)?.properties ?? {}
      return {
        name: id,
        wire: 'rest',
        as: authors[allow] ?? 'admin',
        method,
        url: `${place}${wait ? '?wait=false' : ''}`,
        ...(consumes ? multipart : { type: json, shapes: jsonShapes(example.body, body as object) }),
      }
    })
}

/** The fields that handlers of 2.4.x calls read. */
function legacyFields(): string[] {
  const folder = path.resolve(import.meta.dirname, '../../../src/server/legacy')
  const source = fs.globSync('*.ts', { cwd: folder }).map((file) => fs.readFileSync(path.join(folder, file), 'utf8'))
  const readers = /\b(\w+): (?:text|number|integer|flag|textList|metadataItems)\b/g
  return [...new Set(source.flatMap((text) => [...text.matchAll(readers)].map(([, name = '']) => name)))]
}

function legacyWays(): Way[] {
  const texts = Object.fromEntries(legacyFields().map((name) => [name, { type: 'string' }]))
  const body = {
    orka_vm_name: 'myorkavm',
    orka_base_image: 'intel',
    orka_image: 'made',
    orka_cpu_core: 2,
    vcpu_count: 2,
  }
  // What a call reads is in its handler, so each gets all shapes of no field, and one call those of each field.
  const shared = [...jsonShapes(body, {}), ...formShapes]
  return legacyCalls
    .filter(({ call }) => call.method !== 'GET')
    .flatMap(({ row, call }, index): Way[] => {
      const [first] = row.operations as readonly Operation[]
      if (first?.isUpload) return []
      const url = (call.path.split('?')[0] ?? '').replaceAll(/\{\w+\}/g, 'x')
      const way = { name: `${call.method} ${call.path}`, wire: 'rest', as: 'admin', method: call.method, url } as const
      if (first?.consumes) return [{ ...way, ...multipart }]
      const isCreate = call.path === '/resources/vm/create'
      return [
        { ...way, type: json, shapes: isCreate ? jsonShapes(body, { properties: texts }) : someOf(shared, index) },
      ]
    })
}

const texts = { type: 'object', patternProperties: { '': { type: 'string' } } }
const metadataSchema = {
  properties: {
    name: { type: 'string' },
    labels: texts,
    annotations: texts,
    finalizers: { type: 'array', items: { type: 'string' } },
    ownerReferences: {
      type: 'array',
      items: {
        type: 'object',
        required: ['apiVersion', 'kind', 'name', 'uid'],
        properties: { apiVersion: {}, kind: {}, name: {}, uid: {} },
      },
    },
    managedFields: { type: 'array' },
  },
}

/** Names of objects that the rig has. */
const existing: Readonly<Record<string, string>> = {
  namespaces: namespace,
  nodes: 'node-1',
  rolebindings: 'svc-dev',
  orkanodes: 'node-1',
}
const preyName = 'prey'

/** Lists of managers in every shape, around an object. */
function managedShapes(object: object): Shape[] {
  const { metadata } = object as { metadata: object }
  const [before = '', behind = ''] = JSON.stringify({ ...object, metadata: { ...metadata, managedFields: 0 } }).split(
    '"managedFields":0',
  )
  const entry = (index: number, fields: string): string =>
    `{"manager":"m${index}","operation":"Update","fieldsV1":{${fields}}}`
  const lists: Readonly<Record<string, (bytes: number) => string>> = {
    'managers of many fields': (bytes) =>
      filled(bytes, (index) =>
        entry(
          index,
          filled(bytes / 65, (each) => `"f:a${each}":{}`),
        ),
      ),
    'managers of fields with long steps': (bytes) =>
      filled(bytes, (index) =>
        entry(index, `"f:${'a'.repeat(bytes / 200)}":{${filled(bytes / 200, (each) => `"f:a${each}":{}`)}}`),
      ),
    'many managers': (bytes) => filled(bytes, (index) => entry(index, '"f:a":{}')),
    'empty managers': (bytes) => filled(bytes, () => '{}'),
    'a manager of keyed items': (bytes) =>
      entry(
        0,
        filled(bytes, (index) => `"k:{\\"uid\\":\\"${index}\\"}":{".":{}}`),
      ),
  }
  return Object.entries(lists).map(([name, list]) => ({
    name,
    body: (bytes) => `${before}"managedFields":[${list(bytes)}]${behind}`,
  }))
}

function placeOf(kind: Kind): string {
  const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`
  return `${root}${kind.scope === 'cluster' ? '' : `/namespaces/${namespace}`}/${kind.plural}`
}

/** For each kind: its verbs with a body, in each content type. */
function kubernetesWays(): Way[] {
  return kinds.flatMap((kind, at): Way[] => {
    const verbs = verbsOf(kind)
    const name = existing[kind.plural] ?? preyName
    const of = (given: string) => ({
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      metadata: { name: given, labels: {}, annotations: {} },
      spec: { image: 'intel', sourceType: 'local', source: 'intel', tags: [], namespace },
    })
    const schema = { properties: { metadata: metadataSchema, ...(kind.schema as object) } }
    const shapes = (given: string) => [...jsonShapes(of(given), schema), ...managedShapes(of(given))]
    const way = { wire: 'kubernetes', as: 'admin', type: json } as const
    const [all, one] = [placeOf(kind), `${placeOf(kind)}/${name}`]
    const patchTypes = [...Object.keys(patches), 'application/apply-patch+yaml']
    const patching = (url: string, what: string): Way[] =>
      patchTypes.map((type) => ({
        ...way,
        name: `${what} ${kind.plural} ${type}`,
        method: 'PATCH',
        url,
        type,
        shapes: type.includes('json-patch')
          ? patchShapes
          : [
              ...someOf(shapes(name), type.length + what.length + at, 8),
              ...(type.includes('strategic') ? strategicShapes : []),
            ],
      }))
    const options = jsonShapes({ kind: 'DeleteOptions', preconditions: { uid: 'no' } }, {})
    return [
      ...(verbs.includes('create')
        ? [{ ...way, name: `create ${kind.plural}`, method: 'POST', url: `${all}?dryRun=All`, shapes: shapes('made') }]
        : []),
      ...(verbs.includes('update')
        ? [{ ...way, name: `update ${kind.plural}`, method: 'PUT', url: one, shapes: shapes(name) }]
        : []),
      ...(verbs.includes('patch') ? patching(`${one}?fieldManager=test`, 'patch') : []),
      ...(kind.hasStatus ? patching(`${one}/status`, 'patch status of') : []),
      ...(verbs.includes('delete')
        ? [{ ...way, name: `delete ${kind.plural}`, method: 'DELETE', url: `${one}?dryRun=All`, shapes: options }]
        : []),
      ...(verbs.includes('deletecollection')
        ? [{ ...way, name: `delete all ${kind.plural}`, method: 'DELETE', url: `${all}?dryRun=All`, shapes: options }]
        : []),
    ]
  })
}

const strategicShapes: readonly Shape[] = Object.entries({
  'items that are deleted': (bytes: number) =>
    `"$deleteFromPrimitiveList/finalizers":[${filled(bytes, (index) => `"a/${index}"`)}]`,
  'items in an order': (bytes: number) => `"$setElementOrder/finalizers":[${filled(bytes, (index) => `"a/${index}"`)}]`,
  'keys that are retained': (bytes: number) => `"$retainKeys":[${filled(bytes, (index) => `"a${index}"`)}]`,
  'items that are merged': (bytes: number) => `"ownerReferences":[${filled(bytes, (index) => `{"uid":"${index}"}`)}]`,
  'lists that are deleted from': (bytes: number) =>
    filled(bytes, (index) => `"$deleteFromPrimitiveList/a${index}":["b"]`),
}).map(([name, fields]) => ({ name, body: (bytes) => `{"metadata":{${fields(bytes)}}}` }))

/** Reviews, tokens, and whatever is read from protobuf. */
function otherWays(): Way[] {
  const way = { wire: 'kubernetes', as: 'admin', method: 'POST', type: json } as const
  const tokens = `/api/v1/namespaces/${namespace}/serviceaccounts/${preyName}/token?dryRun=All`
  const attributes = { resourceAttributes: { namespace, verb: 'get', resource: 'pods' } }
  const urls: Readonly<Record<string, string>> = {
    ...Object.fromEntries(
      reviews.map(({ group, version, plural, kind }) => [kind, `/apis/${group}/${version}/${plural}`]),
    ),
    TokenRequest: tokens,
    DeleteOptions: `/api/v1/namespaces/${namespace}/serviceaccounts/${preyName}?dryRun=All`,
    ...Object.fromEntries(
      kinds.filter(({ kind }) => decodable.includes(kind)).map((kind) => [kind.kind, `${placeOf(kind)}?dryRun=All`]),
    ),
  }
  const inJson = [...reviews.map(({ kind }) => kind), 'TokenRequest'].map((kind) => ({
    ...way,
    name: kind,
    url: urls[kind] ?? '',
    shapes: jsonShapes(
      { spec: { ...attributes, audiences: [] } },
      {
        properties: {
          spec: {
            properties: {
              namespace: {},
              expirationSeconds: {},
              audiences: {},
              resourceAttributes: { properties: { namespace: {}, verb: {}, resource: {} } },
            },
          },
        },
      },
    ),
  }))
  const inProtobuf = decodable.map((kind) => ({
    ...way,
    name: `${kind} in protobuf`,
    url: urls[kind] ?? '',
    ...(kind === 'DeleteOptions' && { method: 'DELETE' }),
    type: protobufType,
    shapes: protobufShapes(kind),
  }))
  return [...inJson, ...inProtobuf]
}

const field = (number: number, ...parts: readonly (Buffer | string)[]): Buffer =>
  messageField(number, Buffer.concat(parts.map((each) => Buffer.from(each as string))))

/** As latin1 text, because shapes are text. */
function protobufShapes(kind: string): Shape[] {
  const version = ['Namespace', 'ServiceAccount', 'DeleteOptions'].includes(kind)
    ? 'v1'
    : 'rbac.authorization.k8s.io/v1'
  const head = message(Buffer.from('k8s\0'), field(1, field(1, version), field(2, kind)))
  const many = (bytes: number, of: (index: number) => Buffer): Buffer => {
    const parts: Buffer[] = []
    for (let index = 0, size = 0; size < bytes; index++) {
      const part = of(index)
      parts.push(part)
      size += part.length
    }
    return Buffer.concat(parts)
  }
  const named = field(1, 'made')
  const metadata = (fields: Buffer) => field(1, named, fields)
  const bodies: Readonly<Record<string, (bytes: number) => Buffer>> = {
    'many labels': (bytes) => metadata(many(bytes, (index) => field(11, field(1, `a${index}`), field(2, 'b')))),
    'many annotations': (bytes) => metadata(many(bytes, (index) => field(12, field(1, `a${index}`)))),
    'one label many times': (bytes) => metadata(many(bytes, () => field(11, field(1, 'a'), field(2, 'b')))),
    'many owners': (bytes) => metadata(many(bytes, (index) => field(13, field(4, `${index}`)))),
    'many finalizers': (bytes) => metadata(many(bytes, (index) => field(14, `a/${index}`))),
    'a long name': (bytes) => field(1, field(1, 'a'.repeat(bytes))),
    'many specs': (bytes) => many(bytes, () => field(2)),
    'many subjects': (bytes) =>
      Buffer.concat([metadata(Buffer.alloc(0)), many(bytes, (index) => field(2, field(3, `a${index}`)))]),
    'many texts': (bytes) => many(bytes, () => field(5, 'All')),
    'unknown fields': (bytes) => many(bytes, () => field(99)),
  }
  return Object.entries(bodies).map(([name, body]) => ({
    name,
    body: (bytes) => message(head, field(2, body(bytes))).toString('latin1'),
  }))
}

export const ways: readonly Way[] = [...restWays(), ...legacyWays(), ...kubernetesWays(), ...otherWays()]

const payloadOf = ({ type }: Way, text: string): Buffer => Buffer.from(text, type === protobufType ? 'latin1' : 'utf8')

export interface WriteRig extends AsyncDisposable {
  /** Sends a body; returns the CPU time of this thread in milliseconds, and the status. */
  send(way: Way, text: string): Promise<{ readonly milliseconds: number; readonly status: number }>
}

/** The cost of an operation that waits for a node is before that. */
const maxWaitMs = 1_000

/** A service on both wires with an object of each kind. */
export async function startWriteRig(): Promise<WriteRig> {
  const limits = { requestsPerMinute: 1_000_000, anonymousPerMinute: 1_000_000 }
  const service = await startService({ settings: { legacy: { enabled: true }, limits }, logLevel: 'silent' })
  const kube = startKubernetes(service)
  const { collections } = service.services
  const node = await startNode(service)
  for (const image of ['intel', preyName]) await addImage(service, image, 'amd64')
  const at = '2026-11-15T09:00:00Z'
  const of = { name: preyName, namespace, owner: 'admin@example.com', createdAt: at }
  await collections.vms.create(namespace, preyName, { ...vmRecord(0), name: preyName })
  await collections.isos.create('', preyName, {
    ...of,
    description: '',
    sizeBytes: 1,
    source: '',
    sourceNamespace: namespace,
    updatedAt: at,
  } as never)
  await collections.pushJobs.create(namespace, preyName, {
    ...of,
    vm: 'a',
    vmUid: 'a',
    image: 'ghcr.io/a/b:c',
    capture: 'a',
    status: 'Running',
    progress: nothingYet,
    startedAt: at,
  })
  await collections.serviceAccounts.create(namespace, preyName, { ...of, uid: 'a' })
  const place = { internalUrl: 'https://127.0.0.1:1', apiUrl: 'https://127.0.0.1:1', version: '', startedAt: '' }
  await collections.servers.create('', 'other', { id: 'other', run: 'run', ...place, leaseMs: 8_000, beat: 0 })
  await service.call('POST', `/api/v1/namespaces/${namespace}/vmconfigs`, {
    body: { name: preyName, image: 'intel', cpu: 1 },
  })
  // Some of the bodies revoke tokens, so each is sent with a new token.
  const tokens: Readonly<Record<Way['as'], () => Promise<string | undefined>>> = {
    admin: () => service.tokenFor({ kind: 'user', name: 'admin@example.com', admin: true }),
    agent: async () => node.token,
    server: () => service.tokenFor({ kind: 'server', name: 'other', uid: 'run' }),
    anyone: async () => undefined,
  }
  const apps = { rest: service.app, kubernetes: kube.app }
  return {
    async send(way, text) {
      const token = await tokens[way.as]()
      const version =
        way.wire === 'kubernetes' && way.method === 'PUT'
          ? (await kube.call('GET', way.url)).body.metadata?.resourceVersion
          : undefined
      const payload = payloadOf(
        way,
        version === undefined ? text : text.replace('"metadata":{', `"metadata":{"resourceVersion":"${version}",`),
      )
      const headers = {
        'content-type': way.type,
        'idempotency-key': randomUUID(),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      }
      const before = process.threadCpuUsage()
      const answer = apps[way.wire].inject({
        method: way.method as 'POST',
        url: way.url,
        headers,
        ...(payload && { payload }),
      })
      const { statusCode } = await Promise.race([answer, sleep(maxWaitMs, { statusCode: 0 })])
      const { user, system } = process.threadCpuUsage(before)
      return { milliseconds: (user + system) / 1_000, status: statusCode }
    },
    [Symbol.asyncDispose]: async () => {
      await kube[Symbol.asyncDispose]()
      await service[Symbol.asyncDispose]()
    },
  }
}

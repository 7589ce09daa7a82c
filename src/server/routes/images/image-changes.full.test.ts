// Every write of every interface, taken from the tables of operations, kinds and calls of 2.4.x: only the callers whom
// the rule of rules/ownership.ts allows change an existing image or ISO. What clients keep with an image is theirs, too.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { type KubernetesRig, startKubernetes } from '../../../../test/support/rigs/kubernetes.ts'
import { type Answer, type CallOptions, startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { startNode, startScheduler } from '../../../../test/support/stand-ins/node.ts'
import { randomDisc } from '../../../../test/support/tools/disc.ts'
import { eventually } from '../../../../test/support/tools/eventually.ts'
import { allOperations } from '../../../api/index.ts'
import type { Operation } from '../../../api/operation.ts'
import { legacyCalls } from '../../../legacy/find.ts'
import type { ImageRecord } from '../../../store/records/fleet-records.ts'
import { withVersion } from '../../../store/records/image-versions.ts'
import { kubeImageKind, kubeIsoKind } from '../../kubernetes/kinds/images.ts'
import { type Kind, type KubeObject, verbsOf } from '../../kubernetes/kinds/kind.ts'

const all = '/api/v1/namespaces'
const callers = {
  'the owner, in another namespace': 'svc-away',
  'a person of the namespace': 'svc-home',
  'a service account of the namespace': 'svc-home',
  'a developer elsewhere': 'svc-away',
  'a service account elsewhere': 'svc-away',
  'an administrator': 'svc-away',
} as const
type Caller = keyof typeof callers
const everybody = Object.keys(callers) as Caller[]
const allowed: readonly Caller[] = everybody.filter((caller) => !caller.endsWith('elsewhere'))
const admins: readonly Caller[] = ['an administrator']

let service: TestService
let kube: KubernetesRig
let scheduler: AsyncDisposable
const tokens: Record<string, string> = {}

before(async () => {
  service = await startService({ settings: { legacy: { enabled: true } } })
  kube = startKubernetes(service)
  scheduler = startScheduler(service)
  const { serviceAccounts, roleBindings } = service.services.collections
  for (const [namespace, users] of [
    ['svc-home', ['person@example.com']],
    ['svc-away', ['owner@example.com', 'stranger@example.com']],
  ] as const) {
    await service.call('POST', all, { body: { name: namespace } })
    await service.call('POST', `${all}/${namespace}/rolebindings/svc-dev/subjects/add`, { body: { users } })
    const account = { name: 'ci', namespace, uid: `uid-of-${namespace}` }
    await serviceAccounts.create(namespace, 'ci', { ...account, createdAt: '' })
    tokens[`a service account ${namespace === 'svc-home' ? 'of the namespace' : 'elsewhere'}`] = await service.tokenFor(
      {
        kind: 'serviceaccount',
        ...account,
      },
    )
  }
  // The API of 2.4.x works in the default namespace.
  const accounts = ['svc-home', 'svc-away'].map((namespace) => ({ namespace, name: 'ci' }))
  const added = await service.call('POST', `${all}/svc-default/rolebindings/svc-dev/subjects/add`, {
    body: { serviceaccounts: accounts },
  })
  assert.equal(added.status, 200, added.text)
  assert.ok(roleBindings.get('svc-default', 'svc-dev'))
  for (const [caller, name] of [
    ['the owner, in another namespace', 'owner@example.com'],
    ['a person of the namespace', 'person@example.com'],
    ['a developer elsewhere', 'stranger@example.com'],
  ] as const)
    tokens[caller] = await service.tokenFor({ kind: 'user', name, admin: false })
  tokens['an administrator'] = service.adminToken
  for (const namespace of ['svc-home', 'svc-away', 'svc-default'])
    await startNode(service, {
      name: `node-of-${namespace}`,
      namespace,
      report: { architecture: 'arm64', cpu: 1_000, memoryMiB: 10_000_000, diskFreeGb: 1_000_000 },
    })
})
after(async () => {
  await scheduler[Symbol.asyncDispose]()
  await kube[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const at = '2026-11-15T08:00:00Z'
const secretMeta = {
  labels: { team: 'secret-label' },
  annotations: { 'example.com/note': 'secret-note' },
  managedFields: [
    {
      manager: 'secret-manager',
      operation: 'Update',
      apiVersion: 'orka.macstadium.com/v1',
      time: at,
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:metadata': { 'f:labels': { 'f:team': {} } } },
    },
  ],
} as const
const secrets = /secret-(?:label|note|manager)/
/** Also hidden from other namespaces. */
const origin = /owner@example\.com|svc-home/

/** No VM uses `idle`; VMs for captures are deployed from `used`. */
const names = ['idle', 'used'] as const

/** Puts the images and ISOs of both names into their first state. */
async function plant(change: Partial<ImageRecord>): Promise<void> {
  const { images, isos } = service.services.collections
  for (const collection of [images, isos])
    for (const name of names) {
      const first: ImageRecord = {
        name,
        description: 'As made',
        architecture: 'arm64',
        sizeBytes: 2 ** 30,
        recipe: 'tiny',
        owner: 'owner@example.com',
        createdAt: at,
        updatedAt: at,
        source: 'upload',
        sourceType: 'userUpload',
        sourceNamespace: 'svc-home',
        meta: secretMeta,
      }
      const record = { ...first, version: 2, versions: withVersion(first, { version: 2, at }), ...change }
      await collection.change(collection.key('', name), () => record)
    }
}

const snapshot = (): unknown => {
  const { images, isos } = service.services.collections
  return [images, isos].map((collection) => names.map((name) => collection.get('', name)?.value))
}

let vms = 0
/** Deploys a VM of `used`. */
async function deployed(namespace: string): Promise<string> {
  const name = `vm-${vms++}`
  const body = { name, image: 'used', cpu: 1, memory: 1 }
  const { status, text } = await service.call('POST', `${all}/${namespace}/vms`, { body })
  assert.equal(status, 201, text)
  return name
}

interface Write {
  readonly title: string
  call(caller: Caller): Promise<Answer>
}

const octets = { 'content-type': 'application/octet-stream' }
const asCaller = (caller: Caller) => ({ token: tokens[caller] ?? '' })

/** The body of the example, with the name of an existing image in place of a new one. */
const withName = (body: unknown, name: string): unknown =>
  typeof body === 'object' && body !== null
    ? Object.fromEntries(
        Object.entries(body).map(([field, value]) => [
          field,
          ['name', 'newName', 'imageName'].includes(field) ? name : value,
        ]),
      )
    : body

/** Calls that could change an image: they name one, a record or a VM, or they make an image. */
const couldChange = ({ method, path, isUpgrade, isStream, allow }: Operation): boolean =>
  method !== 'GET' &&
  !isUpgrade &&
  !isStream &&
  (allow === 'dev' || allow === 'user' || allow === 'admin') &&
  /\{(?:image|iso|record|remoteimage|remoteiso|vm|upload)\}|\/(?:images|isos|uploads?)(?:\/|$)/.test(path) &&
  !(method === 'DELETE' && path.endsWith('{vm}'))

const restWrites: readonly Write[] = allOperations.filter(couldChange).flatMap((operation) => {
  const { id, path, method, example, isUpload } = operation
  const ofKinds = path.includes('{kind}') ? ['images', 'isos'] : ['']
  return ofKinds.map((kind) => ({
    title: `${id} ${kind}`.trim(),
    async call(caller: Caller) {
      const namespace = callers[caller]
      const isOfVm = path.includes('{vm}')
      const name = isOfVm ? 'used' : 'idle'
      const params: Readonly<Record<string, string>> = {
        ...example.params,
        namespace,
        kind,
        image: name,
        iso: name,
        record: name,
        ...(isOfVm && { vm: await deployed(namespace) }),
      }
      const url = path.replaceAll(/\{(\w+)\}/g, (_, param: string) => encodeURIComponent(params[param] ?? 'x'))
      const request: CallOptions = isUpload
        ? { body: randomDisc(40_000), headers: octets }
        : { body: withName(example.body, name) }
      return service.call(method, isUpload ? `${url}?name=${name}` : url, { ...request, ...asCaller(caller) })
    },
  }))
})

const merge = { 'content-type': 'application/merge-patch+json' }
const apply = { 'content-type': 'application/apply-patch+yaml' }
const kubeUrl = ({ plural }: Kind, caller: Caller, name = ''): string =>
  `/apis/orka.macstadium.com/v1/namespaces/${callers[caller]}/${plural}${name && `/${name}`}`
const objectOf = ({ kind }: Kind, name: string, rest: object = {}) => ({
  apiVersion: 'orka.macstadium.com/v1',
  kind,
  ...rest,
  metadata: { name, ...(rest as { metadata?: object }).metadata },
})
const patches: Readonly<Record<string, object>> = {
  labels: { labels: { team: 'stolen' } },
  annotations: { annotations: { 'example.com/note': 'stolen' } },
  description: { annotations: { 'orka.macstadium.com/description': 'Changed' } },
  finalizers: { finalizers: ['example.com/hold'] },
  owners: { ownerReferences: [{ apiVersion: 'v1', kind: 'Team', name: 'x', uid: 'x' }] },
  'managed fields': { managedFields: [{}] },
}

/** Verb of a kind → its writes, by what they change. */
const kubeVerbs: Readonly<Record<string, (kind: Kind) => readonly Write[]>> = {
  create: (kind) => [
    ...['local', 'remote', 'generated'].map((sourceType) => ({
      title: sourceType,
      call: (caller: Caller) => {
        const body = objectOf(kind, 'idle', { spec: { sourceType, source: 'used', size: '1G' } })
        return kube.call('POST', kubeUrl(kind, caller), { body, ...asCaller(caller) })
      },
    })),
    ...['commit', 'save'].map((title) => ({
      title,
      async call(caller: Caller) {
        const source = await deployed(callers[caller])
        const destination = title === 'save' ? { destination: 'used' } : {}
        const name = title === 'save' ? 'used' : 'any'
        const body = objectOf(kind, name, { spec: { sourceType: 'vm', source, ...destination } })
        return kube.call('POST', kubeUrl(kind, caller), { body, ...asCaller(caller) })
      },
    })),
  ],
  update: (kind) => [
    {
      title: 'labels',
      async call(caller) {
        const url = kubeUrl(kind, caller, 'idle')
        const { body } = await kube.call('GET', url, asCaller(caller))
        const metadata = { ...body.metadata, labels: { ...body.metadata.labels, team: 'stolen' } }
        return kube.call('PUT', url, { body: { ...body, metadata }, ...asCaller(caller) })
      },
    },
  ],
  patch: (kind) => [
    ...Object.entries(patches).map(([title, metadata]) => ({
      title,
      call: (caller: Caller) =>
        kube.call('PATCH', kubeUrl(kind, caller, 'idle'), { body: { metadata }, headers: merge, ...asCaller(caller) }),
    })),
    {
      title: 'apply',
      call: (caller: Caller) => {
        const url = `${kubeUrl(kind, caller, 'idle')}?fieldManager=thief&force=true`
        const body = objectOf(kind, 'idle', { metadata: { labels: { team: 'stolen' } } })
        return kube.call('PATCH', url, { body, headers: apply, ...asCaller(caller) })
      },
    },
  ],
  delete: (kind) => [
    { title: '', call: (caller) => kube.call('DELETE', kubeUrl(kind, caller, 'idle'), asCaller(caller)) },
  ],
}

const kubeWrites: readonly Write[] = [kubeImageKind, kubeIsoKind].flatMap((kind) =>
  verbsOf(kind)
    .filter((verb) => !['get', 'list', 'watch'].includes(verb))
    .flatMap((verb) => {
      const writes = kubeVerbs[verb]?.(kind) ?? assert.fail(`write of the verb ${verb} is missing here`)
      return writes.map(({ title, call }) => ({ title: `${verb} ${kind.plural} ${title}`.trim(), call }))
    }),
)

const legacyWrites: readonly Write[] = legacyCalls
  .filter(({ call: { method, path } }) => method !== 'GET' && /\/resources\/(?:image|iso)\//.test(path))
  .map(({ call: { method, path } }) => ({
    title: `${method} ${path}`,
    async call(caller: Caller) {
      const isOfVm = /commit|save/.test(path)
      const name = isOfVm ? 'used' : 'idle'
      const body = {
        image: name,
        iso: name,
        new_name: name,
        file_name: name,
        file_size: '1G',
        ...(isOfVm && { orka_vm_name: await deployed('svc-default') }),
      }
      const headers = { authorization: `Bearer ${tokens[caller]}` }
      const answer = service.call(method, path, { token: null, headers, body })
      // A commit is answered only once it is complete.
      const changed = isOfVm ? untilTaken() : new Promise<Answer>(() => undefined)
      return Promise.race([answer, changed])
    },
  }))

/** Resolves once `used` is being written. */
const untilTaken = async (): Promise<Answer> => {
  const { view } = service.services.collections.images
  await new Promise<void>((resolve) => {
    const stop = view.subscribe(() => {
      if (service.services.collections.images.get('', 'used')?.value.state !== 'Updating') return
      stop()
      resolve()
    })
  })
  return { status: 202, headers: {}, text: '', body: undefined }
}

const states = {
  'an unprotected one': { change: { protected: false }, mayChange: () => allowed },
  'a protected one': {
    change: { protected: true },
    // Only images are protected.
    mayChange: (title: string) => (/\biso|Iso/.test(title) ? allowed : admins),
  },
  'one of before namespaces were recorded': {
    change: { sourceNamespace: undefined as never },
    mayChange: () => ['the owner, in another namespace', 'an administrator'] as const,
  },
} satisfies Record<string, { change: Partial<ImageRecord>; mayChange: (title: string) => readonly Caller[] }>

/** Writes that changed an image or ISO when an administrator called them. */
const effective = new Set<string>()

function testWrite({ title, call }: Write): void {
  for (const [state, { change, mayChange }] of Object.entries(states))
    it(`${title}: ${state}`, async () => {
      const changedBy: Caller[] = []
      const refusals: string[] = []
      for (const caller of everybody) {
        await plant(change)
        const first = snapshot()
        const { status, text } = await call(caller)
        if (isDeepStrictEqual(snapshot(), first)) refusals.push(`${caller}: ${status} ${text}`)
        else changedBy.push(caller)
      }
      if (!changedBy.includes('an administrator')) {
        assert.deepEqual(changedBy, [])
        return
      }
      effective.add(title)
      const may = title === 'protectImage' ? admins : mayChange(title)
      assert.deepEqual(changedBy, may)
      for (const refusal of refusals) {
        // The others see no managed fields, so removing them changes nothing for them.
        if (!title.endsWith('managed fields')) assert.match(refusal, /: 403 .*Forbidden/)
        assert.doesNotMatch(refusal, secrets)
      }
    })
}

describe('changing an image or ISO', () => {
  for (const write of restWrites) testWrite(write)
  for (const write of kubeWrites) testWrite(write)
  for (const write of legacyWrites) testWrite(write)

  it('changing an image or ISO: these are the writes that change existing ones', () => {
    const kubeOf = (plural: string) => [
      ...Object.keys(patches).map((each) => `patch ${plural} ${each}`),
      `patch ${plural} apply`,
      `update ${plural} labels`,
      `delete ${plural}`,
    ]
    assert.deepEqual(
      [...effective].toSorted(),
      [
        ...['commitVm', 'deleteImage', 'deleteIso', 'describeImage', 'describeIso', 'protectImage', 'restoreImage'],
        ...['setMetadata images', 'setMetadata isos', 'create images commit', ...kubeOf('images'), ...kubeOf('isos')],
        ...['POST /resources/image/commit', 'POST /resources/image/delete', 'POST /resources/iso/delete'],
      ].toSorted(),
    )
  })

  it('a commit that is refused says how to keep the changes', async () => {
    await plant({})
    const vm = await deployed('svc-away')
    const { status, body } = await service.call(
      'POST',
      `${all}/svc-away/vms/${vm}/commit`,
      asCaller('a developer elsewhere'),
    )
    assert.equal(status, 403)
    assert.equal(
      body.hint,
      `Ask its owner or a cluster administrator, or save it as a new image: svc3 vm save ${vm} NEW-IMAGE -n svc-away`,
    )
  })
})

describe('what Kubernetes clients keep with an image', () => {
  const strangers = everybody.filter((caller) => !allowed.includes(caller))
  const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
  const partial = { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' }
  const watched = async (kind: Kind, caller: Caller, query: string): Promise<string> => {
    const url = `${kubeUrl(kind, caller)}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`
    const watching = await kube.watch(`${url}${query}`, asCaller(caller))
    await eventually(async () => assert.ok(watching.events.some(({ type }) => type === 'BOOKMARK')))
    watching.close()
    return JSON.stringify(watching.events)
  }
  const doors: Readonly<Record<string, (kind: Kind, caller: Caller) => Promise<string>>> = {
    get: async (kind, caller) => (await kube.call('GET', kubeUrl(kind, caller, 'idle'), asCaller(caller))).text,
    metadata: async (kind, caller) =>
      (await kube.call('GET', kubeUrl(kind, caller, 'idle'), { headers: partial, ...asCaller(caller) })).text,
    list: async (kind, caller) => (await kube.call('GET', kubeUrl(kind, caller), asCaller(caller))).text,
    'list everywhere': async ({ plural }, caller) =>
      (await kube.call('GET', `/apis/orka.macstadium.com/v1/${plural}`, asCaller(caller))).text,
    table: async (kind, caller) =>
      (await kube.call('GET', `${kubeUrl(kind, caller)}?includeObject=Object`, { headers: table, ...asCaller(caller) }))
        .text,
    watch: (kind, caller) => watched(kind, caller, ''),
    'a write without a difference': async (kind, caller) =>
      (
        await kube.call('PATCH', kubeUrl(kind, caller, 'idle'), {
          body: { metadata: {} },
          headers: merge,
          ...asCaller(caller),
        })
      ).text,
    'a conflict of appliers': async (kind, caller) =>
      (
        await kube.call('PATCH', `${kubeUrl(kind, caller, 'idle')}?fieldManager=other`, {
          body: objectOf(kind, 'idle', { metadata: { labels: { team: 'x' } } }),
          headers: apply,
          ...asCaller(caller),
        })
      ).text,
  }
  before(async () => {
    const { images } = service.services.collections
    for (const entry of images.list()) await images.delete(entry)
    await plant({ protected: true })
  })

  for (const kind of [kubeImageKind, kubeIsoKind])
    for (const [door, open] of Object.entries(doors))
      it(`is shown to those whose image it is, and to no one else: ${kind.plural}, ${door}`, async () => {
        // First the caller who sees all, so that a shared rendering would leak.
        if (door !== 'a conflict of appliers' && door !== 'table')
          for (const caller of allowed)
            assert.match(await open(kind, caller), /secret-label.*|.*secret-manager/, caller)
        for (const caller of strangers) {
          const text = await open(kind, caller)
          assert.match(text, /idle/)
          assert.doesNotMatch(text, secrets, caller)
          assert.doesNotMatch(text, origin, caller)
        }
      })

  it('cannot be guessed by selectors', async () => {
    for (const caller of everybody)
      for (const kind of [kubeImageKind, kubeIsoKind]) {
        const found = async (selector: string): Promise<number> => {
          const url = `${kubeUrl(kind, caller)}?labelSelector=${encodeURIComponent(selector)}`
          const { items } = (await kube.call('GET', url, asCaller(caller))).body
          return items.filter((item: KubeObject) => names.some((name) => item.metadata.name === name)).length
        }
        const isKnown = allowed.includes(caller)
        assert.equal(await found('team=secret-label'), isKnown ? 2 : 0)
        assert.equal(await found('team'), isKnown ? 2 : 0)
        assert.equal(await found('team!=secret-label'), isKnown ? 0 : 2)
        const events = await watched(kind, caller, '&labelSelector=team%3Dsecret-label')
        assert.equal(events.includes('"idle"'), isKnown)
      }
  })

  it('a deletion that waits for finalizers is completed only by callers who may change the image', async () => {
    await plant({})
    const url = (caller: Caller) => kubeUrl(kubeImageKind, caller, 'idle')
    const person = 'a person of the namespace'
    const stranger = 'a developer elsewhere'
    const patch = (caller: Caller, metadata: object) =>
      kube.call('PATCH', url(caller), { body: { metadata }, headers: merge, ...asCaller(caller) })
    assert.equal((await patch(person, { finalizers: ['example.com/secret-label'] })).status, 200)
    assert.equal((await kube.call('DELETE', url(person), asCaller(person))).status, 200)
    for (const metadata of [{}, { finalizers: [] }, { labels: { a: 'b' } }]) {
      const { status, text } = await patch(stranger, metadata)
      assert.equal(status, 403, text)
    }
    const { body, text } = await kube.call('GET', url(stranger), asCaller(stranger))
    assert.ok(body.metadata.deletionTimestamp)
    assert.doesNotMatch(text, secrets)
    assert.equal((await patch(person, { finalizers: [] })).status, 200)
    assert.equal(service.services.collections.images.get('', 'idle'), undefined)
  })

  it('a deletion by an administrator that waits for finalizers is not completed by a developer', async () => {
    await startNode(service, { name: 'spare', namespace: 'svc-away' })
    const url = '/api/v1/nodes/spare'
    const patch = (caller: Caller, finalizers: string[]) =>
      kube.call('PATCH', url, { body: { metadata: { finalizers } }, headers: merge, ...asCaller(caller) })
    assert.equal((await patch('an administrator', ['example.com/hold'])).status, 200)
    assert.equal((await kube.call('DELETE', url)).status, 200)
    const { status, text } = await patch('a developer elsewhere', [])
    assert.equal(status, 403, text)
    assert.ok(service.services.collections.nodes.get('', 'spare'))
  })
})

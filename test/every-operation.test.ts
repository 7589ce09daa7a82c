// Every operation of the table, without exception: who may call it, what a bad request gets, and that its own example
// works and is what it says.
import assert from 'node:assert/strict'
import { generateKeyPairSync, sign } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { Ajv } from 'ajv'
import { SignJWT } from 'jose'
import { codes } from '../src/api/errors.ts'
import { beginUpload } from '../src/api/images/uploads.ts'
import { allOperations } from '../src/api/index.ts'
import { issueAgentToken, joinCluster } from '../src/api/nodes/agent.ts'
import { replaceNodeKey } from '../src/api/nodes/node-key.ts'
import type { Allow, Operation } from '../src/api/operation.ts'
import { createVmConfig } from '../src/api/vms/vm-configs.ts'
import { digestOf } from '../src/images/format/manifest.ts'
import { putManifest } from '../src/images/pack/stored-manifests.ts'
import { Remotes } from '../src/server/remotes/remotes.ts'
import type { ServiceAccountRecord } from '../src/store/records/collections.ts'
import { withVersion } from '../src/store/records/image-versions.ts'
import { type Answer, type CallOptions, startService, type TestService } from './support/rigs/service.ts'
import { addImage, startNode, startScheduler } from './support/stand-ins/node.ts'
import { fileForm, makePair } from './support/tools/certificates.ts'

let service: TestService
before(async () => {
  service = await startService({ settings: { limits: { anonymousPerMinute: 1_000_000 } } })
})
after(() => service[Symbol.asyncDispose]())

const urlOf = ({ path, example }: Operation, namespace = example.params?.namespace ?? ''): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name) =>
    encodeURIComponent(name === 'namespace' ? namespace : (example.params?.[name] ?? 'x')),
  )

/** The smallest possible value. */
const aDisk = '\0'.repeat(512)
const aDisc = `${'\0'.repeat(0x8001)}CD001`

/** The body as the operation takes it. */
const encoded = async ({ consumes, isUpload, method }: Operation, body: unknown): Promise<CallOptions> => {
  const octets = { 'content-type': 'application/octet-stream' }
  if (isUpload && consumes)
    return { body: Buffer.from(String(body ?? 'a chunk')), headers: { ...octets, 'content-length': '7' } }
  if (isUpload && method === 'PUT') return { body: Buffer.from(aDisk), headers: octets }
  if (isUpload) return fileForm({ [isUpload]: body as string | undefined })
  return consumes ? fileForm(body as Record<string, string>) : { body }
}

const callExample = async (operation: Operation, token: string | null, namespace?: string): Promise<Answer> => {
  const request = await encoded(operation, operation.example.body)
  return service.call(operation.method, urlOf(operation, namespace), { ...request, token })
}

/** Caller → what each permission answers: undefined stands for "not refused for the caller's identity". */
type Verdicts = Readonly<Record<Allow, 401 | 403 | undefined>>
const open = { anyone: undefined }
const administrates = { ...open, user: undefined, dev: undefined, admin: undefined, agent: 403, server: 403 } as const
interface Caller {
  readonly token: () => Promise<string | null>
  readonly namespace?: string
  readonly verdicts: Verdicts
  /** Of a service account that is an administrator: what it may do besides. */
  readonly rights?: readonly string[]
}
const callers: Readonly<Record<string, Caller>> = {
  anonymous: {
    token: async () => null,
    verdicts: { ...open, user: 401, dev: 401, admin: 401, agent: 401, server: 401 },
  },
  'bearer of an expired token': {
    token: expired,
    verdicts: { ...open, user: 401, dev: 401, admin: 401, agent: 401, server: 401 },
  },
  'bearer of a forged token': {
    token: forged,
    verdicts: { ...open, user: 401, dev: 401, admin: 401, agent: 401, server: 401 },
  },
  'developer of the namespace': {
    token: async () => service.devToken,
    verdicts: { ...open, user: undefined, dev: undefined, admin: 403, agent: 403, server: 403 },
  },
  'developer of another namespace': {
    token: async () => service.devToken,
    namespace: 'svc-other',
    verdicts: { ...open, user: undefined, dev: 403, admin: 403, agent: 403, server: 403 },
  },
  'service account of the namespace': {
    token: () => accountToken('svc-default'),
    verdicts: { ...open, user: undefined, dev: undefined, admin: 403, agent: 403, server: 403 },
  },
  'service account of another namespace': {
    token: () => accountToken('svc-elsewhere'),
    namespace: 'svc-default',
    verdicts: { ...open, user: undefined, dev: 403, admin: 403, agent: 403, server: 403 },
  },
  'agent of a node': {
    token: agentToken,
    verdicts: { ...open, user: 403, dev: 403, admin: 403, agent: undefined, server: 403 },
  },
  'agent of a node that was removed': {
    token: () => service.tokenFor({ kind: 'agent', name: 'gone', uid: 'gone' }),
    verdicts: { ...open, user: 401, dev: 401, admin: 401, agent: 401, server: 401 },
  },
  'another server': {
    token: () => serverToken(),
    verdicts: { ...open, user: 403, dev: 403, admin: 403, agent: 403, server: undefined },
  },
  'a server that is gone': {
    token: () => service.tokenFor({ kind: 'server', name: 'gone', uid: 'gone' }),
    verdicts: { ...open, user: 401, dev: 401, admin: 401, agent: 401, server: 401 },
  },
  'deleted service account': {
    token: deletedAccountToken,
    verdicts: { ...open, user: 401, dev: 401, admin: 401, agent: 401, server: 401 },
  },
  'service account that is an administrator': {
    token: () => accountToken('svc-infra', { role: 'administrator' }),
    verdicts: administrates,
    rights: [],
  },
  'service account that is an administrator, with registry credentials': {
    token: () => accountToken('svc-registries', { role: 'administrator', allow: ['registrycredentials'] }),
    verdicts: administrates,
    rights: ['registrycredentials'],
  },
  'service account that was an administrator': {
    token: async () => {
      const token = await accountToken('svc-former', { role: 'administrator' })
      const { serviceAccounts } = service.services.collections
      const { role: _, ...account } = serviceAccounts.get('svc-former', 'robot')?.value ?? assert.fail()
      await serviceAccounts.change(serviceAccounts.key('svc-former', 'robot'), () => account)
      return token
    },
    namespace: 'svc-default',
    verdicts: { ...open, user: undefined, dev: 403, admin: 403, agent: 403, server: 403 },
  },
  administrator: {
    token: async () => service.adminToken,
    verdicts: administrates,
  },
}

async function accountToken(
  namespace: string,
  rights: Pick<ServiceAccountRecord, 'role' | 'allow'> = {},
): Promise<string> {
  const { collections } = service.services
  const uid = collections.serviceAccounts.get(namespace, 'robot')?.value.uid ?? `uid-of-${namespace}`
  if (!collections.serviceAccounts.get(namespace, 'robot')) {
    const account = { name: 'robot', namespace, uid, createdAt: '', ...rights }
    await collections.serviceAccounts.create(namespace, 'robot', account)
  }
  return service.tokenFor({ kind: 'serviceaccount', name: 'robot', namespace, uid })
}

/** Another node every time: what one operation writes is not there for the next. */
async function agentToken(): Promise<string> {
  const name = `mini-${service.services.collections.nodes.view.size}`
  const node = { name, namespace: 'svc-default', uid: `uid-of-${name}`, createdAt: '', publicKey: '', tags: [] }
  const record = { ...node, isCordoned: false, isReady: false }
  await service.services.collections.nodes.create('', name, record)
  return service.tokenFor({ kind: 'agent', name, uid: node.uid })
}

async function serverToken(of = service): Promise<string> {
  const { servers } = of.services.collections
  const place = { internalUrl: 'https://127.0.0.1:1', apiUrl: 'https://127.0.0.1:1', version: '', startedAt: '' }
  if (!servers.get('', 'other'))
    await servers.create('', 'other', { id: 'other', run: 'run', ...place, leaseMs: 8_000, beat: 0 })
  return of.tokenFor({ kind: 'server', name: 'other', uid: 'run' })
}

async function asServer(fresh: TestService): Promise<{ token: string }> {
  return { token: await serverToken(fresh) }
}

async function deletedAccountToken(): Promise<string> {
  const { serviceAccounts } = service.services.collections
  const account = { name: 'gone', namespace: 'svc-default', uid: 'first', createdAt: '' }
  const token = await service.tokenFor({ kind: 'serviceaccount', ...account })
  const entry = await serviceAccounts.create('svc-default', 'gone', account)
  assert.ok(await service.services.tokens.verify(token))
  await serviceAccounts.delete(entry)
  // Made again under the same name: another account, which the token was not made for.
  await serviceAccounts.delete(await serviceAccounts.create('svc-default', 'gone', { ...account, uid: 'second' }))
  return token
}

async function expired(): Promise<string> {
  const token = await service.tokenFor({ kind: 'user', name: 'late@example.com', admin: true })
  service.clock.nowMs += 2 * 3_600_000
  return token
}

async function forged(): Promise<string> {
  const claims = { kind: 'user', admin: true }
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject('x')
    .setIssuer('svc3')
    .setAudience('svc3-api')
    .setExpirationTime('1h')
    .sign(Buffer.alloc(32))
}

describe('every operation', () => {
  for (const operation of allOperations) {
    for (const [caller, { token, namespace, verdicts, rights }] of Object.entries(callers)) {
      const isWithheld = rights && operation.accounts !== undefined && !rights.includes(operation.accounts)
      const verdict = isWithheld
        ? 403
        : operation.path.includes('{namespace}') || !namespace
          ? verdicts[operation.allow]
          : callers['developer of the namespace']?.verdicts[operation.allow]
      it(`${operation.id} by ${caller}: ${verdict ?? 'not refused'}`, async () => {
        const nowMs = service.clock.nowMs
        const answer = await callExample(operation, await token(), namespace)
        service.clock.nowMs = nowMs
        if (verdict) {
          assert.equal(answer.status, verdict, answer.text)
          assert.equal(answer.body.kind, 'Status')
          assert.match(answer.body.message, verdict === 401 ? /Unauthorized/ : /Forbidden/)
          assert.ok(answer.body.hint && answer.body.requestId)
        } else {
          const expected = [
            operation.status,
            ...Object.keys(operation.also ?? {}).map(Number),
            400,
            ...operation.refuses.map((reason) => codes[reason]),
            ...(operation.path.includes('{') ? [404] : []),
          ]
          // An operation for anyone may refuse what is in its body: a token that is not good.
          const isForWhoItIs = [401, 403].includes(answer.status) && operation.allow !== 'anyone'
          assert.ok(expected.includes(answer.status) && !isForWhoItIs, answer.text)
        }
      })
    }
  }
})

/** What must be there before the example of an operation can succeed. */
const inDefault = '/api/v1/namespaces/svc-default'
/** What the request of the example needs beside what it shows. */
type Ready = { readonly token?: string; readonly body?: unknown } & Pick<Operation['example'], 'params'>
const withTiny = (fresh: TestService) => addImage(fresh, 'tiny-arm64', 'arm64')
/** As after a commit. */
const withRestorable = async (fresh: TestService) => {
  await withTiny(fresh)
  const { images } = fresh.services.collections
  const entry = images.get('', 'tiny-arm64') ?? assert.fail()
  const at = '2026-11-16T09:00:00Z'
  const versions = withVersion(entry.value, { version: 2, at })
  await images.update(entry, { ...entry.value, version: 2, versions })
}
const withUpload = (kind: 'image' | 'iso', name: string) => async (fresh: TestService) => {
  const body = Buffer.from(kind === 'iso' ? aDisc : aDisk)
  const headers = { 'content-type': 'application/octet-stream' }
  await fresh.call('POST', `${inDefault}/upload/${kind}?name=${name}`, { body, headers })
}
const asUpload = async (): Promise<unknown> => ({ body: aDisk })
const asDisc = async (): Promise<unknown> => ({ body: aDisc })
const withImage =
  (architecture: 'arm64' | 'amd64') =>
  async (fresh: TestService): Promise<unknown> =>
    addImage(fresh, 'sonoma', architecture)
const withNode = async (fresh: TestService) => {
  await startNode(fresh, { name: 'mini-arm-13', report: { architecture: 'arm64' } })
}
const asAgent = async (fresh: TestService): Promise<unknown> => ({
  token: (await startNode(fresh, { name: 'mini-arm-13', report: { architecture: 'arm64' } })).token,
})
const withVm = (architecture: 'arm64' | 'amd64') => async (fresh: TestService) => {
  await addImage(fresh, 'sonoma', architecture)
  await startNode(fresh, { report: { architecture } })
  await fresh.call('POST', `${inDefault}/vms`, { body: { image: 'sonoma', name: 'vm-cznfv' } })
}
/** A VM that is being saved, on the node whose agent asks, which has sent all of it. */
const withCapture = async (fresh: TestService) => {
  await addImage(fresh, 'sonoma', 'arm64')
  const { token } = await startNode(fresh, { report: { architecture: 'arm64' } })
  await fresh.call('POST', `${inDefault}/vms`, { body: { image: 'sonoma', name: 'vm-cznfv' } })
  await fresh.call('POST', `${inDefault}/vms/vm-cznfv/save`, { body: { imageName: 'saved' } })
  const capture = fresh.services.collections.images.get('', 'saved')?.value.capture?.id ?? ''
  const disk = { formatVersion: 1, architecture: 'arm64', virtualSizeBytes: 2 ** 20, layers: [] } as const
  const content = await putManifest(fresh.services.content, { ...disk, boot: { kind: 'firmware' } })
  return { token, params: { capture }, body: { content, percent: 1, bytes: 1 } }
}
const withRegistry = (fresh: TestService): Promise<unknown> =>
  fresh.call('POST', `${inDefault}/secrets/registrycredentials/add`, {
    body: { server: 'https://ghcr.io', username: 'ci-bot', password: 'not-a-real-password' },
  })
/** A VM of an image in a registry, on the node whose agent asks. */
const withRegistryVm = async (fresh: TestService): Promise<unknown> => {
  await addImage(fresh, 'sonoma', 'arm64')
  const { token } = await startNode(fresh, { report: { architecture: 'arm64' } })
  const { body } = await fresh.call('POST', `${inDefault}/vms`, { body: { image: 'sonoma', name: 'vm-cznfv' } })
  const { vms } = fresh.services.collections
  const entry = vms.get('svc-default', 'vm-cznfv')
  assert.ok(entry)
  const imageReference = `ghcr.io/acme/ios/sonoma@sha256:${'0'.repeat(64)}`
  await vms.update(entry, { ...entry.value, imageReference })
  return { token, params: { vmOrImage: body.uid } }
}
/** A VM that is being pushed, on the node whose agent asks. */
const withPush = async (fresh: TestService) => {
  await withRegistry(fresh)
  await addImage(fresh, 'sonoma', 'arm64')
  const { token } = await startNode(fresh, { report: { architecture: 'arm64' } })
  await fresh.call('POST', `${inDefault}/vms`, { body: { image: 'sonoma', name: 'vm-cznfv' } })
  const body = { imageReference: 'ghcr.io/acme/ios/sonoma' }
  const job = (await fresh.call('POST', `${inDefault}/vms/vm-cznfv/push`, { body })).body.jobName
  const capture = fresh.services.collections.pushJobs.get('svc-default', job)?.value.capture ?? ''
  return { agent: { token, params: { capture } }, user: { params: { namespace: 'svc-default', job } } }
}
const prerequisites: Readonly<Record<string, (fresh: TestService) => Promise<unknown>>> = {
  removeRegistryCredential: async (fresh) => {
    await fresh.call('POST', `${inDefault}/secrets/registrycredentials/add`, {
      body: { server: 'https://ghcr.io', username: 'a', password: 'b' },
    })
  },
  deleteNamespace: async (fresh) => {
    await fresh.call('POST', '/api/v1/namespaces', { body: { name: 'svc-ios' } })
  },
  // Examples that are cut short for the reader.
  uploadCertificate: async () => {
    const { cert, key } = await makePair()
    return { body: { certPath: cert, keyPath: key } }
  },
  getVm: withVm('arm64'),
  deployVm: async (fresh) => {
    await withImage('arm64')(fresh)
    return withNode(fresh)
  },
  estimateVm: async (fresh) => {
    await withImage('arm64')(fresh)
    return withNode(fresh)
  },
  deleteVm: withVm('arm64'),
  execVm: withVm('amd64'),
  resizeVm: withVm('arm64'),
  extendVm: withVm('arm64'),
  setMetadata: withVm('arm64'),
  saveVm: withVm('arm64'),
  commitVm: withVm('arm64'),
  putBlob: async (fresh) => ({ token: (await withCapture(fresh)).token, params: { digest: digestOf('a chunk') } }),
  findMissingBlobs: async (fresh) => ({ token: (await withCapture(fresh)).token }),
  reportCapture: withCapture,
  getCaptureCredentials: async (fresh) => (await withPush(fresh)).agent,
  getImageRegistry: withRegistryVm,
  pushVm: async (fresh) => {
    await withRegistry(fresh)
    await withVm('arm64')(fresh)
  },
  getPushJob: async (fresh) => (await withPush(fresh)).user,
  cancelPushJob: async (fresh) => (await withPush(fresh)).user,
  finishCapture: withCapture,
  createVmConfig: withImage('arm64'),
  createPool: withConfig,
  createRunnerPool: withConfig,
  getImage: withTiny,
  addDemoImage: withNode,
  copyImage: withTiny,
  getCachedImage: withTiny,
  addCachedImage: async (fresh) => {
    await withTiny(fresh)
    await withNode(fresh)
  },
  removeCachedImage: async (fresh) => {
    await withTiny(fresh)
    await withNode(fresh)
  },
  removeFromImageCache: async (fresh) => {
    await withTiny(fresh)
    await withNode(fresh)
  },
  findPeers: asAgent,
  noteBootOrder: asAgent,
  describeImage: withTiny,
  protectImage: withTiny,
  restoreImage: withRestorable,
  deleteImage: withTiny,
  downloadImage: withUpload('image', 'tiny-arm64'),
  uploadImage: asUpload,
  getIso: withUpload('iso', 'ventura.iso'),
  copyIso: withUpload('iso', 'ventura.iso'),
  describeIso: withUpload('iso', 'ventura.iso'),
  deleteIso: withUpload('iso', 'ventura.iso'),
  downloadIso: withUpload('iso', 'ventura.iso'),
  uploadIso: asDisc,
  getUpload: withPartial,
  continueUpload: withPartial,
  finishUpload: async (fresh) => {
    const ready = await withPartial(fresh)
    const headers = { 'content-type': 'application/octet-stream' }
    await fresh.call('PUT', `${inDefault}/uploads/${ready.params.upload}`, { body: Buffer.from(aDisk), headers })
    return ready
  },
  abandonUpload: withPartial,
  pullRemoteImage: withRemote('image', 'sonoma'),
  pullRemoteIso: withRemote('iso', 'ventura.iso'),
  tellNode: asServer,
  noteSeenNodes: asServer,
  tellRevision: asServer,
  passGrowth: asServer,
  findServerBlobs: asServer,
  getServerBlob: async (fresh) => {
    const { digest } = await fresh.services.ownContent.put(Buffer.from('a chunk'))
    return { token: await serverToken(fresh), params: { digest } }
  },
  getBlob: async (fresh) => {
    const { digest } = await fresh.services.content.put(Buffer.from('a chunk'))
    return { ...((await asAgent(fresh)) as object), params: { digest } }
  },
  tagNode: withNode,
  untagNode: async (fresh) => {
    await withNode(fresh)
    await fresh.call('POST', `${inDefault}/nodes/mini-arm-13/tag`, { body: { tag: 'ios' } })
  },
  moveNode: async (fresh) => {
    await fresh.call('POST', '/api/v1/namespaces', { body: { name: 'svc-ios' } })
    return withNode(fresh)
  },
  cordonNode: withNode,
  uncordonNode: withNode,
  drainNode: withNode,
  deleteNode: withNode,
  joinCluster: async (fresh) => {
    const { token } = await fresh.services.nodeKeys.issueJoinToken('svc-default', 60)
    return { body: { ...joinCluster.example.body, token } }
  },
  issueAgentToken: async (fresh) => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    const { token } = await fresh.services.nodeKeys.issueJoinToken('svc-default', 60)
    const spki = publicKey.export({ format: 'der', type: 'spki' }).toString('base64')
    const { name, at } = issueAgentToken.example.body
    await fresh.call('POST', '/api/v1/agent/join', { body: { name, token, publicKey: spki } })
    const signature = sign(null, Buffer.from(`svc3-agent\n${name}\n${at}`), privateKey).toString('base64')
    return { body: { name, at, signature } }
  },
  replaceNodeKey: async (fresh) => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    const { token } = await fresh.services.nodeKeys.issueJoinToken('svc-default', 60)
    const spki = publicKey.export({ format: 'der', type: 'spki' }).toString('base64')
    const { name, at, publicKey: next } = replaceNodeKey.example.body
    await fresh.call('POST', '/api/v1/agent/join', { body: { name, token, publicKey: spki } })
    const signature = sign(null, Buffer.from(`svc3-agent-key\n${name}\n${next}\n${at}`), privateKey).toString('base64')
    return { body: { name, at, publicKey: next, signature } }
  },
  reportNode: asAgent,
  noteAgent: asAgent,
  reportVms: asAgent,
}

async function withPartial(fresh: TestService) {
  const { body } = await fresh.call('POST', `${inDefault}/uploads`, { body: beginUpload.example.body })
  return { params: { namespace: 'svc-default', upload: String(body.id) } }
}

function withRemote(kind: 'image' | 'iso', name: string) {
  return async ({ services }: TestService) => {
    const item = { kind, name, type: 'amd64', bytes: 1, sha256: '0'.repeat(64) } as const
    const source = { list: async () => [item], fetch: () => assert.fail('nobody pulls here') }
    Object.assign(services, { remotes: new Remotes(new Map([['lab', source]])) })
  }
}

async function withConfig(fresh: TestService) {
  await addImage(fresh, 'sonoma', 'arm64')
  await fresh.call('POST', `${inDefault}/vmconfigs`, { body: createVmConfig.example.body })
}

/** By default an operation on one record finds the record that the example of its noun's `create…` operation makes. */
function prerequisiteOf(operation: Operation): ((fresh: TestService) => Promise<unknown>) | undefined {
  const { id, noun, path } = operation
  const create = allOperations.find((each) => each.noun === noun && each.id.startsWith('create') && each.id !== id)
  const isOnRecord = path.split('/').some((part) => part.startsWith('{') && part !== '{namespace}')
  if (prerequisites[id] || !create || !isOnRecord || !path.startsWith(create.path)) return prerequisites[id]
  return async (fresh) => {
    await prerequisites[create.id]?.(fresh)
    assert.equal((await callAs(fresh, create)).status, create.status)
  }
}

async function callAs(fresh: TestService, operation: Operation): Promise<Answer> {
  const request = await encoded(operation, operation.example.body)
  return fresh.call(operation.method, urlOf(operation), { ...request, token: fresh.adminToken })
}

/** Their nodes are asked. */
const dialled: ReadonlySet<string> = new Set(['getVmCharts', 'getNodeCharts'])

describe('the example of every operation', () => {
  const ajv = new Ajv({ strict: false, validateFormats: false })
  for (const operation of allOperations) {
    it(`the example of ${operation.id} is what its schemas say`, () => {
      if (operation.body) assert.ok(ajv.validate(operation.body, operation.example.body), ajv.errorsText())
      assert.ok(ajv.validate(operation.response, operation.example.response), ajv.errorsText())
    })

    // The data of a stream needs a real connection: src/server/nodes/tunnels.test.ts.
    if (operation.isStream || operation.isUpgrade || dialled.has(operation.id)) continue
    it(`the example of ${operation.id} succeeds, with an answer of its schema`, async () => {
      // An operation that only reads changes nothing, so it can share a service; a new one takes a tenth of a second.
      const prerequisite = prerequisiteOf(operation)
      const isShared = operation.method === 'GET' && !prerequisite
      await using own = new AsyncDisposableStack()
      const fresh = isShared ? service : own.use(await startService())
      if (!isShared) own.use(startScheduler(fresh))
      const ready = ((await prerequisite?.(fresh)) ?? {}) as Ready
      const request = await encoded(operation, ready.body ?? operation.example.body)
      const token = ready.token ?? fresh.adminToken
      const { params = operation.example.params } = ready
      const url = urlOf({ ...operation, example: { ...operation.example, ...(params && { params }) } })
      const answer = await fresh.call(operation.method, url, { ...request, token })
      assert.equal(answer.status, operation.status, answer.text)
      const type = operation.produces?.split(';')[0] ?? 'application/json'
      assert.ok(String(answer.headers['content-type']).startsWith(type))
      if (!operation.produces) assert.ok(ajv.validate(operation.response, answer.body), ajv.errorsText())
    })
  }
})

/** The same fields, none of them of its type. */
const wrongTypes = (body: object): object =>
  Object.fromEntries(
    Object.entries(body).map(([name, value]) => [name, typeof value === 'object' ? 'text' : { no: value }]),
  )

describe('bad requests to every operation', () => {
  const bodies: Readonly<Record<string, unknown>> = {
    'no JSON': '{"server":',
    'an array': [],
    'a text': '"text"',
    null: 'null',
    nothing: '',
    __proto__: '{"__proto__":{"admin":true},"server":"https://ghcr.io"}',
    'nested too deep': `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
  }
  for (const operation of allOperations.filter(({ body }) => body)) {
    const optional = 'resourceVersion' in ((operation.body as { properties?: object }).properties ?? {})
    const fields = { ...(optional && { resourceVersion: '1' }), ...(operation.example.body as object) }
    const cases = { ...bodies, 'wrong types': wrongTypes(fields) }
    for (const [name, body] of Object.entries(cases)) {
      if (operation.bodyIsOptional && (name === 'null' || name === 'nothing')) continue
      it(`${operation.id} with ${name} is refused with a clear 4xx, and changes nothing`, async () => {
        const makers: Partial<Record<Allow, () => Promise<string>>> = { agent: agentToken, server: () => serverToken() }
        const token = (await makers[operation.allow]?.()) ?? service.adminToken
        const { rev } = await service.services.store.list('/none/')
        const answer = await service.call(operation.method, urlOf(operation), { body, token })
        // Where no single field is required, an empty body can be read, and is refused for what it lacks.
        const isReadable = name === 'nothing' && !(operation.body as { required?: unknown[] }).required?.length
        const expected = { 400: 'BadRequest', ...(isReadable && { 422: 'Invalid' }) }
        assert.equal(answer.body.reason, expected[answer.status as 400], answer.text)
        assert.ok(answer.body.reason, answer.text)
        assert.ok(answer.body.message.length > 10 && answer.body.hint, answer.text)
        assert.equal((await service.services.store.list('/none/')).rev, rev)
      })
    }
  }

  for (const operation of allOperations.filter(({ path }) => path.includes('{namespace}'))) {
    for (const namespace of [
      'svc-missing',
      'a'.repeat(500),
      '..',
      '\u0000',
      'ünïcode',
      '%2e%2e%2f',
      "'; drop table entries",
    ]) {
      it(`${operation.id} in the namespace ${JSON.stringify(namespace).slice(0, 20)} is answered with 404`, async () => {
        const answer = await service.call(operation.method, urlOf(operation, namespace), {
          body: operation.example.body,
        })
        assert.equal(answer.status, 404, answer.text)
        assert.match(answer.body.message, /not found/)
      })
    }
  }
})

// Credentials that earlier versions stored for several addresses of one registry become one set at the start, also if
// the process was killed during an earlier start.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, it } from 'node:test'
import { startService, type TestService } from '../../test/support/rigs/service.ts'
import { findCredentials, referenceOf } from '../server/remotes/registries.ts'
import { mergeCredentials } from './merge-credentials.ts'

const namespace = 'svc-default'
let service: TestService
beforeEach(async () => {
  service = await startService()
})
afterEach(() => service[Symbol.asyncDispose]())

const passwordOf = (server: string): string => `canary-${server}`

/** Writes as earlier versions did: the key is the address. */
async function store(servers: readonly string[]): Promise<void> {
  const { collections, secrets } = service.services
  const { registryCredentials: stored } = collections
  const more = { username: 'ci', createdAt: 'then', updatedAt: 'then', updatedBy: 'ada' }
  for (const server of servers) {
    const key = stored.key(namespace, server)
    const fields = { server, allowInsecure: server.startsWith('http:'), ...more }
    await secrets.sealing((protect) => stored.change(key, () => protect(key, fields, passwordOf(server))))
  }
}

function used(image: string): string | undefined {
  const { collections, secrets } = service.services
  const entry = findCredentials(collections, namespace, referenceOf(image))
  return entry && secrets.open(entry.key, entry.value)
}

const listed = (): readonly string[] =>
  service.services.collections.registryCredentials.list(namespace).map(({ value }) => value.server)

const merged = (): readonly string[] =>
  service.logLines
    .map((line) => JSON.parse(line))
    .filter(({ message }) => message === 'a registry had several sets of credentials')
    .map(({ level, name, namespace: inside, problem }) => [level, inside, name, problem].join(' '))

const cases = [
  {
    servers: ['http://10.0.0.7:5000', 'https://10.0.0.7:5000'],
    kept: 'https://10.0.0.7:5000',
    image: '10.0.0.7:5000/a/b',
  },
  { servers: ['http://10.0.0.7:5000'], kept: 'http://10.0.0.7:5000', image: '10.0.0.7:5000/a/b' },
  { servers: ['http://lab.test', 'https://lab.test'], kept: 'https://lab.test', image: 'lab.test/a/b' },
  {
    servers: ['https://docker.io', 'https://index.docker.io', 'https://registry-1.docker.io'],
    kept: 'https://docker.io',
    image: 'docker.io/a/b',
  },
  {
    servers: ['https://registry-1.docker.io', 'http://docker.io', 'https://index.docker.io'],
    kept: 'https://index.docker.io',
    image: 'docker.io/a/b',
  },
]
for (const { servers, kept, image } of cases)
  it(`credentials stored at ${servers.join(', ')} become those of ${kept}, which were used before`, async () => {
    await store([...servers, 'https://ghcr.io'])
    assert.equal(used(image), passwordOf(kept))
    await mergeCredentials(service.services)
    assert.deepEqual(listed().toSorted(), [kept, 'https://ghcr.io'].toSorted())
    assert.equal(used(image), passwordOf(kept))
    assert.deepEqual(
      merged().toSorted(),
      servers
        .filter((server) => server !== kept)
        .map((server) => {
          const name = image.slice(0, image.indexOf('/'))
          return `warn ${namespace} ${name} kept those of ${kept}, removed those of ${server}`
        })
        .toSorted(),
    )
    assert.doesNotMatch(service.logLines.join(''), /canary/)
    // The set can be used like any other.
    const place = `/api/v1/namespaces/${namespace}/secrets/registrycredentials`
    const { status, body } = await service.call('GET', place)
    assert.deepEqual([status, body.items.length], [200, 2])
    const again = { server: kept, username: 'ci', password: 'new', allowInsecure: true, replace: true }
    assert.equal((await service.call('POST', `${place}/add`, { body: again })).status, 200)
    assert.equal(used(image), 'new')
    await mergeCredentials(service.services)
    assert.equal(used(image), 'new')
  })

it('credentials are complete after a kill at each write of the merge, and the next start ends it', async () => {
  const servers = ['https://registry-1.docker.io', 'http://docker.io', 'https://index.docker.io']
  const { registryCredentials: stored } = service.services.collections
  const change = stored.change.bind(stored)
  for (let writes = 0; writes < 4; writes++) {
    await store(servers)
    let left = writes
    stored.change = (async (...input: Parameters<typeof change>) => {
      if (left-- === 0) throw new Error('killed')
      return change(...input)
    }) as typeof change
    await assert.rejects(mergeCredentials(service.services), /killed/)
    stored.change = change
    assert.equal(used('docker.io/a/b'), passwordOf('https://index.docker.io'))
    await mergeCredentials(service.services)
    assert.deepEqual(listed(), ['https://index.docker.io'])
    assert.equal(used('docker.io/a/b'), passwordOf('https://index.docker.io'))
    for (const { key } of stored.list(namespace)) await stored.change(key, () => null)
  }
})

it('credentials that cannot be decrypted are not merged, and can be removed', async () => {
  await store(['http://10.0.0.7:5000'])
  const { registryCredentials: stored } = service.services.collections
  const [entry] = stored.list(namespace)
  assert.ok(entry)
  await stored.update(entry, { ...entry.value, username: 'mallory' })
  await mergeCredentials(service.services)
  assert.deepEqual(listed(), ['http://10.0.0.7:5000'])
  const place = `/api/v1/namespaces/${namespace}/secrets/registrycredentials/remove`
  const { status } = await service.call('DELETE', place, { body: { server: 'http://10.0.0.7:5000' } })
  assert.deepEqual([status, listed()], [200, []])
})

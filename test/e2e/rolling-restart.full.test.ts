// Two servers behind a load balancer are restarted in turn, as an upgrade does it, while clients work through it: no
// client sees a failed request, though no client here tries anything twice.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import http from 'node:http'
import { it } from 'node:test'
import { createNamespace, deleteNamespace, getNamespace, listNamespaces } from '../../src/api/access/namespaces.ts'
import { createClient } from '../../src/client/client.ts'
import { httpTransport } from '../../src/client/http.ts'
import { createRevision } from '../../src/client/revision.ts'
import { watch } from '../../src/client/watch.ts'
import { type DevServer, program, startDev } from '../support/processes/dev-server.ts'
import { startShared, tokenFor } from '../support/processes/shared-servers.ts'
import { startLoadBalancer } from '../support/stand-ins/load-balancer.ts'
import { eventually } from '../support/tools/eventually.ts'

const portOf = ({ apiUrl }: DevServer): number => Number(new URL(apiUrl).port)

it('a rolling restart fails no request, and watches go on', { timeout: 170_000 }, async () => {
  await using shared = await startShared()
  await using balancer = await startLoadBalancer()
  await using cleanup = new AsyncDisposableStack()
  const start = async (folder: string): Promise<DevServer> => {
    // The balancer notices sooner; the test waits for that, and then does not wait any longer.
    await fs.writeFile(`${folder}/config.json`, JSON.stringify({ logLevel: 'error', shutdown: { noticeSeconds: 300 } }))
    const args = ['--plain-http', '--store', shared.storeAddress]
    const env = { SVC3_MASTER_KEY: shared.masterKey }
    const server = await startDev(folder, { command: [program, 'server'], args, env })
    cleanup.use(server)
    balancer.add(portOf(server))
    await eventually(async () => assert.ok(balancer.isUsed(portOf(server))), 60_000)
    return server
  }
  const folders = [await shared.folder(), await shared.folder()]
  const servers = [await start(folders[0] ?? ''), await start(folders[1] ?? '')]
  const token = await tokenFor(shared)

  const stopping = new AbortController()
  const ended = new AbortController()
  const begun = Promise.withResolvers<void>()
  let done = 0
  const seen = new Set<string>()
  /** Each keeps one connection open between its requests, like a pool would. */
  const work = async (_: unknown, worker: number): Promise<void> => {
    const retry = { attempts: 1 }
    const client = createClient({
      baseUrl: balancer.url,
      transport: httpTransport({ maxSockets: 1 }),
      token,
      retry,
      timeoutMs: 60_000,
      revision: createRevision(),
    })
    for (let n = 0; !stopping.signal.aborted; n++) {
      const namespace = `svc-w${worker}-${n}`
      await client.call(createNamespace, { body: { name: namespace } })
      assert.equal((await client.call(getNamespace, { params: { namespace } })).name, namespace)
      await client.call(deleteNamespace, { params: { namespace } })
      assert.ok(!(await client.listAll(listNamespaces)).some(({ name }) => name === namespace))
      done += 1
    }
  }
  const watching = (async () => {
    const client = createClient({ baseUrl: balancer.url, transport: httpTransport(), token })
    for await (const { type, object } of watch(client, listNamespaces, {}, { signal: ended.signal })) {
      if (type === 'ADDED') seen.add((object as { name: string }).name)
      if (type === 'BOOKMARK') begun.resolve()
    }
  })()
  // From here on the watch misses no change, on whichever server it resumes.
  await Promise.race([begun.promise, watching])
  const working = Promise.all(Array.from({ length: 3 }, work))
  // An error is thrown below, where the promise is awaited.
  working.catch(() => stopping.abort())
  const more = async (): Promise<void> => {
    const before = done
    await eventually(async () => assert.ok(done >= before + 6 || stopping.signal.aborted), 60_000)
  }

  await more()
  for (const [n, server] of servers.entries()) {
    const port = portOf(server)
    assert.equal((await plain(port, '/readyz')).status, 200)
    server.process.kill('SIGTERM')
    await eventually(async () => assert.equal((await plain(port, '/readyz')).status, 503), 60_000)
    // It serves on, and tells everybody to go.
    const answer = await plain(port, '/api/v1/cluster-info')
    assert.deepEqual([answer.status, answer.connection], [200, 'close'])
    const stream = await plain(port, '/api/v1/namespaces?watch=true', token)
    assert.deepEqual([stream.status, stream.retryAfter], [503, '1'])
    await eventually(async () => assert.equal(balancer.connectionsOf(port), 0), 60_000)
    server.process.kill('SIGTERM')
    assert.deepEqual(await server.ended, { code: 0, signal: null }, server.output())
    balancer.remove(port)
    await more()
    servers[n] = await start(folders[n] ?? '')
    await more()
  }
  stopping.abort()
  await working
  // And the default namespace.
  await eventually(async () => assert.equal(seen.size, done + 1), 60_000)
  ended.abort()
  await watching
})

interface Plain {
  readonly status: number | undefined
  readonly connection: string | undefined
  readonly retryAfter: string | undefined
}

/** With a connection that could be kept. */
function plain(port: number, path: string, token?: string): Promise<Plain> {
  const agent = new http.Agent({ keepAlive: true })
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  return new Promise((resolve, reject) => {
    const request = http.get({ host: '127.0.0.1', port, path, agent, headers }, (response) => {
      response.resume()
      const { statusCode: status, headers: told } = response
      response.on('end', () => {
        agent.destroy()
        resolve({ status, connection: told.connection, retryAfter: told['retry-after'] })
      })
    })
    request.on('error', reject)
  })
}

// Clients of Kubernetes: how late a watcher sees a change that was made by REST, what a list of many VMs costs, and
// what a watcher that is told nothing costs the server.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import { createInterface } from 'node:readline'
import { startControlPlane } from '../src/control-plane/control-plane.ts'
import { makeFolder } from '../test/support/processes/dev-server.ts'
import { type ServerProcess, startServerProcess } from '../test/support/processes/servers.ts'
import { eachOf, msOf, sized, usageOf } from './measure.ts'
import { vmRecord } from './records.ts'
import { type BenchRow, limited, median } from './row.ts'

const namespace = '/namespaces/svc-default'
const group = `/apis/orka.macstadium.com/v1${namespace}`
const listedVms = sized(10_000, 50)
const changes = sized(500, 5)
/** A caller may have 500. The first ones take what the server has at hand. */
const callers = ['one', 'two', 'three', 'four']
const watchersOfEach = sized(450, 2)

interface Port {
  readonly url: string
  readonly token: string
  readonly certificate: string
}

/** On a separate connection, as every client has one. */
async function get({ url, token, certificate }: Port, path: string, accept = '*/*'): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${token}`, accept }
  const request = https.get(`${url}${path}`, { ca: certificate, agent: false, headers })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  if (response.statusCode !== 200) throw new Error(`GET ${path} was refused: ${response.statusCode}`)
  return response
}

/** What is left after collecting; the program answers a line with what its heap has then. */
async function megabytesOf({ child }: ServerProcess): Promise<number> {
  if (!child.stdin || !child.stdout || child.pid === undefined) throw new Error('the server has no pipes')
  const answer = once(child.stdout, 'data')
  child.stdin.write('\n')
  await answer
  return (await usageOf(child.pid)).megabytes
}

async function watchers(): Promise<BenchRow[]> {
  await using cleanup = new AsyncDisposableStack()
  const dataFolder = await makeFolder()
  cleanup.defer(() => fs.rm(dataFolder, { recursive: true, force: true }))
  const masterKey = randomBytes(32).toString('base64')
  const server = await startServerProcess({ dataFolder, masterKey, isKubernetes: true, nodeArgs: ['--expose-gc'] })
  cleanup.defer(() => server.kill())
  const call = async (method: string, path: string, body?: object): Promise<void> => {
    const { status } = await server.call(method, `${namespace}${path}`, body)
    if (status >= 300) throw new Error(`${method} ${path} was refused: ${status}`)
  }
  await call('POST', '/images', { name: 'empty', size: '1G' })
  await call('POST', '/vms?wait=false', { name: 'demo', image: 'empty', cpu: 1, memory: 0.5 })
  const certificate = String((await server.call('GET', '/cluster-info')).body.certData)
  const port = { url: server.kubernetesUrl ?? '', token: server.token, certificate }

  const watch = await get(port, `${group}/virtualmachineinstances?watch=true`)
  const waiting = new Map<string, () => void>()
  createInterface(watch)
    .on('line', (line) => waiting.get(/"round":"(\d+)"/.exec(line)?.[1] ?? '')?.())
    // It is cut off below.
    .on('error', () => undefined)
  const times: number[] = []
  for (let round = 0; round < changes; round++) {
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.set(String(round), resolve)
    times.push(
      await msOf(async () => {
        await Promise.all([
          call('PUT', '/metadata/vms/demo', { labels: { round: String(round) }, annotations: {} }),
          promise,
        ])
      }),
    )
    waiting.delete(String(round))
  }
  watch.destroy()
  const sorted = times.slice(changes / 10).toSorted((a, b) => a - b)

  const open: IncomingMessage[] = []
  cleanup.defer(() => {
    for (const each of open) each.destroy()
  })
  const megabytes: number[] = []
  for (const caller of callers) {
    await call('POST', `/serviceaccounts/${caller}`)
    const { body } = await server.call('POST', `${namespace}/serviceaccounts/${caller}/token`, {})
    await eachOf([...Array(watchersOfEach).keys()], 8, async () => {
      const watching = await get({ ...port, token: body.token }, `${group}/virtualmachineinstances?watch=true`)
      open.push(watching.on('error', () => undefined).resume())
    })
    megabytes.push(await megabytesOf(server))
  }
  const [first = 0] = megabytes
  const kilobytes = ((megabytes.at(-1) ?? 0) - first) * 1_024
  return [
    limited('A change made by REST, request to watcher of Kubernetes, p50', 'ms', median(sorted), 20),
    limited('The same, p99', 'ms', sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN, 50),
    limited('Memory of the server per watcher over TLS', 'KB', kilobytes / watchersOfEach / (callers.length - 1), 100),
  ]
}

async function lists(): Promise<BenchRow[]> {
  await using cleanup = new AsyncDisposableStack()
  const dataFolder = await makeFolder()
  cleanup.defer(() => fs.rm(dataFolder, { recursive: true, force: true }))
  await fs.writeFile(`${dataFolder}/config.json`, JSON.stringify({ logLevel: 'silent' }))
  const plane = await startControlPlane({
    dataFolder,
    host: '127.0.0.1',
    port: 0,
    environment: { SVC3_MASTER_KEY: randomBytes(32).toString('base64') },
    plainHttp: true,
    kubernetes: { host: '127.0.0.1', port: 0 },
  })
  cleanup.defer(() => plane.stop())
  const all = Array.from({ length: listedVms }, (_, index) => vmRecord(index))
  await eachOf(all, 64, async (record) => {
    await plane.collections.vms.create(record.namespace, record.name, record)
  })
  const { token } = await plane.tokens.issue({ kind: 'user', name: 'admin@example.com', admin: true })
  const { certificate } = await plane.certificates.current()
  const port = { url: plane.kubernetesUrl ?? '', token, certificate }
  const list = async (accept?: string): Promise<number> => {
    let text = ''
    const ms = await msOf(async () => {
      const response = await get(port, `${group}/virtualmachineinstances`, accept)
      for await (const chunk of response.setEncoding('utf8')) text += chunk
    })
    const { items, rows } = JSON.parse(text) as { items?: unknown[]; rows?: unknown[] }
    if ((items ?? rows)?.length !== listedVms) throw new Error('the list is not whole')
    return ms
  }
  // The first one renders every VM; those after it have their text at hand.
  const first = await list()
  const tables: number[] = []
  for (let round = 0; round < sized(5, 1); round++)
    tables.push(await list('application/json;as=Table;v=v1;g=meta.k8s.io'))
  return [
    limited('`LIST` of 10,000 VMs for Kubernetes, the first time', 'ms', first, 1_000),
    limited('The same as a table of `kubectl get`', 'ms', median(tables), 1_000),
  ]
}

export const bench = async (): Promise<BenchRow[]> => [...(await watchers()), ...(await lists())]

// Lists of 32 and 65 MB in both APIs: they are sent in pieces, no faster than they are read, and other work runs in between.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { vmRecord } from '../../../bench/records.ts'
import { type KubernetesRig, startKubernetes } from '../../../test/support/rigs/kubernetes.ts'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { KindObjects } from '../kubernetes/kind-objects.ts'
import { ListRenderer } from './lists.ts'
import { maxPageChars } from './page.ts'

const count = 500
/** Of CPU time, which varies less than time on a busy machine. The client is in the same process. */
const maxHeldMs = 200
const long = 'x'.repeat(64 * 1_024)
const rest = '/api/v1/namespaces/svc-default/vmconfigs'
const configs = '/apis/orka.macstadium.com/v1/namespaces/svc-default/virtualmachineconfigs'
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const withState = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan'

const sources = [
  { what: 'a list of the REST API', url: rest },
  { what: 'a watch of the REST API', url: `${rest}?watch=true`, isEndless: true },
  { what: 'a list of the Kubernetes API', url: configs },
  { what: 'a Table of the Kubernetes API', url: configs, accept: table },
  { what: 'a watch of the Kubernetes API', url: `${configs}?${withState}`, isEndless: true },
  { what: 'a Table watch of the Kubernetes API', url: `${configs}?${withState}`, accept: table, isEndless: true },
]

let service: TestService
let kube: KubernetesRig
/** How many items were read for answers. */
let rendered = 0
/** Called before each. */
let beforeItem = (): void => undefined

function counted(prototype: object, method: string): () => void {
  const original = Reflect.get(prototype, method) as (...values: unknown[]) => unknown
  Reflect.set(prototype, method, function (this: unknown, ...values: unknown[]) {
    rendered += 1
    beforeItem()
    return original.apply(this, values)
  })
  return () => void Reflect.set(prototype, method, original)
}
const restore = [counted(ListRenderer.prototype, 'item'), counted(KindObjects.prototype, 'object')]

before(async () => {
  service = await startService({ plainHttp: true })
  kube = startKubernetes(service)
  const { vmConfigs } = service.services.collections
  const { shape, createdAt } = vmRecord(1)
  for (let index = 0; index < count; index++) {
    const name = `long-${String(index).padStart(5, '0')}`
    // The REST API shows the owner, a Table the annotations.
    const config = { name, namespace: 'svc-default', owner: long, createdAt, shape }
    await vmConfigs.create('svc-default', name, { ...config, meta: { annotations: { note: long } } })
  }
  await service.listen()
  await kube.app.listen({ host: '127.0.0.1', port: 0 })
})
after(async () => {
  for (const response of opened) response.destroy()
  for (const each of restore) each()
  await kube[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})
beforeEach(() => {
  beforeItem = () => undefined
})

const opened = new Set<http.IncomingMessage>()

async function open(url: string, accept = 'application/json'): Promise<http.IncomingMessage> {
  const headers = { authorization: `Bearer ${service.adminToken}`, accept }
  const { port } = kube.app.server.address() as AddressInfo
  const options = { headers, agent: false as const }
  const request = url.startsWith('/apis/')
    ? https.get({ host: '127.0.0.1', port, path: url, rejectUnauthorized: false, ...options })
    : http.get(service.apiUrl + url, options)
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  response.on('error', () => undefined)
  opened.add(response)
  return response
}

/** Reads until the items have come, and returns their bytes and the longest time that the event loop was held, without waiting. */
async function readAll(response: http.IncomingMessage): Promise<{ bytes: number; heldMs: number; pieces: Buffer[] }> {
  let heldMs = 0
  let isReading = true
  const look = (before: number): void => {
    const { user, system } = process.threadCpuUsage()
    heldMs = Math.max(heldMs, (user + system - before) / 1_000)
    if (isReading) setImmediate(look, user + system)
  }
  setImmediate(look, Number.POSITIVE_INFINITY)
  const pieces: Buffer[] = []
  let bytes = 0
  try {
    for await (const piece of response) {
      pieces.push(piece as Buffer)
      bytes += (piece as Buffer).length
      if (bytes > count * (long.length + 100) && String(pieces.at(-1)).includes('BOOKMARK')) break
    }
  } finally {
    isReading = false
  }
  return { bytes, heldMs, pieces }
}

describe('long lists', () => {
  for (const { what, url, accept, isEndless } of sources) {
    it(`${what} is whole and holds the event loop for short times`, async () => {
      const response = await open(isEndless ? `${url}&allowWatchBookmarks=true` : url, accept)
      assert.equal(response.statusCode, 200)
      assert.equal(response.headers['content-length'], undefined)
      const { heldMs, pieces } = await readAll(response)
      const text = Buffer.concat(pieces).toString()
      assert.equal(isEndless ? text.split('{"type":"ADDED"').length - 1 : itemsOf(JSON.parse(text)).length, count)
      assert.ok(heldMs < maxHeldMs, `${heldMs} ms`)
    })

    it(`${what} waits for its reader, and ends when that has left`, async () => {
      rendered = 0
      const response = await open(url, accept)
      response.pause()
      await sleep(1_000)
      const waiting = rendered
      // What the kernel and this client hold for the reader is a few MB.
      assert.ok(waiting > 0 && waiting < count / 4, `${waiting} of ${count} were rendered`)
      response.destroy()
      await sleep(300)
      assert.ok(rendered - waiting < 10, `${rendered - waiting} more were rendered`)
    })
  }

  it('a selector over many records lets other work run in between', async () => {
    const { bytes, heldMs } = await readAll(await open(`${configs}?labelSelector=a=b`))
    assert.ok(bytes < 200 && heldMs < maxHeldMs, `${heldMs} ms`)
  })

  for (const url of [rest, configs])
    it(`pages of ${url.split('/').at(-1)} have a largest size, and all of them each item once`, async () => {
      const names = new Set<unknown>()
      let token: string | undefined = ''
      let pages = 0
      for (; token !== undefined; pages++) {
        const { bytes, pieces } = await readAll(await open(`${url}?limit=1000${token && `&continue=${token}`}`))
        assert.ok(bytes < maxPageChars + 1_000, `${bytes}`)
        const body = JSON.parse(Buffer.concat(pieces).toString())
        for (const { name, metadata } of itemsOf(body)) names.add(name ?? metadata?.name)
        token = body.continue ?? body.metadata?.continue
        if (body.metadata) assert.equal(body.metadata.remainingItemCount ?? 0, count - names.size)
      }
      assert.equal(names.size, count)
      assert.ok(pages >= (count * long.length) / maxPageChars && pages < 20, `${pages} pages`)
    })

  for (const url of [rest, configs])
    it(`an error in the middle of ${url.split('/').at(-1)} ends the connection, so that no client takes the part for the whole`, async () => {
      rendered = 0
      beforeItem = () => {
        if (rendered > count / 2) throw new Error('an item that cannot be rendered')
      }
      const response = await open(url)
      await assert.rejects(readAll(response), /aborted/)
      assert.ok(!response.complete)
    })

  it('an error before the first piece is a refusal', async () => {
    beforeItem = () => {
      throw new Error('an item that cannot be rendered')
    }
    assert.equal((await open(rest)).statusCode, 500)
    assert.equal((await open(configs, table)).statusCode, 500)
  })

  it('HEAD of a long list renders no more than its beginning', async () => {
    rendered = 0
    const { statusCode } = await service.app.inject({
      method: 'HEAD',
      url: rest,
      headers: { authorization: `Bearer ${service.adminToken}` },
    })
    assert.equal(statusCode, 200)
    assert.ok(rendered < 100, `${rendered}`)
  })
})

interface Item {
  readonly name?: string
  readonly metadata?: { readonly name: string }
}

const itemsOf = ({ items, rows }: { items?: Item[]; rows?: Item[] }): Item[] => items ?? rows ?? []

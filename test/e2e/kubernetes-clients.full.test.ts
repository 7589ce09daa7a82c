// Clients of the original that cannot be had here: what Packer's plugin and Homebrew's runners send, in their order, as
// it was recorded of them, and what they insist on in the answers. On simulated nodes.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import https from 'node:https'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type DevServer, makeFolder, startDev } from '../support/processes/dev-server.ts'

const group = '/apis/orka.macstadium.com/v1'
const inDefault = `${group}/namespaces/orka-default`
const vms = `${inDefault}/virtualmachineinstances`

// biome-ignore lint/suspicious/noExplicitAny: objects of every kind
type Any = any

let folder: string
let server: DevServer
let place: { readonly host: string; readonly port: number; readonly ca: string }

before(async () => {
  folder = await makeFolder()
  const args = ['--driver', 'simulated', '--kubernetes-listen', '127.0.0.1:0']
  server = await startDev(path.join(folder, 'data'), { args })
  // Both read it without a token, and take the address and the certificate from it.
  const info = (await (await fetch(`${server.apiUrl}/api/v1/cluster-info`)).json()) as Any
  const { hostname, port } = new URL(info.apiEndpoint)
  assert.equal(info.apiDomain, hostname)
  place = { host: info.apiDomain, port: Number(port), ca: info.certData }
})
after(async () => {
  await server.kill('SIGTERM')
  await fs.rm(folder, { recursive: true, force: true })
})

const open = (method: string, url: string, headers: Record<string, string>, body?: object) =>
  new Promise<Any>((resolve, reject) => {
    const text = body === undefined ? '' : JSON.stringify(body)
    const more = { authorization: `Bearer ${server.token}`, 'content-length': String(Buffer.byteLength(text)) }
    const options = { ...place, path: url, method, agent: false, headers: { ...headers, ...more } } as const
    https
      .request({ ...options, minVersion: 'TLSv1.3' }, resolve)
      .on('error', reject)
      .end(text)
  })

async function send(method: string, url: string, headers: Record<string, string>, body?: object) {
  const response = await open(method, url, headers, body)
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return { status: response.statusCode as number, body: JSON.parse(text) as Any }
}

/** Of a watch, until one is what is waited for; an ERROR makes them crash, and an early end is one. */
async function watched(url: string, headers: Record<string, string>, isIt: (type: string, object: Any) => boolean) {
  let rest = ''
  for await (const chunk of (await open('GET', url, headers)).setEncoding('utf8')) {
    const lines = `${rest}${chunk}`.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const { type, object } = JSON.parse(line)
      assert.notEqual(type, 'ERROR', line)
      assert.ok(object.metadata.labels && object.metadata.annotations && object.metadata.creationTimestamp, line)
      if (isIt(type, object)) return object
    }
  }
  throw new Error('the watch ended')
}

describe('clients of the original, by their requests', () => {
  it("Packer's plugin deploys a VM, saves it over an older image, and deletes it", async () => {
    const get = { accept: 'application/json, */*' }
    const post = { ...get, 'content-type': 'application/json' }
    const resources = (await send('GET', group, get)).body.resources.map(({ name }: { name: string }) => name)
    assert.ok(resources.includes('virtualmachineinstances') && resources.includes('images'))
    assert.ok((await send('GET', '/api/v1', get)).body.resources.some(({ name }: { name: string }) => name === 'pods'))
    const vm = {
      kind: 'VirtualMachineInstance',
      apiVersion: 'orka.macstadium.com/v1',
      metadata: { name: 'packer-1', namespace: 'orka-default', creationTimestamp: null },
      spec: { image: 'tiny-arm64', cpu: 3, tag: '', tagRequired: false, netBoost: true, legacyIO: false },
      status: { memory: '', nodeName: '', hostIP: '', ip: '', portWarnings: '', startTime: 0, errorMessage: '' },
    }
    const created = await send('POST', vms, post, vm)
    assert.equal(created.status, 201, JSON.stringify(created.body))
    const running = await watched(
      `${vms}?fieldSelector=metadata.name%3Dpacker-1&watch=true`,
      get,
      (_, { status }) => status.phase === 'Running',
    )
    assert.equal(typeof running.status.sshPort, 'number')
    assert.ok(running.status.hostIP !== '')
    const image = {
      kind: 'Image',
      apiVersion: 'orka.macstadium.com/v1',
      metadata: {
        name: 'built',
        namespace: 'orka-default',
        creationTimestamp: null,
        annotations: { 'orka.macstadium.com/description': 'by Packer' },
      },
      spec: {
        size: '0',
        source: 'packer-1',
        sourceNamespace: 'orka-default',
        sourceType: 'vm',
        destination: 'built',
      },
      status: {},
    }
    const options = { kind: 'DeleteOptions', apiVersion: 'orka.macstadium.com/v1' }
    for (const round of ['first', 'again']) {
      const removed = await send('DELETE', `${inDefault}/images/built`, post, options)
      assert.equal(removed.status, round === 'first' ? 404 : 200, JSON.stringify(removed.body))
      // The name is free as soon as the deletion is answered.
      const saved = await send('POST', `${inDefault}/images`, post, image)
      assert.equal(saved.status, 201, JSON.stringify(saved.body))
      await watched(`${inDefault}/images?fieldSelector=metadata.name%3Dbuilt&watch=true`, get, (_, { status }) => {
        assert.notEqual(status.state, 'Failed', status.errorMessage)
        return status.state === 'Ready'
      })
    }
    const kept = (await send('GET', `${inDefault}/images/built`, get)).body
    assert.equal(kept.metadata.annotations['orka.macstadium.com/description'], 'by Packer')
    assert.match(kept.spec.size, /^\d+(\.\d+)?G$/)
    assert.equal((await send('DELETE', `${vms}/packer-1`, post, options)).status, 200)
  })

  it("Homebrew's runner deploys by a VM configuration, waits from the version of the answer, and deletes", async () => {
    const any = { accept: '*/*' }
    await server.call('POST', '/api/v1/namespaces/orka-default/vmconfigs', {
      name: 'brew',
      image: 'tiny-arm64',
      cpu: 2,
    })
    const created = await send(
      'POST',
      vms,
      { ...any, 'content-type': 'application/json' },
      {
        apiVersion: 'orka.macstadium.com/v1',
        kind: 'VirtualMachineInstance',
        metadata: { generateName: 'runner-', labels: { 'orka.macstadium.com/vm-config': 'brew' } },
        spec: { customVMMetadata: { runner_label: 'x', orchestrator_secret: 'canary' } },
      },
    )
    assert.equal(created.status, 201, JSON.stringify(created.body))
    const { name, resourceVersion } = created.body.metadata
    assert.match(name, /^runner-[a-z0-9]{5}$/)
    const from = (version: string): string =>
      `${vms}?watch=1&fieldSelector=metadata.name=${name}&resourceVersion=${version}`
    const running = await watched(from(resourceVersion), any, (_, { status }) => status.phase !== 'Pending')
    assert.equal(running.status.phase, 'Running')
    const list = await send('GET', vms, any)
    assert.ok(list.body.items.some(({ metadata }: Any) => metadata.name === name))
    assert.ok(!JSON.stringify(list.body).includes('canary'))
    const removed = await send('DELETE', `${vms}/${name}`, any)
    assert.equal(removed.body.kind, 'VirtualMachineInstance')
    assert.ok(removed.body.metadata.deletionTimestamp)
    await watched(from(removed.body.metadata.resourceVersion), any, (type) => type === 'DELETED')
    assert.equal((await send('DELETE', `${vms}/${name}`, any)).status, 404)
  })
})

// What differs for callers of `orka3`: the default namespace and its spelling, and commands that Orka means otherwise.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import { after, before, beforeEach, describe, it } from 'node:test'
import { type FakeHostOptions, run } from '../../test/support/rigs/cli-host.ts'
import { type FakeService, send, startFakeService } from '../../test/support/stand-ins/api.ts'

let service: FakeService
let folder: string
before(async () => {
  service = await startFakeService()
  folder = fs.mkdtempSync(`${os.tmpdir()}/orka3-`)
})
after(async () => {
  fs.rmSync(folder, { recursive: true })
  await service[Symbol.asyncDispose]()
})
beforeEach(() => {
  service.requests.length = 0
  service.override = (_, response) => send(response, 200, { items: [], name: 'small' })
})

const called = (calledAs: string, line: string, { env, ...options }: FakeHostOptions = {}) =>
  run(line.split(' '), {
    ...options,
    calledAs,
    env: { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token, HOME: folder, ...env },
  })
const pathOf = async (...line: Parameters<typeof called>): Promise<string> => {
  service.requests.length = 0
  await called(...line)
  return service.requests[0]?.path ?? ''
}

describe('the default namespace', () => {
  const kubeconfig = (namespace: string, name = 'orka') =>
    `apiVersion: v1\ncurrent-context: other\ncontexts:\n- name: other\n  context: {namespace: kube-system}\n- name: ${name}\n  context:\n    cluster: orka\n    namespace: ${namespace}\n`

  it('orka3 spells it orka-default, in requests, texts and help', async () => {
    assert.equal(await pathOf('orka3', 'vm list'), '/api/v1/namespaces/orka-default/vms')
    assert.equal(service.requests[0]?.headers['user-agent'], 'orka3-cli')
    assert.equal(await pathOf('svc3', 'vm list'), '/api/v1/namespaces/svc-default/vms')
    const { stderr } = await called('orka3', 'vm list', { terminal: { stdout: true } })
    assert.equal(stderr, 'orka3: No VMs in orka-default\n')
    const help = (await called('orka3', 'vm list --help')).stdout
    assert.ok(help.includes('orka-default') && !help.includes('svc-default'), help)
  })

  it('orka3 takes that of the context orka of a kubeconfig, after the variables, and config view says so', async () => {
    const file = `${folder}/kubeconfig`
    const env = { KUBECONFIG: `${file}:${folder}/none` }
    fs.writeFileSync(file, kubeconfig('orka-ios'))
    assert.equal(await pathOf('orka3', 'vm list', { env }), '/api/v1/namespaces/orka-ios/vms')
    assert.equal(await pathOf('svc3', 'vm list', { env }), '/api/v1/namespaces/svc-default/vms')
    assert.equal(await pathOf('orka3', 'vm list -n orka-tv', { env }), '/api/v1/namespaces/orka-tv/vms')
    const both = { ...env, ORKA_DEFAULT_NAMESPACE: 'orka-ci' }
    assert.equal(await pathOf('orka3', 'vm list', { env: both }), '/api/v1/namespaces/orka-ci/vms')
    assert.match(
      (await called('orka3', 'config view', { env })).stderr,
      /The default namespace is orka-ios, of context orka in \S+kubeconfig\n/,
    )
    for (const text of [kubeconfig('x', 'mine'), 'orka: [', 'orka', '- orka', 'contexts: orka']) {
      fs.writeFileSync(file, text)
      assert.equal(await pathOf('orka3', 'vm list', { env }), '/api/v1/namespaces/orka-default/vms', text)
    }
  })
})

describe('commands of Orka', () => {
  it('orka3 vm create makes a VM configuration, and svc3 vm create deploys', async () => {
    const line = 'vm create small -i sonoma -c 4'
    assert.equal(await pathOf('orka3', line), '/api/v1/namespaces/orka-default/vmconfigs')
    assert.equal(await pathOf('orka3', `-n orka-ios ${line}`), '/api/v1/namespaces/orka-ios/vmconfigs')
    assert.match(await pathOf('svc3', line), /\/namespaces\/svc-default\/vms\?/)
  })

  it('vm deploy takes -y', async () => {
    assert.match(await pathOf('orka3', 'vm deploy demo -i sonoma -y'), /\/vms\?/)
  })

  it('image list takes --arch and --type', async () => {
    const images = ['amd64', 'arm64'].map((type) => ({ name: `tiny-${type}`, type }))
    service.override = (_, response) => send(response, 200, { items: images })
    const names = async (line: string) =>
      (await called('orka3', `image list ${line} -o json`)).stdout.match(/(?<="name": ")[^"]+/g) ?? []
    assert.deepEqual(await names('--arch arm64'), ['tiny-arm64'])
    assert.deepEqual(await names('--type amd64'), ['tiny-amd64'])
    assert.deepEqual(await names('--type amd64 --arch arm64'), [])
    assert.equal((await called('orka3', 'image list --arch x86')).exitCode, 2)
  })

  it('version shows client, server and agents', async () => {
    service.override = ({ path }, response) =>
      send(response, 200, path.endsWith('/cluster-info') ? { version: '3.0.0' } : { items: [{ version: '3.0.1' }, { version: '3.0.0' }, { version: '3.0.1' }] }) // biome-ignore format: two answers
    assert.match((await called('orka3', 'version')).stdout, /^client 3.0.0-here\nserver 3.0.0\nagents 3.0.0, 3.0.1\n$/)
    assert.deepEqual(JSON.parse((await called('orka3', 'version -o json')).stdout)[0].agents, ['3.0.0', '3.0.1'])
  })
})

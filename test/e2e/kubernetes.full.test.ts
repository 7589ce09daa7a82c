// kubectl against the program itself: a kubeconfig from the command line, then the commands that people type, on simulated
// nodes. A watch is resumed after the server was killed.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type DevServer, makeFolder, startDev, svc3 } from '../support/processes/dev-server.ts'
import { freePort } from '../support/tools/free-port.ts'
import { tooOldKubectl } from '../support/tools/kubectl-age.ts'

const skip = tooOldKubectl()

const manifest = (kind: string, name: string, spec: object, metadata: object = {}): string =>
  JSON.stringify({ apiVersion: 'orka.macstadium.com/v1', kind, metadata: { name, ...metadata }, spec })

let folder: string
let server: DevServer
let env: Record<string, string>

interface Ran {
  readonly code: number
  readonly out: string
}

/** Both streams together: kubectl reports refusals on the second. */
const kubectl = (line: string, input = ''): Promise<Ran> =>
  new Promise((resolve) => {
    const child = execFile(
      'kubectl',
      line.split(' '),
      { env: { ...process.env, ...env }, timeout: 120_000 },
      (error, out, err) => resolve({ code: error ? Number(error.code ?? 1) : 0, out: out + err }),
    )
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(input)
  })

async function succeeds(line: string, form: RegExp, input = ''): Promise<string> {
  const { code, out } = await kubectl(line, input)
  assert.equal(code, 0, `kubectl ${line}: ${out}`)
  assert.match(out, form)
  return out
}

async function fails(line: string, form: RegExp, input = ''): Promise<void> {
  const { code, out } = await kubectl(line, input)
  assert.notEqual(code, 0, `kubectl ${line} succeeded`)
  assert.match(out, form)
}

const startServer = (): Promise<DevServer> =>
  startDev(path.join(folder, 'data'), {
    listen: `127.0.0.1:${port}`,
    args: ['--driver', 'simulated', '--kubernetes-listen', `127.0.0.1:${kubernetesPort}`],
  })
let [port, kubernetesPort] = [0, 0]

before(async () => {
  folder = await makeFolder()
  ;[port, kubernetesPort] = [await freePort(), await freePort()]
  server = await startServer()
  env = { KUBECONFIG: path.join(folder, 'kubeconfig'), SVC3_DATA: path.join(folder, 'data'), HOME: folder }
  const { code, stderr } = await svc3(['user', 'kubeconfig', '--merge', '-n', 'orka-default'], { env })
  assert.equal(code, 0, stderr)
})
after(async () => {
  await server[Symbol.asyncDispose]()
  await fs.rm(folder, { recursive: true, force: true })
})

describe('kubectl', () => {
  it('the kubeconfig holds no token, and discovery finds every kind', { skip }, async () => {
    const file = await fs.readFile(env.KUBECONFIG as string, 'utf8')
    assert.ok(!file.includes(server.token))
    const out = await succeeds('api-resources', /virtualmachineinstances +vm,vms/)
    for (const kind of ['Image', 'OrkaNode', 'Namespace', 'Pod', 'ServiceAccount', 'RoleBinding'])
      assert.match(out, new RegExp(`${kind}$`, 'm'))
    await succeeds('version', /svc3/)
    await succeeds('explain vm.spec.cpu', /Number of CPU cores/)
    await succeeds('auth can-i create vms', /yes/)
    await succeeds('auth whoami', /admin@localhost/)
  })

  it('a VM is applied, awaited, shown, labelled and deleted', { skip }, async () => {
    const vm = manifest('VirtualMachineInstance', 'demo', { image: 'tiny-arm64', cpu: 2 })
    await succeeds('apply --dry-run=server -f -', /demo created \(server dry run\)/, vm)
    await succeeds('apply -f -', /demo created/, vm)
    await succeeds('wait --for=condition=Ready vm/demo --timeout=60s', /condition met/)
    await succeeds('apply -f -', /demo unchanged/, vm)
    await succeeds('get vms', /^NAME +IP +SSH +VNC +SCREENSHARE +STATUS\s+demo .*Running/)
    await succeeds('get vms -A', /svc-default +demo/)
    await succeeds('get vm demo -o jsonpath={.metadata.namespace}', /^orka-default$/)
    await succeeds('label vm demo team=ios', /labeled/)
    await succeeds('get vms -l team=ios -o name', /demo/)
    await succeeds('describe vm demo', /DeployVm/)
    await fails('patch vm demo --type=merge -p {"spec":{"cpu":4}}', /cannot be changed/)
    await succeeds('delete vm demo', /deleted/)
    await fails('get vm demo', /virtualmachineinstances.orka.macstadium.com "demo" not found/)
  })

  it('a VM configuration is created, compared, applied, patched, replaced and deleted', { skip }, async () => {
    const config = (cpu: number) => manifest('VirtualMachineConfig', 'ci', { image: 'tiny-arm64', cpu })
    await succeeds('apply -f -', /ci created/, config(2))
    const { code, out } = await kubectl('diff -f -', config(4))
    assert.equal(code, 1)
    assert.match(out, /^\+ {2}cpu: 4$/m)
    await succeeds('apply -f -', /ci configured/, config(4))
    await succeeds('apply --server-side --force-conflicts -f -', /serverside-applied/, config(6))
    await succeeds('patch vmconfig ci --type=json -p [{"op":"replace","path":"/spec/cpu","value":8}]', /patched/)
    const current = await succeeds('get vmconfig ci -o json', /"cpu": 8/)
    await succeeds('replace -f -', /replaced/, current)
    await fails(
      'create -f -',
      /unknown field "spec.cpus"/,
      manifest('VirtualMachineConfig', 'x', { image: 'tiny-arm64', cpus: 2 }),
    )
    await fails('create -f -', /Image nope not found/, manifest('VirtualMachineConfig', 'x', { image: 'nope' }))
    await succeeds('delete vmconfig ci', /deleted/)
  })

  it('nodes are cordoned, namespaces created and deleted, tokens of service accounts work', { skip }, async () => {
    await succeeds('cordon sim-arm64-1', /cordoned/)
    await succeeds('get node sim-arm64-1', /SchedulingDisabled/)
    await succeeds('uncordon sim-arm64-1', /uncordoned/)
    await succeeds('create ns orka-ios', /created/)
    await succeeds('get ns orka-ios', /orka-ios +Active/)
    await succeeds('create sa bot', /created/)
    const token = (await succeeds('create token bot', /^ey/)).trim()
    await succeeds(`--token=${token} auth whoami`, /bot/)
    await succeeds('delete ns orka-ios', /deleted/)
    await succeeds('events', /CordonNode/)
  })

  it('server-side apply: conflicts are named, forced ones win, and a dropped field goes', { skip }, async () => {
    const config = (spec: object) => manifest('VirtualMachineConfig', 'ssa', { image: 'tiny-arm64', ...spec })
    const apply = 'apply --server-side --field-manager'
    await succeeds(`${apply} git -f -`, /ssa serverside-applied/, config({ cpu: 2, tag: 'ios' }))
    await fails(`${apply} ops -f -`, /conflict with "git": .spec.cpu[\s\S]*--force-conflicts/, config({ cpu: 4 }))
    const { code, out } = await kubectl(
      'diff --server-side --force-conflicts --field-manager ops -f -',
      config({ cpu: 4 }),
    )
    assert.equal(code, 1, out)
    assert.match(out, /^-\s+cpu: 2\n\+\s+cpu: 4$/m)
    await succeeds('get vmconfig ssa -o jsonpath={.spec.cpu}', /^2$/)
    await succeeds(`${apply} ops --force-conflicts -f -`, /serverside-applied/, config({ cpu: 4 }))
    await succeeds('get vmconfig ssa -o jsonpath={.spec.tag}{.metadata.generation}', /^ios2$/)
    await succeeds(`${apply} git -f -`, /serverside-applied/, config({}))
    await succeeds('get vmconfig ssa -o jsonpath={.spec}', /^(?!.*ios).*"cpu":4/)
    await succeeds('label vmconfig ssa team=ios', /labeled/)
    await succeeds('get vmconfig ssa --show-managed-fields -o yaml', /manager: kubectl-label/)
    // Another manager cannot take a label of kubectl label.
    const labelled = manifest('VirtualMachineConfig', 'ssa', {}, { labels: { team: 'web' } })
    await fails(`${apply} git -f -`, /conflict with "kubectl-label".*: .metadata.labels.team/, labelled)
    await succeeds('delete vmconfig ssa', /deleted/)
  })

  it('an object that kubectl applied is taken over by server-side apply', { skip }, async () => {
    const config = (cpu: number) => manifest('VirtualMachineConfig', 'moved', { image: 'tiny-arm64', cpu })
    await succeeds('apply -f -', /moved created/, config(2))
    await succeeds('apply --server-side -f -', /moved serverside-applied/, config(4))
    await succeeds('get vmconfig moved -o jsonpath={.spec.cpu}', /^4$/)
    await succeeds('apply --server-side -f -', /moved serverside-applied/, config(4))
    const { code, out } = await kubectl('diff --server-side -f -', config(4))
    assert.equal(code, 0, out)
    await succeeds('delete vmconfig moved', /deleted/)
  })

  it('a finalizer keeps a VM running until it is removed', { skip }, async () => {
    const finalizers = ['example.com/backup']
    const vm = manifest('VirtualMachineInstance', 'held', { image: 'tiny-arm64', cpu: 1 }, { finalizers })
    await succeeds('create -f -', /created/, vm)
    await succeeds('wait --for=condition=Ready vm/held --timeout=60s', /condition met/)
    await succeeds('delete vm held --wait=false', /deleted/)
    await succeeds('get vm held -o jsonpath={.status.phase}{.metadata.deletionTimestamp}', /^Running20/)
    await succeeds('patch vm held --type=json -p [{"op":"remove","path":"/metadata/finalizers/0"}]', /patched/)
    await succeeds('wait --for=delete vm/held --timeout=60s', /^/)
    await fails('get vm held', /not found/)
  })

  it('kinds of Kubernetes itself take labels, annotations and applied manifests', { skip }, async () => {
    for (const each of ['ns orka-default', 'node sim-arm64-1', 'orkanode sim-arm64-1']) {
      await succeeds(`label ${each} team=ios --overwrite`, /labeled/)
      await succeeds(`annotate ${each} example.com/ticket=42`, /annotated/)
      await succeeds(`get ${each} --show-labels`, /team=ios/)
      await succeeds(`annotate ${each} example.com/ticket-`, /annotated/)
      await succeeds(`label ${each} team-`, /unlabeled/)
    }
    const core = (kind: string, labels: object) =>
      JSON.stringify({ apiVersion: 'v1', kind, metadata: { name: kind === 'Namespace' ? 'orka-git' : 'git', labels } })
    for (const kind of ['Namespace', 'ServiceAccount']) {
      await succeeds('apply -f -', /created/, core(kind, { a: '1', b: '1' }))
      await succeeds('apply -f -', /unchanged/, core(kind, { a: '1', b: '1' }))
      await succeeds('apply -f -', /configured/, core(kind, { a: '2' }))
      await succeeds('apply --server-side -f -', /serverside-applied/, core(kind, { a: '3' }))
    }
    await fails('get rolebinding orka-dev', /rolebindings.rbac.authorization.k8s.io "orka-dev" not found/)
    await succeeds('create rolebinding orka-dev --clusterrole=orka-dev --user=ana@example.com', /created/)
    await succeeds('label rolebinding orka-dev a=1', /rolebinding.rbac.authorization.k8s.io\/orka-dev labeled/)
    await succeeds('set subject rolebinding orka-dev --user=bo@example.com', /subjects updated/)
    await succeeds(
      'get rolebinding orka-dev -o jsonpath={.subjects[*].name}{.metadata.labels}',
      /^ana\S+ bo\S+{"a":"1"}$/,
    )
    const tagged = { apiVersion: 'orka.macstadium.com/v1', kind: 'OrkaNode', metadata: { name: 'sim-arm64-1' } }
    for (const tags of [['git'], []])
      await succeeds('apply --server-side -f -', /applied/, JSON.stringify({ ...tagged, spec: { tags } }))
    await succeeds('get orkanode sim-arm64-1 -o jsonpath={.spec.tags}', /^(?!.*git)/)
    await succeeds('get sa git -o jsonpath={.metadata.labels}', /^{"a":"3"}$/)
    await succeeds('delete ns orka-git', /deleted/)
    await succeeds('delete sa git', /deleted/)
  })

  it('names are generated, stale objects refused, collections deleted, and the status left to the service', {
    skip,
  }, async () => {
    const generated = JSON.stringify({
      apiVersion: 'orka.macstadium.com/v1',
      kind: 'VirtualMachineConfig',
      metadata: { generateName: 'many-', labels: { set: 'many' } },
      spec: { image: 'tiny-arm64' },
    })
    const name = /(many-[a-z0-9]{5}) created/.exec(await succeeds('create -f -', /created/, generated))?.[1] ?? ''
    await succeeds('create -f -', /created/, generated)
    const stale = await succeeds(`get vmconfig ${name} -o json`, /resourceVersion/)
    await succeeds(`label vmconfig ${name} a=b`, /labeled/)
    await fails('replace -f -', /the object has been modified/, stale)
    await succeeds('delete vmconfig -l set=many --dry-run=server', /deleted.* \(server dry run\)/)
    await succeeds('delete vmconfig -l set=many', /deleted/)
    await succeeds('get vmconfig -l set=many', /No resources found/)
    const status = 'patch orkanode sim-arm64-1 --subresource=status --type=merge -p {"status":{"phase":"GONE"}}'
    await fails(status, /written by the service/)
  })

  it('any kubectl, also one of 2020, gets, applies, labels, patches and deletes', async () => {
    await succeeds(
      'apply -f -',
      /plain created/,
      manifest('VirtualMachineConfig', 'plain', { image: 'tiny-arm64', cpu: 1 }),
    )
    await succeeds('get vmconfigs', /^NAME .*\n[\s\S]*plain/)
    await succeeds('label vmconfig plain team=ios', /labeled/)
    await succeeds('patch vmconfig plain --type=merge -p {"spec":{"cpu":2}}', /patched/)
    await succeeds('get vmconfig plain -o jsonpath={.spec.cpu}', /^2$/)
    await succeeds('get vmconfigs -l team=ios -o name', /plain/)
    await succeeds('delete vmconfig plain', /deleted/)
    await fails('get vmconfig plain', /not found/)
  })

  it('a watch of kubectl sees what happens, and goes on at the server that is started again', async () => {
    await succeeds('create -f -', /created/, manifest('VirtualMachineConfig', 'one', { image: 'tiny-arm64' }))
    const configs = '/apis/orka.macstadium.com/v1/namespaces/orka-default/virtualmachineconfigs'
    const list = JSON.parse(await succeeds(`get --raw ${configs}`, /VirtualMachineConfigList/)) as {
      metadata: { resourceVersion: string }
    }
    const version = list.metadata.resourceVersion
    await server.kill('SIGKILL')
    server = await startServer()
    await succeeds('create -f -', /created/, manifest('VirtualMachineConfig', 'two', { image: 'tiny-arm64' }))
    const url = `${configs}?watch=true&resourceVersion=${version}&timeoutSeconds=1`
    const events = (await succeeds(`get --raw ${url}`, /ADDED/)).trim().split('\n')
    const seen = events.map((line) => JSON.parse(line) as { type: string; object: { metadata: { name: string } } })
    assert.deepEqual(
      seen.map(({ type, object }) => [type, object.metadata.name]),
      [['ADDED', 'two']],
    )
  })
})

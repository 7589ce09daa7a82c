// A real guest by kubectl: deployed from a manifest, saved as an Image, pushed as a Pod with a log, deleted.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { openGuest, seedTiny } from '../support/guests/guest.ts'
import { type DevServer, makeFolder, startDev, svc3 } from '../support/processes/dev-server.ts'
import { pauseProcess } from '../support/processes/pause-process.ts'
import { type RegistryProcess, registryUser, startRegistry } from '../support/processes/registry.ts'
import { tooOldKubectl } from '../support/tools/kubectl-age.ts'

const patience = '--timeout=300s'
let folder: string
let server: DevServer
let registry: RegistryProcess
let env: Record<string, string>

const kubectl = (line: string, input = '', heard?: (text: string) => void): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = execFile(
      'kubectl',
      line.split(' '),
      { env: { ...process.env, ...env }, timeout: 400_000 },
      (error, out, err) => (error ? reject(new Error(`kubectl ${line}: ${out}${err}`)) : resolve(out + err)),
    )
    if (heard) child.stdout?.on('data', heard)
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(input)
  })

const manifest = (kind: string, name: string, spec: object): string =>
  JSON.stringify({ apiVersion: 'orka.macstadium.com/v1', kind, metadata: { name }, spec })

before(async () => {
  folder = await makeFolder()
  registry = await startRegistry({ folder: path.join(folder, 'registry'), hasPassword: true })
  const data = path.join(folder, 'data')
  await seedTiny(path.join(data, 'images'), ['arm64'])
  server = await startDev(data, { args: ['--nodes', 'amd64=0,arm64=1', '--kubernetes-listen', '127.0.0.1:0'] })
  env = { KUBECONFIG: path.join(folder, 'kubeconfig'), SVC3_DATA: data, HOME: folder }
  const { code, stderr } = await svc3(['user', 'kubeconfig', '--merge', '-n', 'orka-default'], { env })
  assert.equal(code, 0, stderr)
})
after(async () => {
  await svc3(['vm', 'delete', 'demo'], { env })
  await server.kill('SIGTERM')
  await registry.kill()
  await fs.rm(folder, { recursive: true, force: true })
})

describe('a guest and kubectl', { skip: tooOldKubectl() }, () => {
  it('a guest is deployed by apply, runs, and is reached where its status says', async () => {
    const vm = manifest('VirtualMachineInstance', 'demo', { image: 'tiny-arm64', cpu: 1, memory: 0.3 })
    assert.match(await kubectl('apply -f -', vm), /demo created/)
    await kubectl(`wait --for=jsonpath={.status.phase}=Running vm/demo ${patience}`)
    const { status } = JSON.parse(await kubectl('get vm demo -o json'))
    using guest = await openGuest({ ip: status.hostIP, ssh: status.sshPort }, {}, 120_000)
    await guest.run('echo by kubectl > /home/admin/file; sync')
    const { items } = JSON.parse(await kubectl('get orkanodes -o json'))
    const [cached] = items[0].status.images
    assert.deepEqual([cached.names, cached.status], [['tiny-arm64'], 'Ready'])
  })

  it('a guest is saved by creating an Image, which kubectl waits for, describes and deploys', async () => {
    const image = manifest('Image', 'saved', {
      sourceType: 'vm',
      source: 'demo',
      sourceNamespace: 'orka-default',
      destination: 'saved',
      size: '0',
    })
    assert.match(await kubectl('create -f -', image), /saved created/)
    await kubectl(`wait --for=jsonpath={.status.state}=Ready image/saved ${patience}`)
    assert.match(await kubectl('describe image saved'), /Source Type: +vm/)
    assert.match(await kubectl('get images saved'), /saved .*Ready/)
    assert.match(await kubectl('delete image saved'), /deleted/)
  })

  it('a push is a Pod, and kubectl logs -f follows it to its end', async () => {
    const { username, password } = registryUser
    const words = ['regcred', 'add', registry.server, '-u', username, '--password-stdin', '--allow-insecure']
    const added = await svc3(words, { env, input: password })
    assert.equal(added.code, 0, added.stderr)
    // It waits until a client follows the log.
    pauseProcess(registry.pid)
    const goOn = (text: string): void => void (text.includes('Running') && process.kill(registry.pid, 'SIGCONT'))
    const imageReference = `${registry.host}/team/demo:v1`
    const pushed = await server.call('POST', '/api/v1/namespaces/orka-default/vms/demo/push', { imageReference })
    assert.ok(pushed.status < 300, JSON.stringify(pushed.body))
    const job = String(pushed.body.jobName)
    const log = (await kubectl(`logs -f ${job}`, '', goOn)).trim().split('\n')
    assert.match(log[0] ?? '', /Pushing VM demo to /)
    assert.match(log.at(-1) ?? '', /^Digest sha256:/)
    assert.ok(
      log.some((line) => line.startsWith('Running')),
      'it was followed while the job ran',
    )
    assert.equal(new Set(log).size, log.length, 'no line comes twice')
    const selector = `orka.macstadium.com/job.type=registry-push,batch.kubernetes.io/job-name=${job}`
    assert.match(await kubectl(`get pods -l ${selector}`), /Succeeded/)
    assert.match(await kubectl(`logs --tail=1 ${job}`), /^Digest sha256:\S+\n$/)
  })

  it('events of a guest are found by the name and the uid of their object, and describe shows them', async () => {
    const { metadata } = JSON.parse(await kubectl('get vm demo -o json'))
    const select = (more: string) =>
      kubectl(`get events --field-selector involvedObject.name=demo${more} -o jsonpath={.items[*].reason}`)
    assert.match(await select(`,involvedObject.uid=${metadata.uid}`), /DeployVm.*PushVm/)
    assert.equal(await select(',involvedObject.kind=Image'), '')
    assert.match(await kubectl('describe vm demo'), /Events:[\s\S]*DeployVm/)
    assert.match(await kubectl('events --for=vm/demo'), /DeployVm/)
  })

  it('a guest is deleted, and is gone when kubectl says so', async () => {
    assert.match(await kubectl('delete vm demo'), /deleted/)
    assert.equal((await server.call('GET', '/api/v1/namespaces/svc-default/vms/demo')).status, 404)
  })
})

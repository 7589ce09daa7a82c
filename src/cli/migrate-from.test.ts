// svc3 migrate from: plans, what is not carried over, and images of Apple silicon. Source and target are stand-ins.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { run } from '../../test/support/rigs/cli-host.ts'
import { type FakeService, send, startFakeService } from '../../test/support/stand-ins/api.ts'

type Records = Record<string, unknown>
let folder: string
let source: FakeService
let target: FakeService
/** Answers by request, such as `GET svc-default/images`; anything else is an empty list. */
let there: Record<string, unknown>
let here: Record<string, unknown>

const refusal = (code: number, reason: string, message: string) => ({ kind: 'Status', code, reason, message })

const serve = (service: FakeService, answers: () => Record<string, unknown>): void => {
  service.override = ({ method, path: url, body }, response) => {
    const place = url.replace('/api/v1/namespaces', '').replace(/^\//, '').replace(/\?.*/, '')
    const known = answers()[`${method} ${place}`]
    const answer = typeof known === 'function' ? known(body === '' ? {} : JSON.parse(body)) : known
    const code = (answer as { code?: number } | undefined)?.code ?? 200
    send(response, code, answer ?? { items: [] })
  }
}

beforeEach(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-migrate-from-'))
  ;[source, target] = await Promise.all([startFakeService(), startFakeService()])
  there = { 'GET ': { items: [{ name: 'orka-default' }] } }
  here = { 'GET ': { items: [{ name: 'svc-default', customPods: false }] } }
  serve(source, () => there)
  serve(target, () => here)
  await fs.writeFile(path.join(folder, 'token'), 'token-of-the-source')
})
afterEach(async () => {
  await Promise.all([source, target].map((service) => service[Symbol.asyncDispose]()))
  await fs.rm(folder, { recursive: true })
})

async function migrate(...more: string[]) {
  const words = ['migrate', 'from', source.apiUrl, '--token-file', 'token', '-o', 'json', ...more]
  const env = { SVC3_API_URL: target.apiUrl, SVC3_TOKEN: target.token }
  const { exitCode, stdout, stderr } = await run(words, { workingDir: folder, env })
  const rows = stdout.startsWith('[') ? (JSON.parse(stdout) as Records[]) : []
  return { exitCode, stderr, rows: rows.filter(({ kind }) => kind !== 'namespace') }
}

describe('the plan of a migration', () => {
  it('the plan of a migration can be edited: only the steps in it are carried out', async () => {
    there['GET orka-default/vmconfigs'] = { items: ['one', 'two'].map((name) => ({ name, image: 'golden', cpu: 2 })) }
    await migrate('--plan', 'plan.json')
    const file = path.join(folder, 'plan.json')
    const plan = JSON.parse(await fs.readFile(file, 'utf8'))
    const steps = plan.steps.filter(({ name }: Records) => name !== 'one')
    steps.at(-1).wanted.cpu = 6
    await fs.writeFile(file, JSON.stringify({ ...plan, steps }))
    const created: Records[] = []
    here['POST svc-default/vmconfigs'] = (body: Records) => created.push(body) && body
    const words = ['migrate', 'from', 'plan.json', '--token-file', 'token', '--apply']
    const env = { SVC3_API_URL: target.apiUrl, SVC3_TOKEN: target.token }
    const { exitCode, stdout } = await run(words, { workingDir: folder, env })
    assert.equal(exitCode, 0)
    assert.deepEqual(created, [{ name: 'two', image: 'golden', cpu: 6 }])
    assert.match(stdout, /vmconfig\tsvc-default\ttwo\tcarried/)
  })

  it('the plan of a migration is refused if it is of another version or not whole', async () => {
    for (const plan of [{ version: 2, steps: [] }, { version: 1, steps: [{ name: 'a' }] }, []]) {
      await fs.writeFile(path.join(folder, 'plan.json'), JSON.stringify(plan))
      const { exitCode, stderr } = await run(['migrate', 'from', 'plan.json'], { workingDir: folder })
      assert.equal(exitCode, 1)
      assert.match(stderr, /plan\.json is not a plan of this version/)
    }
  })

  it('the plan of a migration needs a source that exists', async () => {
    const { exitCode, stderr } = await run(['migrate', 'from', 'nothing'], { workingDir: folder })
    assert.equal(exitCode, 2)
    assert.match(stderr, /nothing does not exist/)
  })

  it('the plan of a migration names lists that the source refuses, and never writes outside its folder', async () => {
    there['GET orka-default/isos'] = refusal(403, 'Forbidden', 'no')
    there['GET orka-default/serviceaccounts'] = { items: [{ name: '../../evil' }] }
    there['GET orka-default/images'] = { items: [{ name: '../evil', type: 'amd64' }] }
    const { exitCode, rows } = await migrate('--apply')
    assert.equal(exitCode, 1)
    assert.deepEqual(
      rows.map(({ kind, name, reason }) => `${kind} ${name}: ${reason}`),
      [
        'serviceaccount ../../evil: The name is not allowed here',
        'image ../evil: The name is not allowed here',
        'iso *: The source does not list them: no',
      ],
    )
    assert.deepEqual(await fs.readdir(folder), ['token'])
    assert.ok(target.requests.every(({ method }) => method === 'GET'))
  })

  it('the plan of a migration ends with why things were not carried over, and a bad token ends it', async () => {
    there['GET orka-default/secrets/registrycredentials'] = { items: [{ server: 'ghcr.io', username: 'ci' }] }
    there['GET orka-default/vmconfigs'] = { items: [{ name: 'one', image: 'golden' }] }
    here['POST svc-default/vmconfigs'] = refusal(404, 'NotFound', 'images "golden" not found')
    const { exitCode, rows } = await migrate('--apply')
    assert.deepEqual(
      rows.map(({ name, result, reason }) => [name, result, reason]),
      [
        ['https://ghcr.io', 'not carried', 'The source does not show passwords: add --passwords FILE'],
        ['one', 'not carried', 'images "golden" not found'],
      ],
    )
    there['GET orka-default/vmconfigs'] = refusal(401, 'Unauthorized', 'Unauthorized')
    const refused = await migrate('--apply')
    assert.deepEqual([exitCode, refused.exitCode, refused.rows], [1, 1, []])
    assert.match(refused.stderr, /The source refused the token\n.*Get a new one/)
  })
})

describe('an image of Apple silicon', () => {
  beforeEach(() => {
    there['GET orka-default/images'] = {
      items: [{ name: 'sonoma', type: 'arm64', description: 'Nightly', state: 'Ready' }],
    }
  })

  it('an image of Apple silicon is not carried over without a registry, and the reason says what to do', async () => {
    const { rows } = await migrate('--apply')
    assert.match(String(rows[0]?.reason), /^Apple silicon: add --registry HOST\/REPOSITORY/)
  })

  it('an image of Apple silicon is deployed and pushed at the source, and pulled here', async () => {
    const done: string[] = []
    const vms: Records[] = []
    const jobs: Records[] = []
    there['GET orka-default/vms'] = () => ({ items: vms })
    there['POST orka-default/vms'] = ({ name, image }: Records) =>
      done.push(`deploy ${image}`) && vms.push({ name }) && {}
    there['GET orka-default/pushjobs'] = () => ({ items: jobs })
    here['GET svc-default/images/sonoma'] = { state: 'Ready' }
    here['POST svc-default/remoteimages/reg.example.com%2Fmacs%2Fsonoma%3Amigrated/pull'] = ({
      name,
      description,
    }: Records) => done.push(`pull ${name}, ${description}`) && {}
    // The name of the VM is the same in every run, so a second run finds the VM and the job of the first.
    const { rows: first } = await migrate('--apply', '--registry', 'reg.example.com/macs')
    const vm = String(vms[0]?.name)
    assert.match(String(first[0]?.reason), /push/)
    jobs.push({ name: 'vm-push-1', vm, status: 'Succeeded' })
    there[`DELETE orka-default/vms/${vm}`] = () => done.push('delete') && {}
    const { exitCode, rows } = await migrate('--apply', '--registry', 'reg.example.com/macs')
    assert.deepEqual([exitCode, rows[0]?.result], [0, 'carried'])
    assert.deepEqual(done, ['deploy sonoma', 'delete', 'pull sonoma, Nightly'])
  })

  it('an image of Apple silicon that cannot be read here is told with the reason', async () => {
    here['GET svc-default/images'] = { items: [{ name: 'sonoma', type: 'arm64', state: 'Updating' }] }
    here['GET svc-default/images/sonoma'] = { state: 'Failed', errorMessage: 'an image of Orka' }
    const { exitCode, rows } = await migrate('--apply', '--registry', 'reg.example.com/macs')
    assert.equal(exitCode, 1)
    assert.match(String(rows[0]?.reason), /not pulled: an image of Orka/)
  })
})

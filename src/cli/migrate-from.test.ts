// svc3 migrate from: plans, what is not carried over, and images of Apple silicon. Source and target are stand-ins.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
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

const migrate = (...more: string[]) => from(source.apiUrl, '--token-file', 'token', ...more)

async function from(...more: string[]) {
  const words = ['migrate', 'from', '-o', 'json', ...more]
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
    const image = 'reg.example.com/macs/sonoma:migrated'
    jobs.push({ name: 'vm-push-1', vm, image, status: 'Succeeded' })
    there[`DELETE orka-default/vms/${vm}`] = () => done.push('delete') && {}
    const { exitCode, rows } = await migrate('--apply', '--registry', 'reg.example.com/macs')
    assert.deepEqual([exitCode, rows[0]?.result], [0, 'carried'])
    assert.deepEqual(done, ['deploy sonoma', 'delete', 'pull sonoma, Nightly'])
    // The job is of one registry only.
    await migrate('--apply', '--registry', 'other.example.com')
    assert.deepEqual(done.slice(3), ['delete'])
    assert.ok(source.requests.some(({ body }) => body.includes('other.example.com/sonoma:migrated')))
  })

  it('an image of Apple silicon that cannot be read here is told with the reason', async () => {
    here['GET svc-default/images'] = { items: [{ name: 'sonoma', type: 'arm64', state: 'Updating' }] }
    here['GET svc-default/images/sonoma'] = { state: 'Failed', errorMessage: 'an image of Orka' }
    const { exitCode, rows } = await migrate('--apply', '--registry', 'reg.example.com/macs')
    assert.equal(exitCode, 1)
    assert.match(String(rows[0]?.reason), /not pulled: an image of Orka/)
  })

  const two = () => {
    there['GET orka-default/images'] = { items: ['sonoma', 'tahoe'].map((name) => ({ name, type: 'arm64' })) }
    const vms: Records[] = []
    const seen: string[] = []
    there['GET orka-default/vms'] = () => ({ items: vms })
    there['POST orka-default/vms'] = ({ name, image }: Records) => {
      vms.push({ name, status: 'Running' })
      there[`DELETE orka-default/vms/${name}`] = () => seen.push(`delete ${image}`) && vms.splice(0) && {}
      there[`POST orka-default/vms/${name}/push`] ??= () => refusal(409, 'Conflict', 'no credentials for the registry')
      return seen.push(`deploy ${image}`) && {}
    }
    return { seen, vms }
  }

  it('an image of Apple silicon that the source cannot push leaves no VM there, and others are not tried', async () => {
    const { seen, vms } = two()
    const { exitCode, rows } = await migrate('--apply', '--registry', 'reg.example.com/macs')
    assert.deepEqual([exitCode, seen, vms], [1, ['deploy sonoma', 'delete sonoma'], []])
    assert.deepEqual(
      rows.filter(({ kind }) => kind === 'image').map(({ reason }) => reason),
      ['no credentials for the registry', 'As for sonoma: no credentials for the registry'],
    )
  })

  it('an image of Apple silicon in the format of Orka is tried once, and others are not pushed', async () => {
    const { seen } = two()
    const vm = `migrate-${createHash('sha256').update('sonoma').digest('hex').slice(0, 12)}`
    const image = 'reg.example.com/sonoma:migrated'
    there['GET orka-default/pushjobs'] = { items: [{ name: 'job', vm, image, status: 'Succeeded' }] }
    here[`POST svc-default/remoteimages/${encodeURIComponent(image)}/pull`] = refusal(
      422,
      'Invalid',
      'This is an image of Orka, whose format svc3 cannot read yet',
    )
    const { rows } = await migrate('--apply', '--registry', 'reg.example.com')
    assert.deepEqual(seen, [])
    assert.match(String(rows[1]?.reason), /^As for sonoma: This is an image of Orka/)
  })

  it('an image of Apple silicon is pushed once its VM runs', async () => {
    const { seen, vms } = two()
    const name = `migrate-${createHash('sha256').update('sonoma').digest('hex').slice(0, 12)}`
    vms.push({ name, status: 'Pending' })
    let lists = 0
    there['GET orka-default/vms'] = () => {
      lists += 1
      return { items: [{ name, status: lists > 3 ? 'Failed' : 'Pending' }] }
    }
    there[`DELETE orka-default/vms/${name}`] = () => seen.push('delete') && {}
    there['GET orka-default/images'] = { items: [{ name: 'sonoma', type: 'arm64' }] }
    const { rows } = await migrate('--apply', '--registry', 'reg.example.com')
    assert.deepEqual([rows[0]?.reason, seen], [`VM ${name} is Failed at the source`, ['delete']])
    assert.ok(source.requests.every(({ path: url }) => !url.endsWith('/push')))
  })
})

describe('a migration', () => {
  it('a migration continues after an item whose name or file is impossible', async () => {
    const long = 'a'.repeat(300)
    there['GET orka-default/serviceaccounts'] = { items: [{ name: long }] }
    there['GET orka-default/images'] = { items: [{ name: 'My_Image', type: 'amd64' }] }
    there['GET orka-default/vmconfigs'] = { items: [{ name: 'one', image: 'golden' }] }
    const { rows } = await migrate('--apply')
    assert.deepEqual(
      rows.map(({ kind, result }) => `${kind}: ${result}`),
      ['serviceaccount: not carried', 'image: not carried', 'vmconfig: carried'],
    )
    assert.match(String(rows[0]?.reason), /ENAMETOOLONG/)
    assert.match(String(rows[1]?.reason), /^The name is not allowed here: use at most 63/)
  })

  it('a migration tells what it has done when the source or the target refuses its token in the middle', async () => {
    const unauthorized = refusal(401, 'Unauthorized', 'Unauthorized')
    there['GET orka-default/vmconfigs'] = { items: ['one', 'two'].map((name) => ({ name, image: 'golden' })) }
    here['POST svc-default/vmconfigs'] = ({ name }: Records) => (name === 'one' ? {} : unauthorized)
    const target401 = await migrate('--apply')
    assert.deepEqual(
      [target401.exitCode, target401.rows.map(({ name, result }) => [name, result])],
      [3, [['one', 'carried']]],
    )
    there['GET orka-default/images'] = { items: ['a', 'b'].map((name) => ({ name, type: 'amd64' })) }
    there['GET orka-default/serviceaccounts'] = { items: [{ name: 'ci' }] }
    here['POST svc-default/serviceaccounts/ci/token'] = { token: 'new' }
    await migrate('--plan', 'plan.json')
    there['GET orka-default/images'] = unauthorized
    const source401 = await from('plan.json', '--token-file', 'token', '--apply')
    assert.deepEqual([source401.exitCode, source401.rows.map(({ name }) => name)], [1, ['ci']])
    assert.match(source401.stderr, /The source refused the token\n.*Get a new one/)
  })

  it('a migration is checked by its plan without the source', async () => {
    there['GET orka-default/images'] = { items: [{ name: 'a', type: 'amd64' }] }
    await migrate('--plan', 'plan.json')
    const { length } = source.requests
    const { exitCode, rows, stderr } = await from('plan.json', '--check')
    assert.deepEqual([exitCode, rows.map(({ name, result }) => [name, result])], [1, [['a', 'to carry']]], stderr)
    assert.equal(source.requests.length, length)
  })

  it('a migration downloads no disk that has changed since the plan', async () => {
    there['GET orka-default/images'] = { items: [{ name: 'a', type: 'amd64', size: '1G' }] }
    await migrate('--plan', 'plan.json')
    there['GET orka-default/images'] = { items: [{ name: 'a', type: 'amd64', size: '2G' }] }
    const { rows } = await from('plan.json', '--token-file', 'token', '--apply')
    assert.equal(rows[0]?.reason, 'It changed at the source: make a new plan')
    assert.ok(source.requests.every(({ path: url }) => !url.includes('download')))
  })

  it('a migration leaves images of the same name as they are, and tells those of another size', async () => {
    const sizes = { same: '90G', rounded: '89G', decimal: '21.5G', other: '60G', unit: '512M' }
    const record = (name: string, size: string) => ({ name, size, type: 'amd64', state: 'Ready' })
    const image = ([name, size]: [string, string]) => ({ ...record(name, size), description: 'From the source' })
    there['GET orka-default/images'] = { items: Object.entries(sizes).map(image) }
    here['GET svc-default/images'] = { items: Object.keys(sizes).map((name) => record(name, '90G')) }
    const { rows } = await migrate('--apply')
    assert.deepEqual(
      rows.filter(({ result }) => result !== 'already there').map(({ name, reason }) => `${name}: ${reason}`),
      ['other: Another image of that name is here: amd64, 90G'],
    )
    assert.ok(target.requests.every(({ method }) => method === 'GET'))
  })

  it('a migration asks the default namespace of the source for what belongs to its cluster', async () => {
    there['GET '] = { items: ['orka-a', 'orka-default'].map((name) => ({ name })) }
    await migrate('--plan', 'plan.json')
    assert.equal(JSON.parse(await fs.readFile(path.join(folder, 'plan.json'), 'utf8')).space, 'orka-default')
    assert.deepEqual(
      source.requests.map(({ path: url }) => url).filter((url) => url.endsWith('/images')),
      ['/api/v1/namespaces/orka-default/images'],
    )
  })

  it('a migration makes tokens only for accounts that it creates, also after a kill', async () => {
    const file = path.join(folder, 'svc3-migration', 'tokens', 'svc-default', 'ci')
    const made: string[] = []
    there['GET orka-default/serviceaccounts'] = { items: [{ name: 'ci' }] }
    here['GET svc-default/serviceaccounts'] = { items: [{ name: 'ci' }] }
    here['POST svc-default/serviceaccounts/ci/token'] = () => made.push('token') && { token: 'new' }
    assert.equal((await migrate('--check')).exitCode, 0)
    assert.equal((await migrate('--apply')).rows[0]?.result, 'already there')
    assert.deepEqual(made, [])
    await fs.mkdir(path.dirname(file), { recursive: true })
    await fs.writeFile(file, '')
    assert.equal((await migrate('--check')).exitCode, 0)
    assert.equal((await migrate('--apply')).rows[0]?.result, 'carried')
    assert.deepEqual([made, await fs.readFile(file, 'utf8')], [['token'], 'new\n'])
    assert.equal((await migrate('--apply')).rows[0]?.result, 'already there')
    here['GET svc-default/serviceaccounts'] = { items: [] }
    let sizeAtCreation: number | undefined
    here['POST svc-default/serviceaccounts/ci'] = () => {
      sizeAtCreation = statSync(file).size
      return {}
    }
    assert.equal((await migrate('--apply')).rows[0]?.result, 'carried')
    assert.deepEqual([sizeAtCreation, (await fs.stat(file)).mode & 0o777], [0, 0o600])
  })

  it('a migration makes a new join string for an expected node if a kill lost it', async () => {
    const node = { name: 'mini', namespace: 'svc-default', orkaTags: [] }
    there['GET orka-default/nodes'] = { items: [node] }
    here['GET svc-default/expectednodes'] = { items: [node] }
    const file = path.join(folder, 'svc3-migration', 'join', 'mini')
    await fs.mkdir(path.dirname(file), { recursive: true })
    await fs.writeFile(file, '')
    here['POST svc-default/jointokens'] = { join: 'svc3-join', token: 't' }
    const { rows, stderr } = await migrate('--apply')
    assert.equal(rows[0]?.result, 'carried', stderr)
    assert.equal(await fs.readFile(file, 'utf8'), 'svc3-join\n')
    assert.equal((await migrate('--apply')).rows[0]?.result, 'already there')
  })

  it('a migration reads the files of a backup by their names, and never drops one that it does not know', async () => {
    const backup = path.join(folder, 'backup')
    await fs.mkdir(backup)
    const write = (name: string, value: unknown) => fs.writeFile(path.join(backup, name), JSON.stringify(value))
    await write('ns-20261115.json', [{ name: 'orka-web' }])
    for (const [name, account] of [
      ['sa-web', 'a'],
      ['serviceaccount-web', 'b'],
      ['service-accounts-web-20261115', 'c'],
      ['service-account-backup', 'd'],
    ])
      await write(`${name}.json`, [{ name: account }])
    const { rows, stderr } = await from('backup')
    assert.deepEqual(
      rows.map(({ namespace, name }) => `${namespace} ${name}`),
      ['svc-default d', 'svc-web a', 'svc-web c', 'svc-web b'],
      stderr,
    )
    await write('widgets.json', [{ name: 'x' }])
    const refused = await from('backup')
    assert.equal(refused.exitCode, 1)
    assert.match(refused.stderr, /Cannot tell what .*widgets\.json lists\n.*LIST-NAMESPACE\.json/)
  })
})

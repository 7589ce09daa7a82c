// svc3 migrate from: a cluster is carried over, also if the command is killed at several points and run again.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { bootDisc } from '../support/guests/boot-disc.ts'
import { type DevServer, makeFolder, program, svc3 as run, startDev } from '../support/processes/dev-server.ts'
import { startOriginal } from '../support/stand-ins/original.ts'
import { eventually } from '../support/tools/eventually.ts'

const args = ['--driver', 'simulated', '--nodes', 'arm64=1,amd64=2']
const base = '/api/v1/namespaces'
let folders: string[]
let there: DevServer
let here: DevServer
let original: Awaited<ReturnType<typeof startOriginal>>
let work: string
let disk: Buffer

const post = async (url: string, body?: unknown): Promise<void> => {
  const { status, body: answer } = await there.call('POST', base + url, body)
  assert.ok(status < 300, `${url}: ${JSON.stringify(answer)}`)
}
const itemsOf = async (dev: DevServer, url: string) =>
  (await dev.call('GET', base + url)).body.items as Record<string, unknown>[]
const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

before(async () => {
  folders = await Promise.all([makeFolder(), makeFolder(), makeFolder()])
  const [from = '', to = ''] = folders
  work = folders[2] ?? ''
  ;[there, here] = await Promise.all([
    startDev(from, { args }),
    startDev(to, { args: ['--driver', 'simulated', '--nodes', 'arm64=1'] }),
  ])
  original = await startOriginal(there.apiUrl)
  for (const name of ['svc-ios', 'svc-tv']) await post('', { name })
  await post('/svc-ios/serviceaccounts/jenkins')
  await post('/svc-tv/serviceaccounts/gitlab')
  const subjects = 'rolebindings/svc-dev/subjects/add'
  await post(`/svc-ios/${subjects}`, { users: ['ana@example.com', 'bo@example.com'] })
  await post(`/svc-tv/${subjects}`, {
    users: ['ana@example.com'],
    serviceaccounts: [{ namespace: 'svc-ios', name: 'jenkins' }],
  })
  for (const [space, server] of [
    ['svc-ios', 'https://ghcr.io'],
    ['svc-tv', 'http://10.0.0.7:5000'],
  ]) {
    const body = { server, username: 'ci', password: 'not-shown', allowInsecure: true }
    await post(`/${space}/secrets/registrycredentials/add`, body)
  }
  disk = Buffer.concat([randomBytes(40 * 2 ** 20), Buffer.alloc(8 * 2 ** 20)])
  await fs.writeFile(path.join(work, 'golden'), disk)
  await fs.writeFile(path.join(work, 'setup.iso'), bootDisc('setup'))
  const env = { SVC3_DATA: from }
  for (const line of [
    ['image', 'upload', 'golden', '-d', 'For releases'],
    ['iso', 'upload', 'setup.iso'],
  ]) {
    const { code, stderr } = await run(line, { env, cwd: work })
    assert.equal(code, 0, stderr)
  }
  const image = { image: 'golden', cpu: 2 }
  for (const name of ['one', 'two']) await post('/svc-ios/vmconfigs', { name, ...image, memory: 4.5, tag: 'fast' })
  await post('/svc-tv/vmconfigs', { name: 'three', ...image, iso: 'setup.iso', netBoost: false })
  await post('/svc-tv/vmconfigs', { name: 'arm', image: 'tiny-arm64', netBoost: false })
  await post('/svc-default/vmconfigs', { name: 'five', ...image, vncConsole: false, displayWidth: 1280 })
  const nodes = await itemsOf(there, '/svc-default/nodes')
  const intel = nodes.filter(({ architecture }) => architecture === 'amd64').map(({ name }) => String(name))
  await post(`/svc-default/nodes/${intel[0]}/tag`, { tag: 'fast' })
  await post(`/svc-default/nodes/${intel[1]}/namespace`, { namespace: 'svc-ios' })
  await post(`/svc-default/nodes/${nodes.find(({ architecture }) => architecture === 'arm64')?.name}/tag`, {
    tag: 'm4',
  })
  await post('/svc-default/vms?wait=false', { name: 'busy', image: 'tiny-arm64' })
  await fs.writeFile(path.join(work, 'token'), there.token)
  await fs.writeFile(
    path.join(work, 'passwords.json'),
    JSON.stringify({ 'https://ghcr.io': 'first', 'svc-tv http://10.0.0.7:5000': 'second' }),
  )
})
after(async () => {
  await original?.[Symbol.asyncDispose]()
  await Promise.all([there?.kill('SIGTERM'), here?.kill('SIGTERM')])
  for (const folder of folders) await fs.rm(folder, { recursive: true, force: true })
})

const words = (...more: string[]) => [
  'migrate',
  'from',
  original.url,
  '--token-file',
  'token',
  '--passwords',
  'passwords.json',
  ...more,
]
const env = () => ({ SVC3_DATA: folders[1] ?? '' })
const migrate = (...more: string[]) => run(words(...more), { env: env(), cwd: work })
const table = async (...more: string[]) => {
  const { stdout, stderr, code } = await migrate(...more, '-o', 'json')
  assert.ok(stdout.startsWith('['), stderr)
  return { code, rows: JSON.parse(stdout) as { kind: string; name: string; result: string; reason?: string }[] }
}

/** Kills the command at a request to the source, or once it has printed a text. */
async function killedAt(point: RegExp): Promise<void> {
  const child = execFile(program, words('--apply'), { cwd: work, env: { ...process.env, ...env() } })
  const ended = new Promise<undefined>((resolve) => child.on('exit', () => resolve(undefined)))
  let seen = ''
  const isTime = (text: string): boolean => {
    seen += text
    return point.test(seen) && child.kill('SIGKILL')
  }
  child.stderr?.on('data', isTime)
  original.onRequest = (line) => (isTime(`${line}\n`) ? ended : undefined)
  await ended
  original.onRequest = undefined
  assert.equal(child.signalCode, 'SIGKILL', `${point}: ${seen}`)
}

describe('migrate from', () => {
  it('migrate from shows what it would do and changes nothing, and its plan can be carried out later', async () => {
    const { code, rows } = await table('--plan', 'plan.json')
    assert.equal(code, 0)
    const plan = JSON.parse(await fs.readFile(path.join(work, 'plan.json'), 'utf8'))
    assert.deepEqual([plan.version, plan.steps.length], [1, rows.length])
    const of = (kind: string) => rows.filter((row) => row.kind === kind).map(({ name, result }) => `${name}: ${result}`)
    assert.deepEqual(of('namespace'), ['svc-default: already there', 'svc-ios: to carry', 'svc-tv: to carry'])
    assert.deepEqual([of('vmconfig').length, of('rolebinding').length, of('registrycredential').length], [5, 4, 2])
    assert.deepEqual(of('vm'), ['busy: not carried'])
    assert.deepEqual(
      (await itemsOf(here, '')).map(({ name }) => name),
      ['svc-default'],
    )
    assert.equal((await table('--check')).code, 1)
  })

  it('migrate from --apply carries all over, after kills at each stage, and --check is empty then', {
    timeout: 600_000,
  }, async () => {
    await killedAt(/GET .*vmconfigs/)
    for (const step of ['serviceaccount jenkins', 'rolebinding bo@example.com', 'registrycredential https', 'node'])
      await killedAt(new RegExp(`${step}.*: carried`))
    await killedAt(/(golden\/download.*){3}/s)
    const disks = path.join(work, 'svc3-migration', 'disks')
    assert.ok((await fs.readdir(path.join(disks, 'image-golden'))).some((name) => name.endsWith('.part')))
    await fs.writeFile(path.join(disks, 'image-golden', 'disk-older.older.part'), 'of an earlier version')
    original.downloadedBytes = 0
    await killedAt(/processing on the server/)
    assert.ok(original.downloadedBytes < disk.length - 16 * 2 ** 20, 'the second download resumed')
    await killedAt(/setup.iso\/download/)
    await killedAt(/vmconfig one: carried/)
    const { code, rows } = await table('--apply')
    assert.deepEqual(
      rows.filter(({ kind, result }) => kind !== 'vm' && result === 'not carried'),
      [],
    )
    assert.equal(code, 0)
    assert.deepEqual(await fs.readdir(disks), [])
    assert.deepEqual(await table('--check'), { code: 0, rows: [] })
    const again = await table('--apply')
    assert.deepEqual([...new Set(again.rows.map(({ result }) => result))], ['already there', 'not carried'])
  })

  it('migrate from carries over the same bytes, values and descriptions', async () => {
    for (const [kind, name] of [
      ['image', 'golden'],
      ['iso', 'setup.iso'],
    ] as const) {
      const { code, stderr } = await run([kind, 'download', name, '-f', `${name}.back`], { env: env(), cwd: work })
      assert.equal(code, 0, stderr)
      const [sent, back] = await Promise.all([name, `${name}.back`].map((file) => fs.readFile(path.join(work, file))))
      assert.equal(hashOf(back ?? Buffer.of()), hashOf(sent ?? Buffer.of(1)))
    }
    const image = (await itemsOf(here, '/svc-default/images')).find(({ name }) => name === 'golden')
    assert.deepEqual([image?.description, image?.type, image?.os], ['For releases', 'amd64', 'macos'])
    const shown = async (dev: DevServer, space: string) =>
      (await itemsOf(dev, `/${space}/vmconfigs`)).map(({ createdAt: _, resourceVersion: __, ...config }) => config)
    for (const space of ['svc-default', 'svc-ios', 'svc-tv']) {
      assert.deepEqual(await shown(here, space), await shown(there, space))
      const subjects = `/${space}/rolebindings/svc-dev/subjects`
      assert.deepEqual(await itemsOf(here, subjects), await itemsOf(there, subjects))
    }
  })

  it('migrate from writes tokens that work, into files for their owner only', async () => {
    for (const [space, name] of [
      ['svc-ios', 'jenkins'],
      ['svc-tv', 'gitlab'],
    ] as const) {
      const file = path.join(work, 'svc3-migration', 'tokens', space, name)
      assert.equal((await fs.stat(file)).mode & 0o777, 0o600)
      const { code, stderr } = await run(['vm-config', 'list', '-n', space], {
        env: { SVC3_API_URL: here.apiUrl, SVC3_TOKEN: (await fs.readFile(file, 'utf8')).trim() },
      })
      assert.equal(code, 0, stderr)
    }
  })

  it('migrate from leaves clients with another address and token only: the same requests get the same', async () => {
    const { body } = await there.call('POST', `${base}/svc-ios/serviceaccounts/jenkins/token`, {})
    const file = path.join(work, 'svc3-migration', 'tokens', 'svc-ios', 'jenkins')
    // What the plug-ins of CI systems send: lists, a deployment from a configuration, its deletion.
    const requests = [
      ...['vmconfigs', 'images', 'isos', 'vms'].map((url) => ['GET', url] as const),
      ['POST', 'vms?wait=false', { vmConfig: 'one', name: 'job', image: '', memory: 0, legacyIO: false }],
      ['DELETE', 'vms/job'],
    ] as const
    const ask = async (address: string, token: string) => {
      const answers: unknown[] = []
      for (const [method, url, sent] of requests) {
        const headers = { authorization: `Bearer ${token.trim()}`, ...(sent && { 'content-type': 'application/json' }) }
        const answer = await fetch(`${address}${base}/orka-ios/${url}`, {
          method,
          headers,
          ...(sent && { body: JSON.stringify(sent) }),
        })
        const { items, name, image, cpu } = (await answer.json()) as Record<string, unknown>
        answers.push([
          answer.status,
          (items as { name: string }[] | undefined)?.map((each) => each.name),
          name,
          image,
          cpu,
        ])
      }
      return answers
    }
    const ours = await ask(here.apiUrl, await fs.readFile(file, 'utf8'))
    assert.deepEqual(ours, await ask(there.apiUrl, String(body.token)))
    assert.deepEqual(ours.at(-2), [202, undefined, 'job', 'golden', 2])
  })

  it('migrate from tags nodes that are here, and those that come later when they join', async () => {
    const arm = (await itemsOf(here, '/svc-default/nodes'))[0]
    assert.deepEqual(arm?.orkaTags, ['m4'])
    const moved = (await itemsOf(here, '/svc-ios/expectednodes'))[0]
    const tagged = (await itemsOf(here, '/svc-default/expectednodes'))[0]
    assert.deepEqual([moved?.orkaTags, tagged?.orkaTags], [[], ['fast']])
    const join = await fs.readFile(path.join(work, 'svc3-migration', 'join', String(tagged?.name)), 'utf8')
    const data = await makeFolder()
    const agent = execFile(program, [
      'agent',
      '--join-token-stdin',
      '--name',
      String(tagged?.name),
      '--driver',
      'simulated',
      '--data',
      data,
    ])
    agent.stdin?.end(join)
    const ended = new Promise((resolve) => agent.on('exit', resolve))
    try {
      await eventually(async () => {
        const node = (await itemsOf(here, '/svc-default/nodes')).find(({ name }) => name === tagged?.name)
        assert.deepEqual(node?.orkaTags, ['fast'])
      }, 60_000)
    } finally {
      agent.kill('SIGKILL')
      await ended
      await fs.rm(data, { recursive: true, force: true })
    }
  })

  it('migrate from reads the files of a backup in both shapes', async () => {
    const backup = path.join(work, 'backup')
    await fs.mkdir(backup)
    const write = (name: string, value: unknown) => fs.writeFile(path.join(backup, name), JSON.stringify(value))
    await write('namespaces-backup-20261115.json', [{ name: 'orka-default' }, { name: 'orka-web' }])
    await write('rbac-web-20261115.json', { items: [{ kind: 'User', name: 'cy@example.com' }] })
    await write('vm-configs-backup-20261115.json', { items: [{ name: 'six', image: 'golden', cpu: 3, memory: 0 }] })
    await write('images-backup-20261115.json', [{ name: 'lost', type: 'amd64', size: '90G', state: 'Ready' }])
    const from = ['migrate', 'from', 'backup', '--apply', '-o', 'json']
    const { code, stdout } = await run(from, { env: env(), cwd: work })
    const rows = (JSON.parse(stdout) as Record<string, string>[]).map(
      ({ kind, name, result }) => `${kind} ${name} ${result}`,
    )
    assert.deepEqual(
      [code, rows],
      [
        1,
        [
          'namespace svc-default already there',
          'namespace svc-web carried',
          'rolebinding cy@example.com carried',
          'image lost not carried',
          'vmconfig six carried',
        ],
      ],
    )
  })

  it('migrate from reads a source that ignores ranges, and says what the target has of its own', async () => {
    original.hasRanges = false
    await here.call('DELETE', `${base}/svc-default/isos/setup.iso`)
    await here.call('DELETE', `${base}/svc-tv/vmconfigs/arm`)
    await here.call('POST', `${base}/svc-tv/vmconfigs`, { name: 'arm', image: 'tiny-arm64', cpu: 7 })
    const { code, rows } = await table('--apply')
    const changed = rows.filter(({ kind, result }) => kind !== 'vm' && result !== 'already there')
    assert.deepEqual(
      [code, changed.map(({ name, result }) => `${name} ${result}`)],
      [1, ['setup.iso carried', 'arm not carried']],
    )
    assert.match(String(changed[1]?.reason), /^Other values here: cpu/)
  })
})

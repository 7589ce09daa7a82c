// The output that scripts rely on, byte for byte: texts that public CI integrations look for, columns, exit codes, names.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { pagesOf } from '../../scripts/reference/pages.ts'
import { type FakeHostOptions, run } from '../../test/support/rigs/cli-host.ts'
import { type FakeService, send, startFakeService } from '../../test/support/stand-ins/api.ts'
import { change, changes, serve, vmOf } from '../../test/support/stand-ins/fleet.ts'
import { ApiError, codes, notFound, type Reason, success } from '../api/errors.ts'
import { isImageName } from '../rules/image-names.ts'
import {
  isNamespaceName,
  isServiceAccountName,
  isTag,
  isVmConfigName,
  isVmName,
  realNamespace,
} from '../rules/names.ts'

let service: FakeService
before(async () => {
  service = await startFakeService()
})
after(() => service[Symbol.asyncDispose]())
const vm = vmOf({ name: 'demo' })
beforeEach(() =>
  serve(service, {
    'POST vms': () => vm,
    'GET vms': () => ({ items: [vm] }),
    'WATCH vms': changes(),
    'DELETE vms/demo': () => success('deleted', { kind: 'vms', name: 'demo' }),
    'GET vms/nobody': () => {
      throw notFound('vms', 'nobody', { hint: 'List them' })
    },
  }),
)

const svc3 = (line: string, options: FakeHostOptions = {}) =>
  run(line.split(' '), {
    ...options,
    env: { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token, ...options.env },
  })

describe('vm deploy', () => {
  it('vm deploy with -o json prints the array, and nothing else on either stream', async () => {
    const { exitCode, stdout, stderr } = await svc3('vm deploy demo -i sonoma -o json')
    assert.deepEqual([exitCode, stderr], [0, ''])
    assert.equal(stdout, `${JSON.stringify([vm], null, 2)}\n`)
    const [printed] = JSON.parse(stdout + stderr)
    for (const field of ['name', 'node', 'memory', 'ip', 'ssh', 'vnc', 'screenshare', 'status'])
      assert.ok(field in printed, field)
  })

  it('vm deploy in table mode prints that it waits as the first line on stderr', async () => {
    for (const options of [{}, { terminal: { stdout: true } }, { calledAs: 'orka3' }] as const) {
      const { stdout, stderr } = await svc3('vm deploy demo -i sonoma', options)
      assert.ok(stderr.startsWith('Waiting for VM demo to be deployed.\n'), stderr)
      assert.ok(!stdout.includes('Waiting'))
    }
    assert.equal((await svc3('vm deploy demo -i sonoma --quiet')).stderr, '')
  })
})

describe('other texts', () => {
  it('vm delete prints what scripts look for', async () => {
    const { exitCode, stdout, stderr } = await svc3('vm delete demo')
    assert.deepEqual([exitCode, stdout, stderr], [0, 'Successfully deleted vm demo\n', ''])
  })

  it('user get-token prints the token and nothing else', async () => {
    const { exitCode, stdout, stderr } = await svc3('user get-token')
    assert.deepEqual([exitCode, stdout, stderr], [0, `${service.token}\n`, ''])
  })

  it('user get-token prints a credential of the version that kubectl reads', async () => {
    const asked = async (env: Record<string, string>): Promise<unknown> =>
      JSON.parse((await svc3('user get-token -o exec-credential', { env })).stdout)
    const of = (version: string) => ({
      apiVersion: `client.authentication.k8s.io/${version}`,
      kind: 'ExecCredential',
      status: { token: service.token },
    })
    const info = (version: string) => ({ KUBERNETES_EXEC_INFO: JSON.stringify({ ...of(version), spec: {} }) })
    assert.deepEqual(await asked({}), of('v1'))
    for (const version of ['v1', 'v1beta1']) assert.deepEqual(await asked(info(version)), of(version))
    assert.deepEqual(await asked({ KUBERNETES_EXEC_INFO: 'nonsense' }), of('v1'))
  })

  it('a bad token does not exit 0, and the text contains Unauthorized', async () => {
    service.override = (_, response) =>
      send(response, 401, new ApiError('Unauthorized', 'The token is invalid').toStatus('r'))
    for (const line of ['vm list', 'vm list -o json', 'vm delete demo', 'vm deploy demo -i x -o json']) {
      const { exitCode, stdout, stderr } = await svc3(line)
      assert.equal(exitCode, 3, line)
      assert.ok(stderr.includes('Unauthorized') && stdout === '', line)
    }
  })

  it('a missing VM does not exit 0, and the text contains not found', async () => {
    for (const line of ['vm list nobody', 'vm ssh nobody', 'vm delete nobody', 'vm list nobody -o json']) {
      const { exitCode, stderr } = await svc3(line)
      assert.equal(exitCode, 5, `${line}: ${stderr}`)
      assert.match(stderr, /not found/, line)
    }
  })

  it('"me" and orka3: help shows the name that it was called by', async () => {
    const { stdout } = await svc3('--help', { calledAs: 'orka3' })
    assert.ok(stdout.includes('Usage: orka3 COMMAND') && !stdout.includes('  svc3 '))
    assert.match((await svc3('--help', { typedAs: 'bin/svc3' })).stdout, /\n {2}bin\/svc3 vm ssh demo {3,}Open/)
    assert.match((await svc3('vm ssh --help', { typedAs: 'bin/svc3' })).stdout, /\n {2}bin\/svc3 vm ssh demo\n/)
    const { stdout: restore } = await svc3('server restore --help', { typedAs: 'bin/svc3' })
    assert.match(restore, /\n {2}bin\/svc3 server restore svc3\.tar --data \/var\/lib\/svc3-new\n/)
    assert.match((await svc3('vm ssh --help', { typedAs: '/opt/bin/svc3' })).stdout, /\n {2}svc3 vm ssh demo\n/)
    serve(service, {
      'GET vms/demo': () => {
        throw new ApiError('Conflict', 'vm "demo" is suspended', { hint: 'svc3 vm resume lets it go on' })
      },
    })
    assert.match((await svc3('vm ssh demo', { calledAs: 'orka3' })).stderr, /\norka3: orka3 vm resume lets it go on\n/)
  })

  it('lines to paste begin as the program was called, and name a namespace only where it is not the default', async () => {
    const hint = 'Run svc3 vm show demo -n svc-default, or svc3 node list -n svc-ios; a file of svc3'
    serve(service, {
      'GET vms/demo': () => {
        throw new ApiError('Conflict', 'VM demo is busy', { hint })
      },
    })
    const shown = async (options: FakeHostOptions) => (await svc3('vm ssh demo', options)).stderr.split('\n')[1]
    assert.equal(
      await shown({ typedAs: 'bin/svc3' }),
      'svc3: Run bin/svc3 vm show demo, or bin/svc3 node list -n svc-ios; a file of svc3',
    )
    assert.equal(
      await shown({ env: { SVC3_DEFAULT_NAMESPACE: 'svc-ios' } }),
      'svc3: Run svc3 vm show demo -n svc-default, or svc3 node list; a file of svc3',
    )
    assert.match(
      (await svc3('vm delete', { typedAs: '../bin/svc3' })).stderr,
      /\nsvc3: Usage: \.\.\/bin\/svc3 vm delete /,
    )
  })
})

describe('exit codes', () => {
  const wanted: Readonly<Partial<Record<Reason, number>>> = {
    BadRequest: 2,
    Invalid: 2,
    Unauthorized: 3,
    Forbidden: 4,
    NotFound: 5,
    AlreadyExists: 6,
    Conflict: 6,
    Timeout: 7,
  }
  for (const reason of Object.keys(codes) as Reason[])
    it(`a refusal for ${reason} exits ${wanted[reason] ?? 1}`, async () => {
      // Some errors are retried first.
      const retry = codes[reason] === 429 || codes[reason] === 503 ? { 'retry-after': '3600' } : {}
      service.override = (_, response) => {
        response.writeHead(codes[reason], { 'content-type': 'application/json', ...retry })
        response.end(JSON.stringify(new ApiError(reason, 'refused').toStatus('r')))
      }
      const { exitCode, stdout, stderr } = await svc3('vm list')
      assert.deepEqual([exitCode, stdout], [wanted[reason] ?? 1, ''])
      assert.ok(stderr.split('\n').length <= 3, stderr)
    })

  it('a refusal ends every command with the exit code of its reason', async () => {
    // These answer without the service, or report its refusal as a result.
    const others = new Set(['version', 'console', 'image demo', 'runner-pool doctor'])
    let count = 0
    const reasons = Object.keys(wanted) as Reason[]
    for (const { words, command } of await pagesOf()) {
      const [example] = command?.examples ?? []
      const name = words.join(' ')
      if (!example || others.has(name) || ['server', 'agent', 'dev', 'migrate'].includes(words[0] ?? '')) continue
      const line = example.line.replace(/^.*?svc3 /, '').replace(/ [<>|] .*/, '')
      // One of the other reasons for each command, because all of them would take ten seconds.
      for (const reason of ['Invalid', reasons[count % reasons.length] ?? 'Invalid'] as const) {
        const exitCode = wanted[reason]
        service.requests.length = 0
        service.override = (_, response) => send(response, codes[reason], new ApiError(reason, 'refused').toStatus('r'))
        const outcome = await svc3(line, { input: 'secret' })
        if (service.requests.length === 0) continue
        count++
        assert.equal(outcome.exitCode, exitCode, `${line}, ${reason}: ${outcome.stdout}${outcome.stderr}`)
      }
    }
    assert.ok(count > 100, `${count}`)
  })

  it('wrong usage exits 2, with nothing sent and the one line of usage', async () => {
    service.requests.length = 0
    const { exitCode, stdout, stderr } = await svc3('vm list --nope')
    assert.deepEqual([exitCode, stdout, service.requests.length], [2, '', 0])
    assert.equal(stderr, 'svc3: Unknown option --nope\nsvc3: Usage: svc3 vm list [NAME…] [OPTIONS]\n')
    assert.equal(
      (await svc3('vm ssh')).stderr,
      'svc3: Specify VM: name of the VM\nsvc3: Usage: svc3 vm ssh VM [OPTIONS] [-- COMMAND…]\n',
    )
    const tag = await svc3('vm push demo ghcr.io/a/b:-c')
    assert.deepEqual([tag.exitCode, tag.stdout, service.requests.length], [2, '', 0])
    assert.match(
      tag.stderr,
      /^svc3: Invalid image reference "ghcr.io\/a\/b:-c": the tag cannot begin with a dash\nsvc3: Use .* begin with a letter, a digit or _\n$/,
    )
  })
})

describe('lists', () => {
  const columns: Readonly<Record<string, readonly [string, string]>> = {
    'vm list': ['NAME IP SSH VNC SCREENSHARE STATUS', 'IMAGE CPU MEMORY NODE ARCHITECTURE POWER OWNER DEPLOY-DATE'],
    'image list': ['NAME DESCRIPTION SIZE TYPE STATE', 'STORAGE-SIZE SOURCE OWNER ERROR OS PROTECTED'],
    'iso list': ['NAME DESCRIPTION SIZE TYPE STATE', 'STORAGE-SIZE SOURCE OWNER ERROR'],
    'node list': [
      'NAME AVAILABLE-CPU AVAILABLE-MEMORY STATUS',
      'IP ALLOCATABLE-CPU ALLOCATABLE-MEMORY VERSION OS ARCHITECTURE TAGS RUNTIME',
    ],
    'vm-config list': [
      'NAME IMAGE CPU MEMORY',
      'ISO VNC SCHEDULER TAG TAG-REQUIRED NODE GPU NET-BOOST SERIAL OWNER DISPLAY-WIDTH DISPLAY-HEIGHT DISPLAY-DPI',
    ],
    'vm get-push-status': ['NAME IMAGE STATUS PROGRESS AGE', 'VM DIGEST ERROR'],
    'remote-image list': ['NAME SIZE TYPE', ''],
    'regcred list': ['SERVER USERNAME', 'INSECURE UPDATED BY'],
  }
  beforeEach(() => {
    service.override = (_, response) => send(response, 200, { items: [] })
  })
  for (const [line, [table, wide]] of Object.entries(columns))
    it(`${line} prints the columns that scripts know`, async () => {
      assert.equal((await svc3(line)).stdout, `${table.replaceAll(' ', '\t')}\n`)
      assert.equal((await svc3(`${line} -o wide`)).stdout, `${`${table} ${wide}`.trimEnd().replaceAll(' ', '\t')}\n`)
    })

  it('vm get-push-status shows progress, rate and time left of a running job', async () => {
    const progress = { bytesTotal: 8_400_000_000, bytesDone: 5_208_000_000, bytesSkipped: 0, percent: 62 }
    const moving = { ...progress, bytesPerSecond: 18_000_000, secondsLeft: 178 }
    const job = { name: 'vm-push-4k2vx', image: 'ghcr.io/a/b:c', startedAt: '2026-11-15T09:00:00Z' }
    const jobs = [
      { ...job, status: 'Running', progress: moving },
      { ...job, status: 'Failed', progress: moving },
      { ...job, status: 'Running', progress },
    ]
    service.override = (_, response) => send(response, 200, { items: jobs })
    const rows = (await svc3('vm get-push-status')).stdout.split('\n').slice(1, -1)
    assert.deepEqual(
      rows.map((row) => row.split('\t')[3]),
      ['62 % of 7.8 GiB, 17.2 MiB/s, 3 min left', '62 % of 7.8 GiB', '62 % of 7.8 GiB'],
    )
    assert.deepEqual(JSON.parse((await svc3('vm get-push-status -o json')).stdout)[0].progress, moving)
  })

  it('a push that waits for its registry says why and when it tries next: in each format, and with --wait', async () => {
    const progress = { bytesTotal: 0, bytesDone: 0, bytesSkipped: 0, percent: 0 }
    const waiting = {
      reason: 'https://ghcr.io/v2/: connection refused (ECONNREFUSED)',
      nextTryAt: '2026-11-15T09:00:30Z',
    }
    const job = { name: 'vm-push-4k2vx', image: 'ghcr.io/a/b:c', startedAt: '2026-11-15T09:00:00Z', progress }
    const stuck = { ...job, status: 'Running', phase: 'packing, 100 %', waiting }
    const half = { ...progress, bytesTotal: 8_400_000_000, bytesDone: 5_208_000_000, percent: 62, bytesPerSecond: 9 }
    const failed = { ...job, status: 'Failed', errorMessage: 'Could not be pushed', finishedAt: job.startedAt }
    serve(service, {
      'POST vms/demo/push': () => ({ jobName: job.name }),
      'GET pushjobs': () => ({ items: [stuck, { ...stuck, progress: half }] }),
      'WATCH pushjobs': changes(change('ADDED', stuck), change('MODIFIED', failed)),
    })
    const words = `waiting: ${waiting.reason}; next try at 09:00:30 UTC`
    const rowsOf = (stdout: string) => stdout.split('\n').slice(1, -1).map((row) => row.split('\t')) // biome-ignore format: steps
    const table = await svc3('vm get-push-status')
    assert.deepEqual(
      rowsOf(table.stdout).map((row) => row[3]),
      ['0 %, next try at 09:00:30 UTC', '62 % of 7.8 GiB, next try at 09:00:30 UTC'],
    )
    assert.equal(table.stderr, `svc3: Push job ${job.name}: ${words}\n`.repeat(2))
    assert.equal(rowsOf((await svc3('vm get-push-status -o wide')).stdout)[0]?.at(-1), waiting.reason)
    assert.deepEqual(JSON.parse((await svc3('vm get-push-status -o json')).stdout)[0].waiting, waiting)
    const { exitCode, stderr } = await svc3('vm push demo ghcr.io/a/b:c --wait')
    assert.deepEqual([exitCode, stderr.includes(`Push ${job.name}: ${words}\n`)], [1, true], stderr)
  })

  it('an empty list with -o json is [] for every kind, and nothing else', async () => {
    // src/operator/users.test.ts tests those of `svc3 server`, which read a data folder.
    const lists = (await pagesOf()).filter(
      ({ words, command }) =>
        command && 'output' in command.options && words.at(-1)?.startsWith('list') && words[0] !== 'server',
    )
    assert.ok(lists.length >= 9)
    for (const { words } of lists) {
      const { exitCode, stdout, stderr } = await svc3(`${words.join(' ')} -o json`)
      assert.deepEqual([exitCode, stdout, stderr], [0, '[]\n', ''], words.join(' '))
      assert.equal((await svc3(`${words.join(' ')} -o yaml`)).stdout, '[]\n')
    }
    assert.equal((await svc3('events -o json')).stdout, '[]\n')
  })
})

describe('names', () => {
  const a = (length: number): string => 'a'.repeat(length)
  const rules: readonly (readonly [string, (name: string) => boolean, readonly string[], readonly string[]])[] = [
    ['VM', isVmName, [a(63), 'ci-1'], [a(64), 'Demo', '']],
    ['VM config', isVmConfigName, [a(50), 'ios-build'], [a(51), 'a_b', '-a']],
    ['image', isImageName, [a(63), 'macos-14.5', 'x'], [a(64), 'A', 'a b', 'a_b']],
    [
      'namespace',
      (name) => isNamespaceName(realNamespace(name)),
      [`svc-${a(59)}`, 'orka-ios'],
      [`svc-${a(60)}`, 'ios'],
    ],
    ['service account', isServiceAccountName, [a(253), 'a.b-c'], [a(254), 'A', 'a_b']],
    ['tag', isTag, [a(63), 'a.B_c-1'], [a(64), '-a', 'a.', '_']],
  ]
  for (const [kind, isName, good, bad] of rules)
    it(`names of kind "${kind}" are judged by their rule`, () => {
      for (const name of good) assert.ok(isName(name), name)
      for (const name of bad) assert.ok(!isName(name), name)
    })
})

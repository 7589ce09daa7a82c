// The vm commands against a stand-in service: requests, output in each format, several VMs, exit codes.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { type FakeHostOptions, run } from '../../test/support/rigs/cli-host.ts'
import { type FakeService, startFakeService } from '../../test/support/stand-ins/api.ts'
import { type Asked, change, changes, pendingVm, serve, vmOf } from '../../test/support/stand-ins/fleet.ts'
import { ApiError, notFound, success } from '../api/errors.ts'

let service: FakeService
let env: Record<string, string>
before(async () => {
  service = await startFakeService()
  env = { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token }
})
after(() => service[Symbol.asyncDispose]())
let asked: Asked[] = []
beforeEach(() => {
  asked = []
  service.requests.length = 0
})

const vm = (words: string, options: FakeHostOptions = {}) =>
  run(['vm', ...words.split(' ')], { ...options, env: { ...env, ...options.env } })
const lines = (text: string): string[] => text.split('\n').slice(0, -1)
const jwt = (claims: object): string => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`
/** Ignores watches of earlier tests. */
const sent = () => service.requests.filter(({ path }) => !path.includes('watch=true'))
/** Responds and records the requests. */
const answers =
  <T>(value: T) =>
  (request: Asked): T => {
    asked.push(request)
    return value
  }

describe('vm list', () => {
  const demo = vmOf({ name: 'demo' })
  const waits = pendingVm('waits', 'node a: has no cores; node b: is cordoned')
  beforeEach(() => serve(service, { 'GET vms': answers({ items: [demo, waits] }) }))

  it('vm list has the columns that scripts know, with empty cells for a VM that is nowhere yet', async () => {
    const { stdout, stderr } = await vm('list')
    assert.deepEqual(lines(stdout), [
      'NAME\tIP\tSSH\tVNC\tSCREENSHARE\tSTATUS',
      'demo\t10.0.0.7\t8822\t5999\t5900\tRunning',
      'waits\t\t\t\t\tPending',
    ])
    assert.equal(stderr, 'svc3: VM waits is pending: node a: has no cores; node b: is cordoned\n')
  })

  it('vm list adds the rest with -o wide', async () => {
    const [header, first] = lines((await vm('list -o wide')).stdout)
    assert.equal(header?.split('\t').slice(6).join(' '), 'IMAGE CPU MEMORY NODE ARCHITECTURE POWER OWNER DEPLOY-DATE')
    assert.equal(
      first?.split('\t').slice(6).join(' '),
      'sonoma 3 4.80Gi mini-1 amd64 running ada@example.com 2026-11-15T09:00:30Z',
    )
    const terminal = { stdout: true }
    assert.match((await vm('list -o wide --no-color', { terminal })).stdout, /ada@example\.com {3}2 h ago\n/)
  })

  it('vm list NAME -o wide and vm show tell node by node why a VM waits', async () => {
    const nodes = [
      { name: 'mac-1', fits: false, reason: 'is cordoned' },
      { name: 'mac-2', fits: false, reason: 'has 2 cores free' },
    ]
    serve(service, { 'GET vms': () => ({ items: [waits] }), 'GET vms/waits': () => ({ ...waits, nodes }) })
    assert.deepEqual(lines((await vm('list waits -o wide')).stderr).slice(1), [
      'svc3: mac-1: is cordoned',
      'svc3: mac-2: has 2 cores free',
    ])
    assert.match((await vm('show waits')).stdout, /\nNodes: +mac-1: is cordoned\n +mac-2: has 2 cores free\n/)
  })

  it('vm show says when a VM that waits was requested, and whether one that runs has booted', async () => {
    const at = '2026-11-15T09:00:00Z'
    const conditions = [{ type: 'Booted', status: 'False', reason: 'NoSshAnswer', message: 'No SSH answer', at }]
    serve(service, {
      'GET vms/waits': () => waits,
      'GET vms/demo': () => demo,
      'GET vms/dark': () => ({ ...demo, name: 'dark', conditions }),
    })
    const pending = (await vm('show waits')).stdout
    assert.match(pending, /\nRequested: +/)
    assert.doesNotMatch(pending, /Deployed:|Booted:/)
    assert.match((await vm('show demo')).stdout, /\nBooted: +not yet: SSH has not answered\n(.*\n)*Deployed: /)
    assert.match((await vm('show dark')).stdout, /\nBooted: +no\. No SSH answer\n/)
  })

  it('vm show and vm list say whether a running VM can be reached, why not, and what to do', async () => {
    const at = '2026-11-15T09:00:00Z'
    const reach = { type: 'GuestReachable', at }
    const dark = {
      ...demo,
      name: 'dark',
      conditions: [{ ...reach, status: 'False', reason: 'NoAddress', message: 'no lease' }],
    }
    serve(service, {
      'GET vms': () => ({ items: [dark] }),
      'GET vms/demo': () => ({
        ...demo,
        conditions: [{ ...reach, status: 'True', reason: 'Reachable', message: 'x' }],
      }),
      'GET vms/dark': () => dark,
    })
    assert.match((await vm('show demo')).stdout, /\nReachable: +yes\n/)
    const shown = (await vm('show dark')).stdout
    assert.match(shown, /\nReachable: +no: the guest has no IP address \(no lease\)\n +Wait while it boots\. /)
    const { stderr } = await vm('list')
    assert.equal(stderr, 'svc3: VM dark: the guest has no IP address (no lease)\n')
  })

  it('vm list suggests the name that was probably meant, also when only that one was fetched', async () => {
    const items = ({ query }: Asked) => ({ items: query.get('fieldSelector') === null ? [demo] : [] })
    serve(service, { 'GET vms': items })
    const { exitCode, stderr } = await vm('list dmo')
    assert.equal(exitCode, 5)
    assert.match(stderr, /^svc3: VM dmo not found in svc-default\nsvc3: Did you mean demo\? Run svc3 vm list/)
  })

  it('vm list -A lists every namespace, with a column that says which', async () => {
    serve(service, {
      'GET vms': ({ path }) => ({
        items: path.includes('svc-ios') ? [vmOf({ name: 'x', namespace: 'svc-ios' })] : [demo],
      }),
      'GET ': () => ({ items: [{ name: 'svc-default' }, { name: 'svc-ios' }] }),
    })
    const { exitCode, stdout } = await vm('list -A')
    assert.equal(exitCode, 0)
    assert.deepEqual(
      lines(stdout).map((line) => line.split('\t').slice(0, 2).join(' ')),
      ['NAMESPACE NAME', 'svc-default demo', 'svc-ios x'],
    )
    assert.equal((await vm('list -A --watch')).exitCode, 2)
  })

  it('vm list NAME -A -o wide says why a VM waits in the namespace it is in', async () => {
    const there = { ...waits, namespace: 'svc-ios' }
    serve(service, {
      'GET vms': ({ path }) => ({ items: path.includes('svc-ios') ? [there] : [] }),
      'GET vms/waits': ({ path }) => {
        if (!path.includes('svc-ios')) throw notFound('vms', 'waits')
        return { ...there, nodes: [{ name: 'mini-1', reason: 'has no cores' }] }
      },
      'GET ': () => ({ items: [{ name: 'svc-default' }, { name: 'svc-ios' }] }),
    })
    const { exitCode, stderr } = await vm('list waits -A -o wide')
    assert.deepEqual([exitCode, lines(stderr).at(-1)], [0, 'svc3: mini-1: has no cores'])
  })

  it('vm list --owner matches the first part of an address, and names the owner if there are no VMs', async () => {
    const items = [demo, vmOf({ name: 'other', owner: 'bo@example.com' })]
    serve(service, { 'GET vms': () => ({ items }) })
    assert.deepEqual(
      lines((await vm('list --owner ada')).stdout).map((line) => line.split('\t')[0]),
      ['NAME', 'demo'],
    )
    const none = await vm('list --owner nobody', { terminal: { stdout: true } })
    assert.deepEqual([none.exitCode, none.stderr], [0, 'svc3: No VMs owned by nobody in svc-default\n'])
  })

  it('vm list prints only an array in JSON', async () => {
    const { stdout, stderr } = await vm('list -o json')
    assert.deepEqual(JSON.parse(stdout), [demo, waits])
    assert.equal(stderr, '')
    serve(service, { 'GET vms': () => ({ items: [] }) })
    assert.equal((await vm('list -o json')).stdout, '[]\n')
    const none = await vm('list', { terminal: { stdout: true } })
    assert.deepEqual([none.stdout, none.stderr], ['', 'svc3: No VMs in svc-default\n'])
  })

  it('vm list asks for one by name, and for several by picking them out', async () => {
    await vm('list demo')
    assert.equal(asked[0]?.query.get('fieldSelector'), 'name=demo')
    const both = await vm('list demo other')
    assert.equal(asked[1]?.query.get('fieldSelector'), null)
    assert.equal(both.exitCode, 5)
    assert.match(both.stdout, /^NAME.*\ndemo\t.*\n$/)
    assert.match(both.stderr, /^svc3: VM other not found in svc-default\nsvc3: Run svc3 vm list to/)
  })

  it('vm list filters by label and owner, and knows who "me" is', async () => {
    await vm('list --label team=ios,stage!=test --label fast --owner Ada@example.com')
    assert.equal(asked[0]?.query.get('labelSelector'), 'team=ios,stage!=test,fast')
    assert.equal(asked[0]?.query.get('fieldSelector'), 'owner=ada@example.com')
    await vm('list --owner me', { env: { SVC3_TOKEN: jwt({ sub: 'bo@example.com', kind: 'user' }) } })
    const account = { sub: 'ci', kind: 'serviceaccount', namespace: 'svc-ios' }
    await vm('list --owner me', { env: { SVC3_TOKEN: jwt(account) } })
    assert.deepEqual(
      asked.slice(1).map(({ query }) => query.get('fieldSelector')),
      ['owner=bo@example.com', 'owner=serviceaccount:svc-ios:ci'],
    )
    const unknown = await vm('list --owner me')
    assert.deepEqual([unknown.exitCode, lines(unknown.stderr)[0]], [2, 'svc3: The token does not say who "me" is'])
  })

  it('vm list shows a few reasons, not hundreds', async () => {
    const items = Array.from({ length: 20 }, (_, index) => pendingVm(`w${index}`, 'no node'))
    serve(service, { 'GET vms': () => ({ items }) })
    const { stderr } = await vm('list')
    assert.equal(lines(stderr).length, 6)
    assert.match(stderr, /15 more; run svc3 vm show NAME to see why\n$/)
  })

  it('vm list --watch shows changes until Ctrl-C, and exits 130', async () => {
    const controller = new AbortController()
    serve(service, {
      'WATCH vms': (request, response) => {
        changes(change('ADDED', waits), change('BOOKMARK', { resourceVersion: '1' }))(request, response)
        response.write(change('MODIFIED', demo) + change('DELETED', demo))
      },
    })
    const { exitCode, stdout } = await vm('list --watch', {
      interruption: controller.signal,
      onWrite: ({ stdout }) => stdout.includes('Deleted') && controller.abort(),
    })
    assert.equal(exitCode, 130)
    assert.deepEqual(
      lines(stdout).map((line) => line.split('\t').at(-1)),
      ['STATUS', 'Pending', 'Running', 'Deleted'],
    )
  })

  it('vm list --watch shows VMs that were deleted while it was disconnected, in a pipe and in place', async () => {
    const [a, b, c] = ['a', 'b', 'c'].map((name) => vmOf({ name }))
    for (const terminal of [false, true]) {
      const controller = new AbortController()
      let connections = 0
      serve(service, {
        'WATCH vms': (request, response) => {
          connections++
          if (request.query.has('resourceVersion')) throw new ApiError('Expired', 'Too old')
          const present = connections === 1 ? [change('ADDED', a), change('ADDED', b)] : [change('ADDED', a)]
          changes(...present, change('BOOKMARK', { resourceVersion: '1' }))(request, response)
          if (connections === 1) response.end()
          else response.write(change('ADDED', c))
        },
      })
      const { stdout } = await vm(`list --watch${terminal ? '' : ' -o json'}`, {
        ...(terminal && { terminal: { stdout: true } }),
        interruption: controller.signal,
        onWrite: ({ stdout }) => /^c |"c"/m.test(stdout) && controller.abort(),
      })
      if (terminal) {
        const last = stdout.slice(stdout.lastIndexOf('NAME'))
        assert.deepEqual(
          lines(last).map((line) => line.split(' ')[0]),
          ['NAME', 'a', 'c'],
        )
      } else {
        const told = lines(stdout).map((line) => JSON.parse(line))
        assert.deepEqual(
          told.map(({ type, object }) => `${type} ${object.name}`),
          ['ADDED a', 'ADDED b', 'DELETED b', 'ADDED c'],
        )
      }
    }
  })
})

describe('vm delete', () => {
  it('vm delete deletes several VMs, continues after a failure, and exits with the worst code', async () => {
    const remove = (name: string) => answers(success('deleted', { kind: 'vms', name }))
    serve(service, {
      'DELETE vms/a': remove('a'),
      'DELETE vms/b': () => {
        throw new ApiError('Forbidden', 'vm "b" belongs to bo@example.com')
      },
      'DELETE vms/c': () => {
        throw notFound('vms', 'c')
      },
      'DELETE vms/d': remove('d'),
    })
    const { exitCode, stdout, stderr } = await vm('delete a b c a d --force')
    assert.deepEqual([exitCode, stdout], [4, 'Successfully deleted vm a\nSuccessfully deleted vm d\n'])
    assert.deepEqual(lines(stderr), [
      `svc3: vm "b" belongs to bo@example.com (${service.apiUrl})`,
      'svc3: Ask an administrator for access, or use another account',
      'svc3: VM c not found',
      'svc3: Run svc3 vm list to see all VMs',
    ])
    assert.deepEqual(
      asked.map(({ query }) => query.get('force')),
      ['true', 'true'],
    )
    const json = await vm('delete a c -o json')
    assert.equal(json.exitCode, 5)
    assert.deepEqual(
      JSON.parse(json.stdout).map((status: { details: { name: string } }) => status.details.name),
      ['a'],
    )
    assert.equal((await vm('delete')).exitCode, 2)
  })

  it('vm delete says once that it is not permitted, and after Ctrl-C how to check again', async () => {
    service.override = undefined
    const stranger = await vm('delete a b c', { env: { SVC3_TOKEN: 'bad' } })
    assert.deepEqual([stranger.exitCode, lines(stranger.stderr).length], [3, 2])
    const controller = new AbortController()
    service.override = () => controller.abort()
    const cut = await vm('delete a b', { interruption: controller.signal })
    assert.equal(cut.exitCode, 130)
    assert.match(
      cut.stderr,
      /^svc3: Stopped waiting; deletes already sent continue\nsvc3: To see what is left: svc3 vm list\n$/,
    )
  })

  it('vm delete -o json prints what was deleted before the connection was lost, or Ctrl-C came', async () => {
    const deleted = success('deleted', { kind: 'vms', name: 'a' })
    const controller = new AbortController()
    const hangs = () => undefined
    const others = Object.fromEntries([...'bcdefgh'].map((name) => [`DELETE vms/${name}`, hangs]))
    // Eight requests run at a time: the ninth starts when the first has ended.
    serve(service, { ...others, 'DELETE vms/a': () => deleted, 'DELETE vms/i': () => controller.abort() })
    const cut = await vm('delete a b c d e f g h i -o json', { interruption: controller.signal })
    assert.deepEqual([cut.exitCode, JSON.parse(cut.stdout)], [130, [deleted]])
    serve(service, { 'DELETE vms/a': () => deleted, 'DELETE vms/b': (_, response) => void response.destroy() })
    const lost = await vm('delete a b -o json')
    assert.deepEqual([lost.exitCode, JSON.parse(lost.stdout)], [1, [deleted]])
  })

  it('vm delete names at once the node that does not respond, and how to continue without it', async () => {
    const at = '2026-11-15T09:00:00Z'
    const lost = {
      ...vmOf({ name: 'a', powerState: 'unknown' }),
      conditions: [{ type: 'NodeReady', status: 'False', reason: 'NodeLost', message: 'Node mac-3 is lost', at }],
      operation: { kind: 'delete', phase: 'waiting for node mac-3 (NOT READY)' },
    }
    const said = Promise.withResolvers<void>()
    const watched = { 'WATCH vms': changes(change('ADDED', lost)) }
    const late = async () => {
      await said.promise
      throw new ApiError('Timeout', 'VM a is being deleted', { hint: 'Now: svc3 vm delete a --force -n svc-ios' })
    }
    serve(service, { ...watched, 'DELETE vms/a': late })
    const onWrite = ({ stderr }: { stderr: string }) => void (stderr.includes('--force') && said.resolve())
    const { exitCode, stderr } = await vm('delete a -n svc-ios', { onWrite })
    assert.equal(exitCode, 7)
    assert.deepEqual(lines(stderr), [
      'svc3: VM a: waiting for node mac-3 (NOT READY)',
      'svc3: An administrator can remove it now: svc3 vm delete a --force -n svc-ios',
      'svc3: VM a is being deleted (request request-1)',
      'svc3: Now: svc3 vm delete a --force -n svc-ios',
    ])
  })

  it('vm delete keeps to eight requests at a time', async () => {
    let open = 0
    let most = 0
    const names = Array.from({ length: 30 }, (_, index) => `v${index}`)
    const remove = async () => {
      most = Math.max(most, ++open)
      await new Promise((resolve) => setImmediate(resolve))
      open--
      return success('deleted', { kind: 'vms', name: 'v' })
    }
    serve(service, Object.fromEntries(names.map((name) => [`DELETE vms/${name}`, remove])))
    const { stdout } = await vm(`delete ${names.join(' ')}`)
    assert.deepEqual(
      lines(stdout),
      names.map((name) => `Successfully deleted vm ${name}`),
    )
    assert.ok(most <= 8, `${most} at once`)
  })
})

describe('power', () => {
  const watched = { 'WATCH vms': changes() }
  for (const command of ['start', 'stop', 'suspend', 'resume', 'revert']) {
    it(`${command} is one request`, async () => {
      serve(service, { ...watched, 'POST vms/demo/exec': answers(vmOf({ name: 'demo' })) })
      const { exitCode, stdout, stderr } = await vm(`${command} demo`)
      assert.deepEqual([exitCode, stderr, asked[0]?.body], [0, '', { command }])
      assert.match(stdout, /^VM demo (started|is stopped|is suspended|resumed|reverted)/)
      const json = await vm(`${command} demo -o json`)
      assert.equal(JSON.parse(json.stdout)[0].name, 'demo')
    })
  }

  it('a power command shows the refusal of the service', async () => {
    serve(service, {
      ...watched,
      'POST vms/demo/exec': () => {
        throw new ApiError('Invalid', 'vm "demo" is Apple silicon-based', { hint: 'delete it' })
      },
    })
    const { exitCode, stderr } = await vm('stop demo')
    assert.deepEqual([exitCode, stderr], [2, 'svc3: vm "demo" is Apple silicon-based\nsvc3: delete it\n'])
  })

  it('vm revert asks on a terminal, unless --yes', async () => {
    serve(service, { ...watched, 'POST vms/demo/exec': answers(vmOf({ name: 'demo' })) })
    const terminal = { stdin: true, stdout: true }
    const no = await vm('revert demo', { terminal, input: 'no\n' })
    assert.deepEqual([no.exitCode, asked.length], [1, 0])
    assert.match(
      no.stderr,
      /^Revert VM demo to its image\? All changes on its disk are lost\. \[y\/N\] svc3: VM demo not reverted\n/,
    )
    assert.equal((await vm('revert demo', { terminal, input: 'yes\n' })).exitCode, 0)
    assert.equal((await vm('revert demo --yes', { terminal, input: '' })).exitCode, 0)
    assert.equal(asked.length, 2)
  })
})

describe('vm resize', () => {
  const grown = vmOf({ name: 'demo', diskGb: 120 })
  const resize = (value = grown) => serve(service, { 'WATCH vms': changes(), 'POST vms/demo/resize': answers(value) })

  it('vm resize sends the size, and says what is left to do by hand', async () => {
    resize({ ...grown, warning: 'grow the partition in the guest: run growpart' })
    const { exitCode, stdout, stderr } = await vm('resize demo 120')
    assert.deepEqual([exitCode, stdout, asked[0]?.body], [0, 'The disk of VM demo is now 120 GiB.\n', { size: 120 }])
    assert.equal(stderr, 'svc3: grow the partition in the guest: run growpart\n')
    resize({ ...grown, architecture: 'arm64' })
    assert.equal((await vm('resize demo 120')).stderr, '')
  })

  it('vm resize sends the password from standard input or, with a warning, from the command line', async () => {
    resize()
    const piped = await vm('resize demo 120 -u admin --password-stdin', { input: 'planted-secret\n' })
    assert.deepEqual([piped.exitCode, piped.stderr], [0, ''])
    const given = await vm('resize demo 120 -u admin -p planted-secret', { terminal: { stdout: true } })
    assert.match(given.stderr, /^svc3: Other users of this machine can see --password.*\n$/)
    for (const { body } of asked) assert.deepEqual(body, { size: 120, user: 'admin', password: 'planted-secret' })
  })

  it('vm resize reports what failed, and exits 1 if it was requested', async () => {
    resize({ ...grown, warning: 'the disk has 120 GB, but SSH refused the password\nrun growpart' })
    const { exitCode, stderr } = await vm('resize demo 120 -u admin --password-stdin', { input: 'wrong' })
    assert.deepEqual([exitCode, lines(stderr).length], [1, 2])
    assert.match(stderr, /^svc3: the disk has 120 GB, but SSH refused the password\nsvc3: run growpart\n$/)
  })

  const slips = {
    'resize demo 1.5': /Invalid size "1\.5"/,
    'resize demo 0': /Invalid size "0"/,
    'resize demo big': /whole number/,
    'resize demo 120 --password-stdin': /A password requires --user/,
    'resize demo 120 -u admin': /A password is required/,
    'resize demo': /Specify SIZE/,
  }
  for (const [words, text] of Object.entries(slips)) {
    it(`${words} is wrong usage`, async () => {
      const { exitCode, stderr } = await vm(words)
      assert.equal(exitCode, 2)
      assert.match(stderr, text)
      assert.deepEqual(sent(), [])
    })
  }
})

describe('vm label', () => {
  const labelled = (labels: Record<string, string>) => vmOf({ name: 'demo', labels, resourceVersion: '7' })
  const put = 'PUT metadata/vms/demo'

  it('vm label sets and removes labels, and sends the version that it read', async () => {
    serve(service, { 'GET vms/demo': () => labelled({ team: 'ios', tier: '1' }), [put]: answers({}) })
    const { stdout, stderr, exitCode } = await vm('label demo stage=test team- gone-')
    assert.deepEqual([exitCode, stdout], [0, 'Labels of VM demo: tier=1, stage=test.\n'])
    assert.match(stderr, /VM demo has no label gone/)
    assert.deepEqual(asked[0]?.body, { labels: { tier: '1', stage: 'test' }, resourceVersion: '7' })
  })

  it('vm label changes a label that has another value only with --overwrite', async () => {
    serve(service, { 'GET vms/demo': () => labelled({ team: 'ios' }), [put]: answers({}) })
    const refused = await vm('label demo team=web stage=test')
    assert.deepEqual([refused.exitCode, asked], [6, []])
    assert.match(refused.stderr, /VM demo already has label team=ios\nsvc3: Add --overwrite to change it/)
    assert.equal((await vm('label demo team=ios')).exitCode, 0)
    assert.equal((await vm('label demo team=web --overwrite')).stdout, 'Labels of VM demo: team=web.\n')
  })

  it('vm label retries after a concurrent change of the VM, and keeps that change', async () => {
    let reads = 0
    serve(service, {
      'GET vms/demo': () => labelled(reads++ === 0 ? {} : { theirs: 'x' }),
      [put]: (request: Asked) => {
        asked.push(request)
        if (asked.length === 1) throw new ApiError('Conflict', 'VM demo changed: its resourceVersion is 8', {})
        return {}
      },
    })
    assert.equal((await vm('label demo team=ios')).stdout, 'Labels of VM demo: theirs=x, team=ios.\n')
    assert.deepEqual(asked.at(-1)?.body.labels, { theirs: 'x', team: 'ios' })
  })

  it('vm label rejects an invalid label before any request', async () => {
    for (const words of ['demo', 'demo team', 'demo =x', 'demo team=a team-'])
      assert.equal((await vm(`label ${words}`)).exitCode, 2, words)
    assert.deepEqual(sent(), [])
  })
})

describe('vm extend', () => {
  it('vm extend sets the end, or removes it', async () => {
    serve(service, { 'POST vms/demo/extend': answers(vmOf({ name: 'demo', expiresAt: '2026-11-15T13:00:00Z' })) })
    assert.equal((await vm('extend demo 2h --yes')).stdout, 'VM demo will be deleted at 2026-11-15T13:00:00Z.\n')
    serve(service, { 'POST vms/demo/extend': answers(vmOf({ name: 'demo' })) })
    assert.equal((await vm('extend demo 0')).stdout, 'VM demo has no time limit.\n')
    assert.deepEqual(
      asked.map(({ body }) => body),
      [{ ttl: '2h' }, { ttl: '0' }],
    )
    assert.equal((await vm('extend demo soon')).exitCode, 2)
  })

  it('vm extend asks on a terminal before it sets a time limit for a VM without one', async () => {
    const ends = vmOf({ name: 'demo', expiresAt: '2026-11-15T13:00:00Z' })
    serve(service, { 'GET vms/demo': () => vmOf({ name: 'demo' }), 'POST vms/demo/extend': answers(ends) })
    const terminal = { stdin: true, stdout: true }
    assert.equal((await vm('extend demo 1h', { terminal, input: 'no\n' })).exitCode, 1)
    assert.equal(asked.length, 0)
    assert.equal((await vm('extend demo 1h', { terminal, input: 'yes\n' })).exitCode, 0)
    serve(service, { 'GET vms/demo': () => ends, 'POST vms/demo/extend': answers(ends) })
    assert.equal((await vm('extend demo 1h')).exitCode, 0)
    assert.equal(asked.length, 2)
  })
})

describe('vm logs', () => {
  it('vm logs streams every byte to a pipe, and nothing dangerous to a terminal', async () => {
    const text = 'boot\x1b[2J\r\nä login:\t'
    serve(service, {
      'GET vms/demo/logs': (request, response) => {
        asked.push(request)
        const bytes = Buffer.from(text)
        response.write(bytes.subarray(0, 14))
        response.end(bytes.subarray(14))
      },
    })
    assert.equal((await vm('logs demo --tail 5')).stdout, text)
    assert.equal(asked[0]?.query.toString(), 'tail=5')
    const seen = await vm('logs demo', { terminal: { stdout: true } })
    assert.equal(seen.stdout, 'boot\\u001b[2J\nä login:    ')
  })

  it('vm logs of a VM that has printed nothing says where else to look', async () => {
    serve(service, { 'GET vms/demo/logs': (_, response) => void response.end() })
    const { exitCode, stdout, stderr } = await vm('logs demo -n svc-ios')
    const said = 'svc3: No output yet. svc3 vm vnc demo -n svc-ios shows the screen\n'
    assert.deepEqual([exitCode, stdout, stderr], [0, '', said])
  })

  it('vm logs -f reconnects when the stream ends, and says so', async () => {
    const controller = new AbortController()
    serve(service, {
      'GET vms/demo/logs': (request, response) => {
        asked.push(request)
        if (asked.length === 1) response.end('before\n')
        else response.write('after\n')
      },
    })
    const { exitCode, stdout, stderr } = await vm('logs -f demo --tail 5', {
      interruption: controller.signal,
      onWrite: ({ stdout }) => stdout.includes('after') && controller.abort(),
    })
    assert.deepEqual([exitCode, stdout], [130, 'before\nafter\n'])
    assert.deepEqual(lines(stderr), [
      'svc3: Connection lost; reconnecting…',
      'svc3: Reconnected; output in between may be missing',
    ])
    assert.deepEqual(
      asked.map(({ query }) => query.get('tail')),
      ['5', '0'],
    )
  })

  it('vm logs -f of a stream that keeps ending says once that the connection is lost', async () => {
    const controller = new AbortController()
    serve(service, {
      'GET vms/demo/logs': (request, response) => {
        asked.push(request)
        if (asked.length === 5) controller.abort()
        response.end(asked.length === 1 ? 'before\n' : '')
      },
    })
    const { exitCode, stderr } = await vm('logs -f demo', { interruption: controller.signal })
    assert.deepEqual([exitCode, stderr], [130, 'svc3: Connection lost; reconnecting…\n'])
  })

  it('vm logs -f exits with a code when the VM was deleted', async () => {
    serve(service, {
      'GET vms/demo/logs': (request, response) => {
        asked.push(request)
        if (asked.length > 1) throw notFound('vms', 'demo', { namespace: 'svc-default' })
        response.end('before\n')
      },
    })
    const { exitCode, stdout } = await vm('logs -f demo')
    assert.deepEqual([exitCode, stdout], [5, 'before\n'])
  })

  it('vm logs follows until Ctrl-C without notes', async () => {
    const controller = new AbortController()
    serve(service, {
      'GET vms/demo/logs': (request, response) => {
        asked.push(request)
        response.write('login:\n')
      },
    })
    const { exitCode, stdout, stderr } = await vm('logs -f demo', {
      interruption: controller.signal,
      onWrite: () => controller.abort(),
    })
    assert.deepEqual([exitCode, stdout, stderr], [130, 'login:\n', ''])
    assert.equal(asked[0]?.query.toString(), 'follow=true')
  })

  it('vm logs exits 5 when there is no such VM', async () => {
    serve(service, {})
    const { exitCode, stderr } = await vm('logs nobody')
    assert.equal(exitCode, 5)
    assert.match(stderr, /not found/)
  })
})

// The node, image and vm-config commands against a stand-in service.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { type FakeHostOptions, run } from '../../test/support/rigs/cli-host.ts'
import { type FakeService, startFakeService } from '../../test/support/stand-ins/api.ts'
import { type Answer, type Asked, change, changes, nodeOf, serve } from '../../test/support/stand-ins/fleet.ts'
import { ApiError, success } from '../api/errors.ts'
import type { Image } from '../api/images/images.ts'
import type { VmConfig } from '../api/vms/vm-configs.ts'
import { machineDefaults } from '../api/vms/vm-shape.ts'

let service: FakeService
before(async () => {
  service = await startFakeService()
})
after(() => service[Symbol.asyncDispose]())
let asked: Asked[] = []
beforeEach(() => {
  asked = []
})

const svc3 = (line: string, options: FakeHostOptions = {}) =>
  run(line.split(' '), { ...options, env: { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token } })
const lines = (text: string): string[] => text.split('\n').slice(0, -1)
const answers =
  (value: unknown): Answer =>
  (request) => {
    asked.push(request)
    return value
  }

describe('node list', () => {
  const nodes = [
    nodeOf({ name: 'mini-1', orkaTags: ['ios', 'fast'] }),
    nodeOf({ name: 'mini-2', phase: 'NOT READY', reason: 'its agent is not connected', cordoned: true }),
  ]
  beforeEach(() => serve(service, { 'GET nodes': answers({ items: nodes }) }))

  it('node list shows the free resources of each node, and whether it takes VMs', async () => {
    assert.deepEqual(lines((await svc3('node list')).stdout), [
      'NAME\tAVAILABLE-CPU\tAVAILABLE-MEMORY\tSTATUS',
      'mini-1\t5\t11.20G\tREADY',
      'mini-2\t5\t11.20G\tNOT READY,CORDONED',
    ])
    const [header, first] = lines((await svc3('node list -o wide')).stdout)
    assert.equal(
      header?.split('\t').slice(4).join(' '),
      'IP ALLOCATABLE-CPU ALLOCATABLE-MEMORY VERSION OS ARCHITECTURE TAGS RUNTIME',
    )
    assert.equal(first?.split('\t').slice(4).join(' '), '10.0.0.7 8 16.00G 3.0.0 Linux 6.1 arm64 ios,fast qemu')
    assert.equal(JSON.parse((await svc3('node list -o json')).stdout).length, 2)
  })

  it('node list NODE prints the reason of the node', async () => {
    const { stdout, stderr } = await svc3('node list mini-2')
    assert.equal(lines(stdout).length, 2)
    assert.equal(stderr, 'svc3: node mini-2: its agent is not connected\n')
    assert.equal((await svc3('node list mini-3')).exitCode, 5)
  })
})

describe('node show', () => {
  it('node show lists problems before warnings, each with the command that solves it', async () => {
    const checks = [
      { check: 'limits', result: 'ok', found: 'system defaults' },
      { check: 'sleep', result: 'warning', found: 'after 10 minutes', advice: 'Run sudo pmset -a sleep 0' },
      { check: 'login session', result: 'problem', found: 'no user at the screen', advice: 'Log in as admin' },
    ] as const
    serve(service, { 'GET nodes': answers({ items: [nodeOf({ name: 'mac-1', checks: [...checks] })] }) })
    const shown = lines((await svc3('node show mac-1')).stdout).map((line) => line.trim().replace(/: {2,}/, ': '))
    const first = shown.indexOf('Problems: login session: no user at the screen')
    assert.deepEqual(shown.slice(first, first + 4), [
      'Problems: login session: no user at the screen',
      'Log in as admin',
      'Warnings: sleep: after 10 minutes',
      'Run sudo pmset -a sleep 0',
    ])
    assert.ok(shown.indexOf('Checks: limits: system defaults') > first)
  })
})

describe('node changes', () => {
  const node = nodeOf({ name: 'mini-1', namespace: 'svc-ios' })
  /** Each line: the command, the route, the body and the message. */
  const changesOfNodes = [
    ['node tag mini-1 ios', 'POST nodes/mini-1/tag', { tag: 'ios' }, 'Tag ios added to node mini-1.'],
    ['node untag mini-1 ios', 'POST nodes/mini-1/untag', { tag: 'ios' }, 'Tag ios removed from node mini-1.'],
    [
      'node namespace mini-1 svc-ios',
      'POST nodes/mini-1/namespace',
      { namespace: 'svc-ios' },
      'Node mini-1 moved to namespace svc-ios.',
    ],
    ['node cordon mini-1', 'POST nodes/mini-1/cordon', {}, 'Node mini-1 cordoned: no new VMs are placed on it.'],
    ['node uncordon mini-1', 'POST nodes/mini-1/uncordon', {}, 'Node mini-1 uncordoned.'],
    ['node drain mini-1', 'POST nodes/mini-1/drain', {}, 'Node mini-1 drained.'],
    ['node drain mini-1 --delete-vms', 'POST nodes/mini-1/drain', { deleteVms: true }, 'Node mini-1 drained.'],
  ] as const
  for (const [line, route, body, sentence] of changesOfNodes) {
    it(line, async () => {
      serve(service, { [route]: answers(node) })
      const { exitCode, stdout, stderr } = await svc3(line)
      assert.deepEqual([exitCode, stdout, stderr], [0, `${sentence}\n`, ''])
      assert.deepEqual(asked[0]?.body, body)
      assert.deepEqual(JSON.parse((await svc3(`${line} -o json`)).stdout), [node])
    })
  }

  it('node tag refuses an invalid tag without a request', async () => {
    serve(service, {})
    for (const tag of ['a b'.replace(' ', '/'), 'x'.repeat(64), 'a-']) {
      const { exitCode, stderr } = await svc3(`node tag mini-1 ${tag}`)
      assert.equal(exitCode, 2)
      assert.match(stderr, /Invalid tag /)
    }
  })

  it('node delete removes a node, or shows why not', async () => {
    serve(service, { 'DELETE nodes/mini-1': answers(success('removed', { kind: 'nodes', name: 'mini-1' })) })
    assert.equal((await svc3('node delete mini-1')).stdout, 'Node mini-1 removed from the cluster.\n')
    const refuse = () => {
      throw new ApiError('Conflict', 'VMs are on it', { hint: 'drain it' })
    }
    serve(service, { 'DELETE nodes/mini-1': refuse })
    const refused = await svc3('node delete mini-1')
    assert.deepEqual([refused.exitCode, refused.stderr], [6, 'svc3: VMs are on it\nsvc3: drain it\n'])
  })

  it('node join-token prints the token and nothing else', async () => {
    serve(service, { 'POST jointokens': answers({ token: 'abc.def.ghi', expiresAt: '2026-11-15T12:00:00Z' }) })
    const { stdout, stderr } = await svc3('node join-token --duration 7d')
    assert.deepEqual([stdout, stderr, asked[0]?.body], ['abc.def.ghi\n', '', { duration: '7d' }])
    const [json] = JSON.parse((await svc3('node join-token -o json')).stdout)
    assert.equal(json.expiresAt, '2026-11-15T12:00:00Z')
    assert.equal((await svc3('node join-token --duration soon')).exitCode, 2)
    const seen = await svc3('node join-token', { terminal: { stdout: true } })
    assert.equal(seen.stdout, 'abc.def.ghi\n')
    assert.deepEqual(lines(seen.stderr), [
      'svc3: One host can join with it, until 2026-11-15T12:00:00Z',
      'svc3: On the host: svc3 agent --join-token-stdin, or sudo svc3 agent install --join-token-stdin',
    ])
  })

  it('node list without nodes says on a terminal how to add one', async () => {
    serve(service, { 'GET nodes': () => ({ items: [] }) })
    const { stderr } = await svc3('node list -n svc-ios', { terminal: { stdout: true } })
    assert.equal(stderr, 'svc3: No nodes in svc-ios. To add one: svc3 node join-token -n svc-ios\n')
  })
})

describe('node drain', () => {
  const full = nodeOf({ name: 'mini-1', cordoned: true, vms: ['svc-default/a', 'svc-default/b'] })
  const half = { ...full, vms: ['svc-default/b'] }

  it('node drain names the VMs that are left', async () => {
    serve(service, { 'POST nodes/mini-1/drain': answers(full) })
    const { stdout, stderr } = await svc3('node drain mini-1')
    assert.equal(stdout, 'Node mini-1 cordoned.\n')
    assert.equal(stderr, 'svc3: Still on it: svc-default/a, svc-default/b\n')
  })

  it('node drain --wait watches until the node is empty', async () => {
    serve(service, {
      'POST nodes/mini-1/drain': answers(full),
      'WATCH nodes': (request, response) => {
        asked.push(request)
        changes(
          change('ADDED', full),
          change('MODIFIED', half),
          change('MODIFIED', { ...full, vms: [] }),
        )(request, response)
      },
    })
    const { exitCode, stdout, stderr } = await svc3('node drain mini-1 --wait')
    assert.deepEqual([exitCode, stdout], [0, 'Node mini-1 drained.\n'])
    assert.deepEqual(lines(stderr), [
      'svc3: node mini-1: waiting for svc-default/a, svc-default/b',
      'svc3: node mini-1: waiting for svc-default/b',
    ])
    assert.equal(asked[1]?.query.get('fieldSelector'), 'name=mini-1')
  })

  it('node drain --wait ends when the node is deleted, even if the service no longer has old changes', async () => {
    let connections = 0
    serve(service, {
      'POST nodes/mini-1/drain': answers(full),
      'WATCH nodes': (request, response) => {
        if (request.query.has('resourceVersion')) throw new ApiError('Expired', 'Too old')
        const present = connections++ === 0 ? [change('ADDED', full)] : []
        changes(...present, change('BOOKMARK', { resourceVersion: '1' }))(request, response)
        if (connections === 1) response.end()
      },
    })
    const { exitCode, stdout } = await svc3('node drain mini-1 --wait')
    assert.deepEqual([exitCode, stdout], [0, 'Node mini-1 drained.\n'])
  })

  it('node drain --wait that takes too long exits 7, and rejects a timeout that timers cannot have', async () => {
    serve(service, { 'POST nodes/mini-1/drain': answers(full), 'WATCH nodes': changes(change('ADDED', full)) })
    const { exitCode, stderr } = await svc3('node drain mini-1 --wait --timeout 1s')
    assert.equal(exitCode, 7)
    assert.match(stderr, /svc3: Node mini-1 still has VMs after 1 s\nsvc3: To see the node: svc3 node list mini-1\n$/)
    assert.equal((await svc3('node drain mini-1 --wait --timeout 50000')).exitCode, 2)
  })

  it('vm push --wait says after Ctrl-C how to follow the job', async () => {
    const controller = new AbortController()
    const progress = { bytesDone: 0, bytesTotal: 0, bytesSkipped: 0 }
    const job = { name: 'vm-push-1', status: 'Running', progress, resourceVersion: '1' }
    serve(service, {
      'POST vms/demo/push': () => ({ jobName: job.name }),
      'WATCH pushjobs': changes(change('ADDED', job)),
    })
    const { exitCode, stderr } = await svc3('vm push demo ghcr.io/acme/tiny:1 --wait -n svc-ios', {
      interruption: controller.signal,
      onWrite: ({ stderr }) => stderr.includes('Push vm-push-1: ') && controller.abort(),
    })
    assert.equal(exitCode, 130)
    assert.deepEqual(lines(stderr).slice(-2), [
      'svc3: Stopped waiting; the push continues',
      'svc3: To follow it: svc3 vm get-push-status vm-push-1 -n svc-ios',
    ])
  })

  it('node drain says after Ctrl-C how to check again', async () => {
    const controller = new AbortController()
    serve(service, { 'POST nodes/mini-1/drain': answers(full), 'WATCH nodes': changes(change('ADDED', full)) })
    const { exitCode, stderr } = await svc3('node drain mini-1 --wait -n svc-ios', {
      interruption: controller.signal,
      onWrite: ({ stderr }) => stderr.includes('waiting for') && controller.abort(),
    })
    assert.equal(exitCode, 130)
    assert.match(
      stderr,
      /\nsvc3: Stopped waiting; the drain continues\nsvc3: To see the node: svc3 node list mini-1 -n svc-ios\n$/,
    )
  })
})

describe('image demo', () => {
  const nodes = [nodeOf({ name: 'mini-1' }), nodeOf({ name: 'pc-1', architecture: 'amd64' })]
  const added: Answer = (request) => {
    asked.push(request)
    const { type, image } = request.body as { type: string; image: string }
    return { name: `${image}-${type}` }
  }
  const having = (...names: readonly string[]): void =>
    serve(service, {
      'GET nodes': () => ({ items: nodes }),
      'GET images': () => ({ items: names.map((name) => ({ name })) }),
      'POST images/demo': added,
    })
  beforeEach(() => having())

  it('image demo adds tiny, or the image that is named, for the architectures of the nodes', async () => {
    const { stdout } = await svc3('image demo')
    assert.equal(stdout, 'Added image tiny-amd64 and image tiny-arm64.\n')
    const { stderr } = await svc3('image demo small --type arm64')
    assert.match(stderr, /Deploy a VM: svc3 vm deploy --image small-arm64\n/)
    assert.deepEqual(
      asked.map(({ body }) => body),
      [
        { type: 'amd64', image: 'tiny' },
        { type: 'arm64', image: 'tiny' },
        { type: 'arm64', image: 'small' },
      ],
    )
  })

  it('image demo adds only missing images, and names the others', async () => {
    having('tiny-arm64')
    const one = await svc3('image demo')
    assert.equal(one.stdout, 'Added image tiny-amd64.\n')
    assert.match(one.stderr, /^svc3: Image tiny-arm64 already exists\n/)
    assert.deepEqual(
      asked.splice(0).map(({ body }) => body),
      [{ type: 'amd64', image: 'tiny' }],
    )
    having('tiny-amd64', 'tiny-arm64')
    const { exitCode, stdout, stderr } = await svc3('image demo')
    assert.deepEqual([exitCode, stdout], [0, 'Nothing to add.\n'])
    assert.equal(stderr, 'svc3: Image tiny-amd64 already exists\nsvc3: Image tiny-arm64 already exists\n')
    assert.deepEqual(asked, [])
  })

  it('image demo of an image that is not built in is wrong usage, and nothing is added', async () => {
    const { exitCode, stderr } = await svc3('image demo smal')
    assert.equal(exitCode, 2)
    assert.match(stderr, /"smal" is not one of tiny, small.*small/s)
    assert.deepEqual(asked, [])
  })
})

describe('image list', () => {
  const image: Image = {
    name: 'tiny-arm64',
    description: 'A tiny Linux',
    type: 'arm64',
    os: 'linux',
    size: '1G',
    state: 'Ready',
    owner: 'svc3',
    source: 'built-in',
    sourceType: 'local',
    usedBy: [],
    protected: true,
    lastUpdatedTimestamp: '2026-11-15T09:00:00Z',
    resourceVersion: '7',
  }

  it('image list has the columns that scripts know', async () => {
    serve(service, { 'GET images': answers({ items: [image] }) })
    assert.equal(
      (await svc3('image list')).stdout,
      'NAME\tDESCRIPTION\tSIZE\tTYPE\tSTATE\ntiny-arm64\tA tiny Linux\t1G\tarm64\tReady\n',
    )
    const [header, row] = lines((await svc3('image list tiny-arm64 -o wide')).stdout)
    assert.equal(header?.split('\t').slice(5).join(' '), 'STORAGE-SIZE SOURCE OWNER ERROR OS PROTECTED')
    assert.deepEqual(row?.split('\t').slice(5), ['', 'built-in', 'svc3', '', 'linux', 'yes'])
    assert.equal((await svc3('image list sonoma')).exitCode, 5)
  })

  const around = (images: readonly object[] = []) => ({
    'GET images': answers({ items: images }),
    'GET vmconfigs': answers({ items: [{ name: 'ios-build' }] }),
    'GET pools': answers({
      items: [
        { name: 'warm', config: 'ios-build' },
        { name: 'cold', config: 'other' },
      ],
    }),
  })

  it('image show draws the lineage, and names configurations and pools', async () => {
    const made = (bytesAdded: number) => [{ version: 1, createdAt: '2026-11-15T09:00:00Z', bytesAdded }]
    const mine = { ...image, parent: { image: 'sonoma' }, version: 1, versions: made(2 ** 20) }
    const images = [
      mine,
      { ...image, name: 'sonoma', parent: { image: 'ghcr.io/team/base@sha256:1' }, versions: made(2 ** 30) },
      { ...image, name: 'xcode', parent: { image: 'tiny-arm64' }, versions: made(512 * 2 ** 20) },
    ]
    serve(service, { ...around(images), 'GET images/tiny-arm64': answers(mine) })
    const { stdout } = await svc3('image show tiny-arm64')
    assert.match(stdout, /^Version: +1, adds 1 MiB$/m)
    assert.match(stdout, /^Configurations: +ios-build\nPools: +warm$/m)
    assert.deepEqual(
      lines(stdout.slice(stdout.indexOf('Lineage:') + 'Lineage:'.length)).map((line) => line.trim()),
      [
        'ghcr.io/team/base@sha256:1 (not in the cluster)',
        'sonoma (adds 1 GiB)',
        'tiny-arm64 (this image, adds 1 MiB)',
        'xcode (adds 512 MiB)',
      ],
    )
    assert.ok(asked.some(({ query }) => query.get('fieldSelector') === 'image=tiny-arm64'))
    const record = JSON.parse((await svc3('image show tiny-arm64 -o json')).stdout)
    assert.equal(record.around, undefined)
  })

  it('image show counts the VMs that use it where the caller has no access, and names no owner', async () => {
    serve(service, {
      ...around(),
      'GET images/tiny-arm64': () => ({ ...image, owner: '', usedBy: ['svc-a/demo'], usedElsewhere: 1 }),
    })
    const { stdout } = await svc3('image show tiny-arm64')
    assert.match(stdout, /^Protected: +yes$/m)
    assert.match(stdout, /^Used by: +svc-a\/demo\n +1 VM in another namespace$/m)
    assert.doesNotMatch(stdout, /Owner/)
  })

  it('image restore requires a version and names it; image show lists the versions', async () => {
    const versions = [
      { version: 1, createdAt: '2026-11-15T09:00:00Z' },
      { version: 2, createdAt: '2026-11-15T09:00:00Z', vm: 'svc-a/demo', restorable: true },
      { version: 3, createdAt: '2026-11-15T09:00:00Z' },
    ]
    serve(service, {
      ...around(),
      'GET images/tiny-arm64': () => ({ ...image, version: 3, versions }),
      'POST images/tiny-arm64/restore': answers({ ...image, version: 4 }),
    })
    assert.match(
      (await svc3('image show tiny-arm64')).stdout,
      /^Earlier versions: +2 of svc-a\/demo, restorable\n +1$/m,
    )
    const restored = await svc3('image restore tiny-arm64 --version 2')
    assert.equal(restored.stdout, 'Image tiny-arm64 is at version 4, which is version 2 again.\n')
    assert.deepEqual(asked.at(-1)?.body, { version: 2 })
    for (const words of ['', ' --version 0', ' --version two']) {
      const refused = await svc3(`image restore tiny-arm64${words}`)
      assert.deepEqual([refused.exitCode, /--version/.test(refused.stderr)], [2, true], refused.stderr)
    }
  })

  it('image protect sets and removes the protection', async () => {
    serve(service, { 'POST images/tiny-arm64/protection': answers(image) })
    assert.equal((await svc3('image protect tiny-arm64')).stdout, 'Image tiny-arm64 is protected.\n')
    assert.equal((await svc3('image protect tiny-arm64 --off')).stdout, 'Image tiny-arm64 is no longer protected.\n')
    assert.deepEqual(
      asked.map(({ body }) => body),
      [{ protected: true }, { protected: false }],
    )
  })

  it('an image that will not boot says so in image show and after a pull', async () => {
    const warning = 'The disk has no boot partition'
    const pulled = { ...image, warning }
    serve(service, {
      ...around(),
      'GET images/tiny-arm64': () => pulled,
      'POST remoteimages/tiny/pull': () => ({ ...image, state: 'Updating' }),
      'WATCH images': changes(change('ADDED', pulled), change('BOOKMARK', { resourceVersion: '7' })),
    })
    assert.match((await svc3('image show tiny-arm64')).stdout, /^Warning: +The disk has no boot partition$/m)
    const { exitCode, stderr } = await svc3('remote-image pull tiny --wait')
    assert.deepEqual([exitCode, lines(stderr).at(-1)], [0, `svc3: ${warning}`])
  })

  it('vm save and vm commit say at once that memory will not be saved, before they wait', async () => {
    const memory = { saved: false, reason: 'an ISO is in its drive' }
    const note =
      'svc3: The memory of VM demo will not be saved: an ISO is in its drive. VMs deployed from the image boot from its disk'
    const answer = { ...image, memory }
    const watch = {
      'GET images/tiny-arm64': () => image,
      'WATCH images': changes(change('ADDED', image), change('BOOKMARK', { resourceVersion: '7' })),
      'GET images': () => ({ items: [image] }),
    }
    serve(service, { 'POST vms/demo/save': () => answer, 'POST vms/demo/commit': () => answer, ...watch })
    for (const line of ['vm save demo tiny', 'vm commit demo', 'vm save demo tiny --wait']) {
      const { exitCode, stderr } = await svc3(line)
      assert.deepEqual([exitCode, lines(stderr)[0]], [0, note], line)
    }
    serve(service, { 'POST vms/demo/save': () => ({ ...image, memory: { saved: true } }) })
    assert.doesNotMatch((await svc3('vm save demo tiny')).stderr, /memory/)
  })

  it('lines to copy lead to the same place, by the name that the program was called by', async () => {
    serve(service, {
      'GET images': () => ({ items: [] }),
      'POST images/demo': () => image,
      'POST remoteimages/tiny/pull': () => image,
      'POST vms/demo/save': () => image,
    })
    const ends: Readonly<Record<string, string>> = {
      'image demo --type arm64': 'orka3: Deploy a VM: orka3 vm deploy --image tiny-arm64 -n svc-ios',
      'remote-image pull tiny':
        'Pulling image tiny-arm64. Run orka3 image list tiny-arm64 -n svc-ios to see the progress.',
      'vm save demo tiny': 'Saving VM demo as image tiny-arm64. To follow it: orka3 image list tiny-arm64 -n svc-ios',
    }
    for (const [line, end] of Object.entries(ends)) {
      const { stdout, stderr } = await svc3(`${line} -n svc-ios`, { calledAs: 'orka3' })
      assert.equal(lines(stdout + stderr).at(-1), end)
    }
  })
})

describe('vm-config', () => {
  const config: VmConfig = {
    name: 'ios-build',
    namespace: 'svc-default',
    image: 'sonoma',
    type: 'arm64',
    cpu: 4,
    memory: 0,
    vncConsole: true,
    ...machineDefaults,
    tagRequired: false,
    scheduler: 'default',
    displayWidth: 1920,
    displayHeight: 1080,
    displayDPI: 96,
    owner: 'ada@example.com',
    createdAt: '2026-11-15T09:00:00Z',
    resourceVersion: '40',
  }

  it('vm-config create sends the options', async () => {
    serve(service, { 'POST vmconfigs': answers(config) })
    const { stdout } = await svc3('vmc create ios-build -i sonoma -c 4 -m 8 --tag ios --tag-required --disable-vnc')
    assert.equal(stdout, 'VM configuration ios-build created in svc-default.\n')
    const wanted = { name: 'ios-build', image: 'sonoma', cpu: 4, memory: 8, tag: 'ios', tagRequired: true }
    assert.deepEqual(asked[0]?.body, { ...wanted, vncConsole: false })
  })

  it('vm-config update keeps other fields, resets the named ones, and fails if the record has changed', async () => {
    const tagged = { ...config, tag: 'ios', tagRequired: true, memory: 8, vncConsole: false }
    serve(service, { 'GET vmconfigs/ios-build': answers(tagged), 'PUT vmconfigs/ios-build': answers(config) })
    const { stdout, stderr } = await svc3(
      'vm-config update ios-build -i sequoia -c 6 --reset tag,tag-required --reset disable-vnc',
    )
    assert.equal(stdout, 'VM configuration ios-build changed in svc-default.\n', stderr)
    assert.deepEqual(asked.at(-1)?.body, {
      ...machineDefaults,
      image: 'sequoia',
      cpu: 6,
      memory: 8,
      scheduler: 'default',
      displayWidth: 1920,
      displayHeight: 1080,
      displayDPI: 96,
      resourceVersion: '40',
    })
  })

  const slips = {
    'vm-config update ios-build': /Nothing to change/,
    'vm-config update ios-build --reset colour': /Invalid --reset "colour"/,
    'vm-config create ios-build': /Specify --image IMAGE/,
    'vm-config create Ios -i x': /Invalid name "Ios"/,
    [`vm-config create ${'a'.repeat(51)} -i x`]: /Invalid name/,
    'vm-config create ios -i x --tag-required': /--tag-required requires --tag/,
    'vm-config create ios -i x --ports 1:2': /Unknown option --ports/,
  }
  for (const [line, text] of Object.entries(slips)) {
    it(`${line.slice(0, 50)} is wrong usage`, async () => {
      const { exitCode, stderr } = await svc3(line)
      assert.equal(exitCode, 2)
      assert.match(stderr, text)
    })
  }

  it('vm-config list has the columns that scripts know', async () => {
    serve(service, { 'GET vmconfigs': answers({ items: [config] }) })
    assert.equal((await svc3('vm-config list')).stdout, 'NAME\tIMAGE\tCPU\tMEMORY\nios-build\tsonoma\t4\tauto\n')
    const [header, row] = lines((await svc3('vmc list ios-build -o wide')).stdout)
    assert.equal(
      header?.split('\t').slice(4).join(' '),
      'ISO VNC SCHEDULER TAG TAG-REQUIRED NODE GPU NET-BOOST SERIAL OWNER DISPLAY-WIDTH DISPLAY-HEIGHT DISPLAY-DPI',
    )
    assert.equal(row?.split('\t').slice(-4).join(' '), 'ada@example.com 1920 1080 96')
  })

  it('vm-config delete takes several', async () => {
    serve(service, { 'DELETE vmconfigs/a': answers(success('deleted', { kind: 'vmconfigs', name: 'a' })) })
    const { exitCode, stdout } = await svc3('vm-config delete a b')
    assert.deepEqual([exitCode, stdout], [5, 'Successfully deleted vm config a\n'])
  })
})

it('events --for knows the new kinds', async () => {
  serve(service, { 'GET events': answers({ items: [] }) })
  for (const what of ['vm/demo', 'node/mini-1', 'vm-config/ios', 'image/tiny', 'pushjob/vm-push-4k2vx'])
    await svc3(`events --for ${what}`)
  assert.deepEqual(
    asked.map(({ query }) => query.get('fieldSelector')?.split(',')[0]),
    ['vms', 'nodes', 'vm-configs', 'images', 'push-jobs'].map((kind) => `involved.kind=${kind}`),
  )
})

it('events have their messages last, cut to the line but not with -o wide, and NAMESPACE where there are several', async () => {
  const about = {
    reason: 'DeployVm',
    namespace: 'svc-default',
    involved: { kind: 'vms', name: 'demo' },
    actor: 'admin',
    at: '2026-11-15T09:00:00Z',
  }
  const items = [
    { ...about, message: 'admin requested VM demo' },
    { ...about, message: 'x'.repeat(500) },
  ]
  serve(service, { 'GET events': answers({ items }) })
  const headers = async (options: FakeHostOptions): Promise<string> =>
    lines((await svc3('events', options)).stdout)[0]
      ?.match(/[A-Z]{2,}/g)
      ?.join(' ') ?? ''
  const terminal = { stdout: true }
  assert.equal(await headers({ terminal, columns: 120 }), 'AT REASON INVOLVED ACTOR MESSAGE')
  assert.equal(await headers({ terminal, columns: 80 }), 'AT REASON INVOLVED ACTOR MESSAGE')
  assert.equal(await headers({}), 'AT REASON INVOLVED ACTOR MESSAGE')
  const longest = async (line: string): Promise<number> =>
    Math.max(...lines((await svc3(line, { terminal, columns: 120 })).stdout).map(({ length }) => length))
  assert.ok((await longest('events')) <= 120)
  assert.ok((await longest('events -o wide')) > 500)
  serve(service, { 'GET events': answers({ items: [...items, { ...about, namespace: 'svc-ios', message: 'x' }] }) })
  assert.equal(await headers({ terminal, columns: 120 }), 'AT REASON INVOLVED ACTOR NAMESPACE MESSAGE')
  assert.equal(await headers({}), 'AT REASON INVOLVED ACTOR MESSAGE')
})

it('events --watch resumes when the service no longer has old changes, and shows no event twice', async () => {
  const event = (name: string) => ({ name, involved: { kind: 'vms', name }, resourceVersion: '1' })
  const controller = new AbortController()
  let connections = 0
  serve(service, {
    'WATCH events': (request, response) => {
      if (request.query.has('resourceVersion')) throw new ApiError('Expired', 'Too old')
      const names = connections++ === 0 ? ['a', 'b'] : ['b', 'c']
      const present = names.map((name) => change('ADDED', event(name)))
      changes(...present, change('BOOKMARK', { resourceVersion: '1' }))(request, response)
      if (connections === 1) response.end()
    },
  })
  const { exitCode, stdout } = await svc3('events --watch -o json', {
    interruption: controller.signal,
    onWrite: ({ stdout }) => stdout.includes('"c"') && controller.abort(),
  })
  assert.equal(exitCode, 130)
  assert.deepEqual(
    lines(stdout).map((line) => JSON.parse(line).name),
    ['a', 'b', 'c'],
  )
})

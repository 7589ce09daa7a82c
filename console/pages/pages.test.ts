// The models of the pages: filters, forms, reasons, lineage, amounts.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Image } from '../../src/api/images/images.ts'
import { operations } from '../../src/api/index.ts'
import type { Node } from '../../src/api/nodes/nodes.ts'
import type { Event } from '../../src/api/service/events.ts'
import type { Pool } from '../../src/api/vms/pools.ts'
import type { PushJob } from '../../src/api/vms/push-jobs.ts'
import type { Quota } from '../../src/api/vms/quotas.ts'
import type { RunnerJob, RunnerPool } from '../../src/api/vms/runner-pools.ts'
import type { Vm } from '../../src/api/vms/vms.ts'
import { lineageOf } from '../../src/client/image-lineage.ts'
import { longSize } from '../../src/rules/sizes.ts'
import { ago, span, took } from '../ui/time-words.ts'
import { parseAccounts, parseNames } from './access/subjects.ts'
import {
  allRanges,
  dayRanges,
  formats,
  latestOf,
  rangeFrom,
  rangeOf,
  timeTicks,
  topOf,
  zoneText,
} from './charts/model.ts'
import { find, findAll } from './find.ts'
import { addedText, branchesOf, imagePathOf, originOf } from './images/lineage.ts'
import { reasonAgainstChanging as reasonAgainstChangingAnImage } from './images/model.ts'
import { blocksOf, capacityOf, joinLine } from './nodes/model.ts'
import { isOwn } from './own-events.ts'
import { imagePath, vmPath } from './paths.ts'
import { badLine, formOf, hitPercent, poolSettings, stateOf } from './pools/model.ts'
import { limitsBody, limitsOf, quotaState, usedText } from './pools/quota-model.ts'
import { jobState, jobsOf, stateOf as runnerPoolState, waitOf } from './runner-pools/model.ts'
import { capacityBy, concernsOf, inNaturalOrder, loadOf } from './service/fleet.ts'
import { replacementFor } from './service/legacy-advice.ts'
import { jsonLines, usageTotals, withinOf, workOf } from './service/model.ts'
import { deploymentOf, emptyForm, faultsOf } from './vms/deploy-form.ts'
import {
  conditionText,
  hasOtherStatus,
  imagesOf,
  keysymOf,
  labelChanges,
  labelFault,
  memoryText,
  otherConditions,
  reasonAgainst,
  reasonAgainstDeleting,
  reasonAgainstScreen,
  sshCommand,
  timelineOf,
  waitingReason,
} from './vms/model.ts'

const vm: Vm = { ...(operations.getVm.example.response as unknown as Vm), architecture: 'amd64' }
const image = operations.getImage.example.response as unknown as Image
const node = operations.listNodes.example.response.items[0] as unknown as Node

describe('the overview of a fleet', () => {
  const nowMs = Date.parse('2026-11-17T12:00:00Z')
  const calm = { vms: [], nodes: [], pools: [] }
  const { node: _, ...unplaced } = vm
  const waits = (name: string, deployDate: string, message: string): Vm => ({
    ...unplaced,
    name,
    deployDate,
    powerState: 'pending',
    conditions: [{ type: 'Scheduled', status: 'False', reason: 'NoNode', message, at: deployDate }],
  })

  it('the overview lists a few failures individually and many as a count', () => {
    assert.deepEqual(concernsOf({ ...calm, vms: [vm], nodes: [node] }, nowMs), [])
    const lost = { ...node, name: 'mac-7', phase: 'NOT READY', lastSeenAt: '2026-11-17T11:00:00Z' } as const
    const failed = Array.from({ length: 4 }, (_, index) => ({ ...vm, name: `vm-${index}`, powerState: 'failed' }) as Vm)
    const concerns = concernsOf({ ...calm, vms: failed, nodes: [node, lost] }, nowMs)
    assert.deepEqual(
      concerns.map(({ text, path, tone }) => [text, path, tone]),
      [
        ['Node mac-7 is not connected', `/nodes/${node.namespace}/mac-7`, 'bad'],
        ['4 VMs failed', '/vms?state=failed', 'bad'],
      ],
    )
    assert.equal(concerns[0]?.since, '2026-11-17T11:00:00Z')
  })

  it('the overview groups VMs pending for a minute by reason, and lists pools that lack VMs', () => {
    const pool = operations.getPool.example.response as unknown as Pool
    const vms = [
      waits('a', '2026-11-17T11:50:00Z', 'No node has 12 cores'),
      waits('b', '2026-11-17T11:40:00Z', 'No node has 12 cores'),
      waits('c', '2026-11-17T11:55:00Z', 'Over quota'),
      waits('d', '2026-11-17T11:59:30Z', 'Over quota'),
    ]
    const short = { ...pool, name: 'ci', ready: 1, minIdleNow: 4, reason: 'No node is free' }
    const pools = [short, { ...short, name: 'nightly', paused: true }]
    assert.deepEqual(
      concernsOf({ ...calm, vms, pools }, nowMs).map(({ text, cause, since }) => [text, cause, since]),
      [
        ['2 VMs pending', 'No node has 12 cores', '2026-11-17T11:40:00Z'],
        ['1 VM pending', 'Over quota', '2026-11-17T11:55:00Z'],
        ['Pool ci has 1 of 4 warm VMs', 'No node is free', undefined],
      ],
    )
  })

  it('the overview warns of disks that are nearly full and of a certificate that expires soon', () => {
    const told = (part: object): unknown[] =>
      concernsOf({ ...calm, ...part }, nowMs).map(({ text, tone }) => [text, tone])
    assert.deepEqual(told({ nodes: [{ ...node, name: 'mac-1', diskFreeGb: 12 }, { ...node, diskFreeGb: 20 }, node] }), [
      ['Node mac-1 has 12 GiB of disk left', 'warn'],
    ])
    const many = Array.from({ length: 4 }, (_, index) => ({ ...node, name: `mac-${index}`, diskFreeGb: index }))
    assert.deepEqual(told({ nodes: many }), [['4 nodes have less than 20 GiB of disk left', 'warn']])
    const certificate = (notAfter: string, selfSigned = false) => told({ certificate: { notAfter, selfSigned } })
    assert.deepEqual(certificate('2026-12-18T12:00:00Z'), [])
    assert.deepEqual(certificate('2026-12-01T12:00:00Z'), [['The HTTPS certificate expires in 14 days', 'warn']])
    assert.deepEqual(certificate('2026-11-18T13:00:00Z'), [['The HTTPS certificate expires in 1 day', 'bad']])
    assert.deepEqual(certificate('2026-11-17T11:00:00Z'), [['The HTTPS certificate has expired', 'bad']])
    assert.deepEqual(certificate('2026-11-17T11:00:00Z', true), [])
  })

  it('the overview sums the free capacity of schedulable nodes and names the largest VM that fits', () => {
    const mac = (part: Partial<Node>): Node => ({
      ...node,
      vms: [],
      allocatableCpu: 8,
      availableCpu: 8,
      allocatableMemory: '16.00G',
      availableMemory: '16.00G',
      ...part,
    })
    const nodes = [
      mac({ availableCpu: 5, availableMemory: '11.20G' }),
      mac({ availableCpu: 5, availableMemory: '12.00G' }),
      mac({ cordoned: true }),
      mac({ phase: 'NOT READY' }),
      mac({ vms: ['x/a', 'x/b'], maxVms: 2 }),
      mac({ architecture: 'amd64', availableCpu: 0 }),
    ]
    assert.deepEqual(
      capacityBy('architecture', nodes).map(({ name, ready, nodes: all, freeCores, cores, largest }) => [
        name,
        ready,
        all,
        freeCores,
        cores,
        largest,
      ]),
      [
        ['amd64', 1, 1, 0, 8, undefined],
        ['arm64', 4, 5, 10, 40, { cores: 5, gib: 12 }],
      ],
    )
    const apart = [mac({ namespace: 'svc-a' }), mac({ namespace: 'svc-b' }), mac({ namespace: 'svc-a' })]
    assert.deepEqual(
      capacityBy('namespace', apart).map(({ name, nodes: all }) => [name, all]),
      [
        ['svc-a', 2],
        ['svc-b', 1],
      ],
    )
    assert.equal(loadOf(mac({ availableCpu: 6, availableMemory: '4.00G' })), 75)
    const named = ['mac-10', 'mac-9', 'mac-2'].map((name) => mac({ name }))
    assert.deepEqual(
      inNaturalOrder(named).map(({ name }) => name),
      ['mac-2', 'mac-9', 'mac-10'],
    )
  })
})

describe('the finder', () => {
  const entry = (name: string, detail?: string) => ({ key: name, kind: 'VM', name, detail, path: `/${name}` })
  const entries = ['web-10', 'web-2', 'web', 'api-web', 'Überall'].map((name) => entry(name)).concat(entry('ci', 'web'))
  const names = (typed: string): string[] => find(entries, typed).map(({ name }) => name)

  it('the finder ranks exact names first, then prefixes, then other matches', () => {
    assert.deepEqual(names('WEB'), ['web', 'web-2', 'web-10', 'api-web', 'ci'])
    assert.deepEqual(names('vm api'), ['api-web'])
    assert.deepEqual(names('über'), ['Überall'])
    assert.deepEqual(names('nothing'), [])
  })

  it('the finder lists a limited number of actions and pages before anything is typed', () => {
    assert.deepEqual(names(' ')[0], 'web-10')
    assert.equal(
      find(
        Array.from({ length: 100 }, (_, index) => entry(`vm-${index}`)),
        'vm',
      ).length,
      12,
    )
  })

  const acted = (name: string, ...items: (string | [label: string, reason: string])[]) => ({
    ...entry(name, 'svc-a'),
    actions: () =>
      items.map((each) => (typeof each === 'string' ? { label: each } : { label: each[0], reason: each[1] })),
  })
  const fleet = [
    ...entries,
    acted('build', ['Start', 'Already running'], 'Stop', 'Save as image'),
    acted('build-2', ['Stop', 'Not running'], 'Start'),
    acted('mac-1', 'Cordon'),
  ]
  const actions = (typed: string, here = '/') => findAll(fleet, typed, here).map(({ name }) => name)

  it('the finder matches an action and its object in either order', () => {
    assert.deepEqual(actions('stop build'), ['Stop: build', 'Stop: build-2'])
    assert.deepEqual(actions('build-2 sta'), ['Start: build-2'])
    assert.deepEqual(actions('save the build'), ['Save as image: build'])
    assert.deepEqual(actions('cordon vm mac-1'), ['Cordon: mac-1'])
    assert.deepEqual(actions('stop'), [])
    assert.deepEqual(actions('explode build'), [])
    const [, refused] = findAll(fleet, 'stop build', '/')
    assert.deepEqual([refused?.detail, refused?.item?.reason], ['Not running', 'Not running'])
  })

  it('the finder offers the actions of the object whose page is open', () => {
    assert.deepEqual(actions('', '/build').slice(0, 3), ['Stop: build', 'Save as image: build', 'web-10'])
    assert.deepEqual(actions('st', '/build'), ['Stop: build', 'Start: build'])
    // A better match of a name ranks above an action.
    assert.equal(actions('web', '/build')[0], 'web')
  })
})

describe('pools', () => {
  const pool = operations.getPool.example.response as unknown as Pool
  it('a pool is full, filling, short or paused', () => {
    const word = (part: Partial<Pool>): string => stateOf({ ...pool, minIdleNow: 2, ...part }).word
    assert.equal(word({ ready: 2 }), 'Full')
    assert.equal(word({ ready: 1, starting: 1 }), 'Filling')
    assert.equal(word({ ready: 1, starting: 0 }), 'Not full')
    assert.equal(word({ ready: 2, paused: true }), 'Paused')
    assert.equal(hitPercent({ ...pool, hits: 0, misses: 0 }), undefined)
    assert.equal(hitPercent({ ...pool, hits: 3, misses: 1 }), 75)
  })

  it('the form of a pool sends only changed settings and rejects invalid schedules', () => {
    const before = formOf(pool)
    assert.deepEqual(poolSettings(before, before), {})
    assert.deepEqual(poolSettings({ ...before, minIdle: '0', schedule: '' }, before), { minIdle: 0, schedule: [] })
    const schedule = `${before.schedule}\n\n 0 19 * * *=0 `
    assert.deepEqual(poolSettings({ ...before, schedule }, before), {
      schedule: [...pool.schedule, { cron: '0 19 * * *', minIdle: 0 }],
    })
    assert.equal(badLine({ ...before, schedule }), undefined)
    assert.equal(badLine({ ...before, schedule: 'at night' }), 'at night')
  })
})

describe('the quota of a namespace', () => {
  const quota = operations.getQuota.example.response as unknown as Quota

  it('the state of a quota: room left, full, VMs waiting, no limits', () => {
    const word = (part: Partial<Quota>): string => quotaState({ ...quota, ...part }).word
    const [owner] = quota.owners
    assert.ok(owner)
    const used = { ...quota.used, vms: 20 }
    assert.deepEqual(
      [
        word({}),
        word({ used }),
        word({ used, owners: [{ ...owner, waiting: 2 }] }),
        word({ limits: { records: 9, recordSize: 1 } }),
      ],
      ['Room left', 'Full', 'VMs waiting', 'No limits'],
    )
    assert.deepEqual([usedText('cpu', quota), usedText('memory', quota)], ['4 of 80', '8 GiB'])
  })

  it('the form of a quota sends only changed limits and removes emptied ones', () => {
    const before = limitsOf(quota)
    assert.deepEqual(limitsBody(before, before), {})
    assert.deepEqual(limitsBody({ ...before, vms: '0', cpu: ' ', memory: '1.5' }, before), {
      vms: 0,
      memory: 1.5,
      unlimited: ['cpu'],
    })
  })
})

describe('runner pools', () => {
  const pool = operations.getRunnerPool.example.response as unknown as RunnerPool
  const job = operations.listRunnerJobs.example.response.items[0] as unknown as RunnerJob
  it('the state of a runner pool follows its condition; unintended reasons are errors', () => {
    const state = (reason: string) => runnerPoolState({ ...pool, condition: { ...pool.condition, reason } }).tone
    assert.deepEqual(['Ready', 'Paused', 'Connecting', 'Unauthorized', 'RunnersFail'].map(state), ['good', 'idle', 'busy', 'bad', 'bad']) // biome-ignore format: one line
  })

  it('running jobs come first, then queued ones, each with its queue time', () => {
    const jobs = [
      { ...job, id: 'done', state: 'Completed' as const, result: 'succeeded' },
      { ...job, id: 'waits', state: 'Waiting' as const, queuedAt: '2026-11-17T09:00:01Z' },
      { ...job, id: 'runs' },
      { ...job, id: 'later', queuedAt: '2026-11-17T09:00:05Z' },
      { ...job, id: 'other', pool: 'other' },
    ]
    assert.deepEqual(jobsOf(jobs, 'ios').map(({ id }) => id), ['later', 'runs', 'waits', 'done']) // biome-ignore format: one line
    assert.equal(waitOf(job), 21)
    assert.deepEqual(['succeeded', 'failed', 'canceled'].map((result) => jobState({ ...job, state: 'Completed', result }).tone), ['good', 'bad', 'idle']) // biome-ignore format: one line
  })
})

describe('VMs', () => {
  it('typed label changes of several VMs are parsed and validated', () => {
    assert.deepEqual(labelChanges('team=ios, tier-, note=a=b'), [
      { name: 'team', value: 'ios' },
      { name: 'tier' },
      { name: 'note', value: 'a=b' },
    ])
    assert.deepEqual(['team=ios', 'team-', 'a, b=c', '', ' , ', '=x', '-'].map((typed) => labelFault(typed) === undefined), [true, true, false, false, false, false, false]) // biome-ignore format: one line
  })

  it('unavailable actions of a VM show the message of the service', () => {
    assert.equal(reasonAgainst('stop', vm), undefined)
    assert.match(reasonAgainst('start', vm) ?? '', /already running/)
    assert.match(reasonAgainst('push', vm) ?? '', /Apple silicon/)
    assert.match(reasonAgainst('stop', { ...vm, operation: { kind: 'revert', phase: 'x' } }) ?? '', /revert/)
    assert.equal(reasonAgainst('stop', { ...vm, operation: { kind: 'save', phase: 'x' } }), undefined)
    assert.equal(reasonAgainstDeleting('ada', { name: 'ada', admin: false }), undefined)
    assert.match(reasonAgainstDeleting('ada', { name: 'bob', admin: false }) ?? '', /Only ada/)
    assert.equal(reasonAgainstDeleting('ada', { name: 'bob', admin: true }), undefined)
    assert.match(reasonAgainstScreen({ ...vm, powerState: 'stopped' }) ?? '', /stopped/)
  })

  it('a pending VM shows why it is pending', () => {
    const message = 'No node has 12 cores free: 2 arm64 nodes have at most 11'
    const condition = { type: 'Scheduled', status: 'False', reason: 'x', message, at: '' } as const
    assert.equal(waitingReason({ ...vm, conditions: [condition] }), message)
    assert.equal(waitingReason(vm), undefined)
    const booted = { ...condition, type: 'Booted' } as const
    const pending: Vm = { ...vm, powerState: 'pending', conditions: [condition, booted] }
    assert.deepEqual(otherConditions(pending), [booted])
    assert.deepEqual(otherConditions({ ...pending, powerState: 'running' }), [condition, booted])
  })

  it('whether a guest can be reached has words in the list of conditions', () => {
    assert.deepEqual([true, false].map((is) => conditionText('GuestReachable', is)), ['Reachable', 'Not reachable']) // biome-ignore format: one line
  })

  it('a VM shows the command for SSH', () => {
    assert.equal(sshCommand({ namespace: 'svc-default', name: 'demo' }), 'svc3 vm ssh demo')
    assert.equal(sshCommand({ namespace: 'svc-ios', name: 'demo' }), 'svc3 vm ssh demo -n svc-ios')
  })

  it('a stopped VM shows its power state beside the status Running, and memory in GiB', () => {
    assert.ok(hasOtherStatus({ ...vm, status: 'Running', powerState: 'stopped' }))
    assert.ok(!hasOtherStatus({ ...vm, status: 'Running', powerState: 'running' }))
    assert.deepEqual(['4.80Gi', '0.50Gi', 'auto'].map(memoryText), ['4.8 GiB', '512 MiB', 'Automatic'])
    assert.deepEqual(['412M', '1G', '12'].map(longSize), ['412 MiB', '1 GiB', '12 B'])
  })
})

describe('the deployment form', () => {
  it('the deployment form requires an image or a configuration and names invalid fields', () => {
    assert.deepEqual(Object.keys(faultsOf(emptyForm)), ['image'])
    const wrong = {
      ...emptyForm,
      image: 'a',
      name: 'Not OK',
      cpu: 'x',
      memory: '1.23',
      ttl: 'soon',
      reservedPorts: '1:1',
      labels: 'a',
    }
    assert.deepEqual(Object.keys(faultsOf(wrong)).sort(), ['cpu', 'labels', 'memory', 'name', 'reservedPorts', 'ttl'])
    assert.deepEqual(faultsOf({ ...emptyForm, vmConfig: 'ios' }), {})
  })

  it('the deployment form sends only what was filled in', () => {
    assert.deepEqual(deploymentOf({ ...emptyForm, image: ' sonoma ' }), {
      name: 'vm',
      shouldGenerateName: true,
      image: 'sonoma',
    })
    const form = {
      ...emptyForm,
      name: 'demo',
      image: 'x',
      cpu: '4',
      memory: '4.8',
      noScreen: true,
      labels: 'a=b, c=d=e',
      userdata: 'é',
    }
    assert.deepEqual(deploymentOf(form), {
      name: 'demo',
      image: 'x',
      cpu: 4,
      memory: 4.8,
      vncConsole: false,
      labels: { a: 'b', c: 'd=e' },
      userdata: Buffer.from('é').toString('base64'),
    })
    const long = 'x'.repeat(256 * 1024)
    assert.equal(deploymentOf({ ...form, userdata: long }).userdata, Buffer.from(long).toString('base64'))
  })
})

describe('figures', () => {
  it('the capacity of a node shows the used share', () => {
    const { cores, memory } = capacityOf(node)
    assert.deepEqual([cores.used, cores.whole, memory.text], [3, 8, '4.8 of 16 GiB used'])
  })

  it('the blocks of a node are sorted by cores and include VMs that the user cannot see', () => {
    const full = { ...node, vms: [`${vm.namespace}/${vm.name}`, 'other/secret', 'svc-default/big'], availableCpu: 2 }
    const { blocks, freeCores } = blocksOf(full, [vm, { ...vm, name: 'big', namespace: 'svc-default', cpu: 12 }])
    assert.deepEqual(
      blocks.map(({ name, cores }) => [name, cores]),
      [
        ['big', 12],
        [vm.name, vm.cpu],
        ['secret', 1],
      ],
    )
    assert.equal(freeCores, 2)
  })

  it('active tasks list VMs, images and pushes with their progress', () => {
    const busy = { ...vm, operation: { kind: 'save', phase: 'packing', percent: 40 } }
    const updating: Image = { ...image, state: 'Updating', progress: { percent: 3, bytes: 9 } }
    const job = operations.getPushJob.example.response as never
    const work = workOf([vm, busy], [image, updating], [job])
    assert.deepEqual(
      work.map(({ percent }) => percent),
      [40, 3, 62],
    )
    const waiting = { reason: 'https://ghcr.io/v2/: connection refused', nextTryAt: '2026-11-15T09:00:30Z' }
    const [stuck] = workOf([], [], [{ ...(job as PushJob), waiting }])
    assert.equal(stuck?.what, 'Pushing: Waiting for the registry: https://ghcr.io/v2/: connection refused')
  })

  it('the images of a VM are the ones saved, committed or being captured from it', () => {
    const full = `${vm.namespace}/${vm.name}`
    const images: Image[] = [
      image,
      { ...image, name: 'saved', parent: { image: image.name, vm: full } },
      { ...image, name: 'committed', versions: [{ version: 2, createdAt: image.lastUpdatedTimestamp, vm: full }] },
      { ...image, name: 'on-its-way', state: 'Updating', capture: { kind: 'commit', vm: full } },
    ]
    assert.deepEqual(
      imagesOf(vm, images).map(({ name }) => name),
      ['saved', 'committed', 'on-its-way'],
    )
  })

  it('events are filtered by hour, day and week, and exported as JSON lines', () => {
    const nowMs = Date.parse('2026-11-17T12:00:00Z')
    assert.deepEqual(withinOf('2026-11-17T11:30:00Z', nowMs), ['1h', '24h', '7d'])
    assert.deepEqual(withinOf('2026-11-15T11:30:00Z', nowMs), ['7d'])
    assert.equal(jsonLines([{ a: 'x\ny' }, 1]), '{"a":"x\\ny"}\n1\n')
  })

  it('usage is summed over days and owners', () => {
    const row = operations.listUsage.example.response.items[0]
    const { vms, coreHours } = usageTotals([row, { ...row, owner: 'bob', vms: 1, coreHours: 0.5 }])
    assert.deepEqual([vms, coreHours], [13, 82.5])
  })

  it('a timeline has each finished step with its duration, and the step that the VM waits for', () => {
    const timeline = {
      requestedAt: '2026-11-17T12:00:00.100Z',
      placedAt: '2026-11-17T12:00:00.440Z',
      startedAt: '2026-11-17T12:01:12.440Z',
    }
    const nowMs = Date.parse('2026-11-17T12:01:15.440Z')
    const shown = (of: Vm) =>
      timelineOf(of, nowMs).map(({ step, tookMs = 0, isOpen }) => [step, took(tookMs / 1_000), isOpen])
    const running: Vm = { ...vm, powerState: 'running', timeline }
    assert.deepEqual(shown(running), [
      ['requested', '0 s', false],
      ['placed', '340 ms', false],
      ['started', '1 min 12 s', false],
      ['booted', '3 s', true],
    ])
    assert.equal(shown({ ...running, warm: 'ci' })[1]?.[0], 'claimed')
    assert.equal(shown({ ...running, powerState: 'stopped' }).length, 3)
    const { timeline: _, ...old } = running
    assert.deepEqual(shown(old), [['requested', '0 s', false]])
  })

  it('events of an earlier VM of the same name are excluded', () => {
    const event = operations.listEvents.example.response.items[0] as Event
    const of = (uid: string | undefined, at = event.at): Event => ({
      ...event,
      involved: { kind: 'vms', name: 'a', ...(uid !== undefined && { uid }) },
      at,
    })
    const shown = [of('new'), of('old'), of(undefined, '2026-11-17T12:00:01Z'), of(undefined, '2026-11-17T11:59:59Z')]
    assert.deepEqual(
      shown.map((each) => isOwn(each, 'new', '2026-11-17T12:00:00Z')),
      [true, false, true, false],
    )
  })

  it('durations, times and measured values are formatted with units', () => {
    assert.deepEqual([span(5), span(600), span(7_200), span(400_000)], ['5 s', '10 min', '2 h', '5 d'])
    assert.equal(ago('2026-01-01T00:00:00Z', Date.parse('2026-01-01T00:01:00Z')), '60 s ago')
    assert.equal(ago('2026-01-01T00:10:00Z', Date.parse('2026-01-01T00:00:00Z')), 'in 10 min')
    assert.deepEqual([formats.s(0.0123), formats.s(2.5), formats['B/s'](2_048)], ['12 ms', '2.5 s', '2 KiB/s'])
    assert.deepEqual([0, 0.0000894, 0.001, 0.34, 0.9996, 9.94, 9.96, 59.6, 72, 120, 11_100, 7_200].map(took), [
      '0 s',
      '< 1 ms',
      '1 ms',
      '340 ms',
      '1 s',
      '9.9 s',
      '10 s',
      '1 min',
      '1 min 12 s',
      '2 min',
      '3 h 5 min',
      '2 h',
    ])
    assert.deepEqual([latestOf([1, 2, null]), latestOf([null])], [2, undefined])
    assert.deepEqual([formats['%'](0.123), formats['%'](99.96), formats.B(2_048)], ['0.12 %', '100 %', '2 KiB'])
    assert.deepEqual([rangeOf([null, 3, 1]), rangeOf([null])], [{ low: 1, high: 3 }, undefined])
    assert.deepEqual(
      [rangeFrom('6h', allRanges), rangeFrom('7d', dayRanges), rangeFrom(null, allRanges)],
      [360, 1_440, 1_440],
    )
    const day = new Date('2026-11-17T12:00:00Z')
    const midnight = Date.parse('2026-11-17T00:00:00Z') / 1_000
    assert.deepEqual(timeTicks([midnight, midnight + 3_600], 3_600, 'UTC'), ['17 Nov', '01:00'])
    assert.deepEqual(timeTicks([midnight + 10], 10, 'UTC'), ['00:00:10'])
    assert.deepEqual([topOf('%', 3), topOf('s', 10), topOf('s', 0.0001), topOf('B', 0)], [100, 11, 0.001, 1])
    assert.deepEqual([zoneText(day, 'Europe/Berlin'), zoneText(day, 'UTC')], ['Europe/Berlin (UTC+1)', 'UTC'])
  })
})

describe('pages of images', () => {
  const { parent: _, ...plain } = { ...image, usedBy: [] as string[] }
  const version = (bytesAdded: number) => [{ version: 1, createdAt: '', bytesAdded }]
  const origin: Image = { ...plain, name: 'sonoma', source: 'lab', sourceType: 'remote', versions: version(2 ** 30) }
  const parent = { image: 'sonoma', version: 2, vm: 'svc-a/gone' }
  const saved: Image = { ...plain, name: 'tools', sourceType: 'vm', parent, versions: version(2 ** 20) }
  const copy: Image = { ...plain, name: 'twin', parent: { image: 'tools', version: 1 }, versions: version(0) }

  it('the lineage of an image shows the origin and added size of each image, with links', () => {
    const { rows } = lineageOf(saved, [origin, saved, copy])
    assert.deepEqual(
      rows.map((row) => [row.name, originOf(row), addedText(row), imagePathOf(row)]),
      [
        ['sonoma', 'Pulled from lab', '1 GiB', '/images/sonoma'],
        ['tools', 'Saved from VM svc-a/gone, from version 2', '+ 1 MiB', undefined],
        ['twin', 'Copy, from version 1', '+ 0 B', '/images/twin'],
      ],
    )
    const [root] = branchesOf(rows)
    assert.deepEqual([root?.row.name, root?.children[0]?.children[0]?.row.name], ['sonoma', 'twin'])
  })

  it('the lineage of an image has no links to deleted images, registries, or VMs of other namespaces', () => {
    const of = (name: string) => ({ ...plain, name: 'orphan', sourceType: 'vm', parent: { image: name } }) as Image
    const first = (name: string) => lineageOf(of(name), [of(name)]).rows
    assert.deepEqual(
      ['deleted', 'ghcr.io/team/base@sha256:1'].map((name) =>
        first(name).map((row) => [originOf(row), imagePathOf(row)]),
      ),
      ['Deleted or renamed', 'In a registry'].map((text) => [
        [text, undefined],
        ['Saved from VM', undefined],
      ]),
    )
  })

  it('an image can be changed and deleted by its owner, users of its namespace and administrators', () => {
    const { sourceNamespace: _, ...hidden } = { ...plain, owner: '', protected: false }
    const [ada, root] = [
      { name: 'ada', admin: false },
      { name: 'root', admin: true },
    ]
    const reasons = (change: Partial<Image>) =>
      [ada, root].map((person) => reasonAgainstChangingAnImage({ ...hidden, ...change }, person))
    assert.deepEqual(reasons({}), [
      'Created in another namespace: only its owner, users of that namespace and administrators can change or delete it',
      undefined,
    ])
    assert.deepEqual(reasons({ owner: 'ada' }), [undefined, undefined])
    assert.deepEqual(reasons({ owner: 'bo', sourceNamespace: 'svc-a' }), [undefined, undefined])
    assert.deepEqual(reasons({ owner: 'ada', protected: true }), [
      'Protected: only administrators can change or delete it',
      undefined,
    ])
  })
})

describe('names and keys', () => {
  it('paths of pages escape names', () => {
    assert.equal(vmPath({ namespace: 'svc-a', name: 'a/b c' }), '/vms/svc-a/a%2Fb%20c')
    assert.equal(imagePath('iso', 'x.iso'), '/isos/x.iso')
  })

  it('typed users and service accounts are parsed', () => {
    assert.deepEqual(parseNames('a@b.c, d@e.f\n'), ['a@b.c', 'd@e.f'])
    assert.deepEqual(parseAccounts('svc-ios:ci jenkins', 'svc-x'), [
      { namespace: 'svc-ios', name: 'ci' },
      { namespace: 'svc-x', name: 'jenkins' },
    ])
  })

  it('keysyms of characters, replacements of legacy calls, and the join command of a host', () => {
    assert.deepEqual([keysymOf('a'), keysymOf('\n'), keysymOf('€')], [0x61, 0xff0d, 0x010020ac])
    assert.match(replacementFor('POST /resources/vm/deploy') ?? '', /^svc3 vm deploy/)
    assert.equal(replacementFor('GET /nothing'), undefined)
    assert.equal(joinLine('svc3j_x'), "printf %s 'svc3j_x' | svc3 agent --join-token-stdin")
  })
})

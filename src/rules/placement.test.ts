// Placement on a few nodes: obstacles, preferences and allocations.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type Candidate, type Demand, place } from './placement.ts'
import { obstacleText } from './placement-reasons.ts'

const node = (name: string, change: Partial<Candidate> = {}): Candidate => ({
  name,
  isKnown: true,
  architecture: 'amd64',
  tags: [],
  images: [],
  cpu: 8,
  memoryMiB: 16_384,
  gpus: 0,
  freeCpu: 8,
  freeMemoryMiB: 16_384,
  freeGpus: 0,
  vms: 0,
  macosVms: 0,
  isPortTaken: () => false,
  ...change,
})
const demand: Demand = {
  architecture: 'amd64',
  image: 'sonoma',
  cpu: 3,
  memoryMiB: 0,
  gpuPassthrough: false,
  tagRequired: false,
  scheduler: 'default',
  vncConsole: true,
  reservedPorts: [],
}
const chosen = (asked: Partial<Demand>, nodes: readonly Candidate[]): string => {
  const found = place({ ...demand, ...asked }, nodes)
  return found.ok
    ? found.node.name
    : found.reasons.map(({ node: name, obstacle }) => `${name} ${obstacleText(obstacle)}`).join('; ')
}

describe('placement', () => {
  it('placement computes automatic memory: the cores’ share of 80 % of the node’s', () => {
    const found = place(demand, [node('a')])
    assert.ok(found.ok)
    assert.equal(found.allocation.memoryMiB, Math.floor((16_384 * 0.8 * 3) / 8))
  })

  it('placement balances, or packs on request', () => {
    const nodes = [node('idle'), node('busy', { freeCpu: 4, vms: 1 })]
    assert.equal(chosen({}, nodes), 'idle')
    assert.equal(chosen({ scheduler: 'most-allocated' }, nodes), 'busy')
  })

  it('placement prefers the tag, then the image, then free room', () => {
    const nodes = [
      node('idle'),
      node('has-image', { images: ['sonoma'], freeCpu: 4 }),
      node('has-tag', { tags: ['t'], freeCpu: 3 }),
    ]
    assert.equal(chosen({}, nodes), 'has-image')
    assert.equal(chosen({ tag: 't' }, nodes), 'has-tag')
    assert.equal(chosen({ tag: 'other' }, nodes), 'has-image')
  })

  it('placement returns the obstacle of every node', () => {
    const cases: readonly (readonly [Partial<Candidate>, Partial<Demand>, RegExp])[] = [
      [{ architecture: 'arm64' }, {}, /^a is arm64; the image is amd64$/],
      [{ unfit: { cause: 'cordoned' } }, {}, /^a is cordoned$/],
      [{ unfit: { cause: 'disconnected' } }, {}, /^a is not connected$/],
      [{ unfit: { cause: 'broken', problem: 'No KVM' } }, {}, /^a cannot run VMs: No KVM$/],
      [{}, { tag: 'x', tagRequired: true }, /^a does not have tag x$/],
      [{ maxVms: 2, vms: 2 }, {}, /^a is at its limit of 2 VMs$/],
      [{ freeCpu: 2 }, {}, /^a has 2 of 8 cores free; 3 requested$/],
      [{}, { cpu: 64 }, /^a has 8 cores; 64 requested$/],
      [{ freeMemoryMiB: 100 }, {}, /^a has 100 MiB of 16 GiB memory free; 4.8 GiB requested$/],
      [{}, { memoryMiB: 65_536 }, /^a has 16 GiB of memory; 64 GiB requested$/],
      [{}, { gpuPassthrough: true }, /^a has no GPU$/],
      [{ gpus: 1 }, { gpuPassthrough: true }, /^a has no free GPU$/],
      [{ isPortTaken: (port) => port === 9_000 }, { reservedPorts: [reserved(9_000)] }, /does not have port 9000 free/],
      [{ isPortTaken: () => true }, {}, /^a has no free ports$/],
    ]
    for (const [change, asked, reason] of cases) assert.match(chosen(asked, [node('a', change)]), reason)
  })

  it('placement puts macOS only on hosts that can run it, up to their limit', () => {
    const noMacos = 'it is no Mac; see docs/operate/hosts-macos.md'
    const mac = { architecture: 'arm64', maxMacosVms: 2, vms: 2, macosVms: 2 } as const
    const limit = /^a is at Apple’s limit of 2 macOS VMs per host$/
    const arm = { architecture: 'arm64' } as const
    const cases: readonly (readonly [Partial<Candidate>, Partial<Demand>, RegExp])[] = [
      [{ noMacos }, { os: 'macos' }, /^a cannot run macOS guests: it is no Mac; see docs\/operate\/hosts-macos\.md$/],
      [{ noMacos, unfit: { cause: 'cordoned' } }, { os: 'macos' }, /cannot run macOS guests/],
      [{ noMacos }, { os: 'linux' }, /^a$/],
      [{ noMacos }, { os: 'other' }, /^a$/],
      // Images of an unknown system may go to any node.
      [{ noMacos }, {}, /^a$/],
      [{}, { os: 'macos' }, /^a$/],
      [mac, { ...arm, os: 'macos' }, limit],
      [mac, arm, limit],
      [
        { ...mac, maxMacosVms: 0, macosVms: 0 },
        { ...arm, os: 'macos' },
        /cannot run more macOS VMs: others on its host reach Apple’s limit/,
      ],
      [
        { ...mac, noMacos: 'The keychain is locked', maxMacosVms: 0, macosVms: 0 },
        arm,
        /^a cannot run macOS guests: The keychain is locked$/,
      ],
      [{ ...mac, noMacos: 'The keychain is locked', maxMacosVms: 0 }, { ...arm, os: 'linux' }, /^a$/],
      [mac, { ...arm, os: 'linux' }, /^a$/],
      [{ ...mac, vms: 5, macosVms: 1 }, { ...arm, os: 'macos' }, /^a$/],
      [{ ...mac, maxMacosVms: undefined }, { ...arm, os: 'macos' }, /^a$/],
    ]
    for (const [change, asked, said] of cases) assert.match(chosen(asked, [node('a', change)]), said)
    const nodes = [node('qemu', { noMacos }), node('set-up', { freeCpu: 3 })]
    assert.deepEqual([chosen({ os: 'macos' }, nodes), chosen({ os: 'linux' }, nodes)], ['set-up', 'qemu'])
  })

  it('placement considers only the requested node', () => {
    const nodes = [node('a', { freeCpu: 1 }), node('b')]
    assert.equal(chosen({ node: 'a' }, nodes), 'a has 1 of 8 cores free; 3 requested')
    assert.equal(chosen({ node: 'b' }, nodes), 'b')
    assert.equal(chosen({ node: 'c' }, nodes), '')
  })

  it('placement avoids forbidden and taken ports, and those that the VM has reserved', () => {
    const taken = new Set([8_822, 5_900])
    const found = place({ ...demand, reservedPorts: [reserved(8_823), reserved(5_999)] }, [
      node('a', { isPortTaken: (port) => taken.has(port) }),
    ])
    assert.ok(found.ok)
    assert.deepEqual([found.allocation.ssh, found.allocation.vnc, found.allocation.screenshare], [8_824, 6_000, 5_901])
  })

  it('placement finds a node exactly if one fits', () => {
    const arbitraryNode = fc.record({ freeCpu: fc.integer({ min: 0, max: 8 }), vms: fc.integer({ min: 0, max: 3 }) })
    fc.assert(
      fc.property(fc.array(arbitraryNode, { maxLength: 5 }), fc.integer({ min: 1, max: 8 }), (all, cpu) => {
        const nodes = all.map((each, index) => node(`n${index}`, { ...each, maxVms: 2 }))
        const fits = nodes.filter(({ freeCpu, vms }) => freeCpu >= cpu && vms < 2)
        const found = place({ ...demand, cpu, memoryMiB: 1 }, nodes)
        assert.equal(found.ok, fits.length > 0)
        if (found.ok) assert.ok(fits.includes(found.node))
        else assert.equal(found.reasons.length, nodes.length)
      }),
    )
  })
})

const reserved = (nodePort: number) => ({ nodePort, vmPort: 80, protocol: 'tcp' }) as const

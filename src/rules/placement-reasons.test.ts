// Texts for VMs that cannot be placed: a summary by cause with counts, and the refusal of what no node could ever hold.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Candidate, type Demand, neverFits, place } from './placement.ts'
import { impossible, isAboutCores, isAboutPorts, summaryOf, verdictsOn } from './placement-reasons.ts'

const node = (name: string, change: Partial<Candidate> = {}): Candidate => {
  const { cpu = 12, memoryMiB = 32_768, gpus = 0 } = change
  return {
    name,
    isKnown: true,
    architecture: 'arm64',
    tags: [],
    images: [],
    cpu,
    memoryMiB,
    gpus,
    freeCpu: cpu,
    freeMemoryMiB: memoryMiB,
    freeGpus: gpus,
    vms: 0,
    macosVms: 0,
    isPortTaken: () => false,
    ...change,
  }
}
const nodes = (count: number, prefix: string, change: Partial<Candidate> = {}): Candidate[] =>
  Array.from({ length: count }, (_, index) => node(`${prefix}-${index + 1}`, change))
const demand: Demand = {
  architecture: 'arm64',
  image: 'sonoma',
  cpu: 4,
  memoryMiB: 0,
  gpuPassthrough: false,
  tagRequired: false,
  scheduler: 'default',
  vncConsole: true,
  reservedPorts: [],
}
const intel = { architecture: 'amd64' } as const
const cordoned = { unfit: { cause: 'cordoned' } } as const
const away = { unfit: { cause: 'disconnected' } } as const
const port = { nodePort: 9_000, vmPort: 80, protocol: 'tcp' } as const

const reasonsFor = (asked: Partial<Demand>, all: readonly Candidate[]) => {
  const found = place({ ...demand, ...asked }, all)
  assert.ok(!found.ok)
  return found.reasons
}
const summary = (asked: Partial<Demand>, all: readonly Candidate[]): string =>
  summaryOf(reasonsFor(asked, all), { ...demand, ...asked }, 'svc-default')

describe('a summary of reasons', () => {
  it('a summary of reasons counts nodes by cause, and names a single node', () => {
    const cases: readonly (readonly [Partial<Demand>, readonly Candidate[], string])[] = [
      [{}, [], 'No nodes in svc-default'],
      [{ node: 'mac-9' }, nodes(3, 'mac'), 'Node mac-9 not found in svc-default'],
      [{}, nodes(1, 'mac', { cpu: 8, freeCpu: 2 }), 'Node mac-1 has 2 of 8 cores free; 4 requested'],
      [{ cpu: 50 }, [...nodes(40, 'mac'), ...nodes(20, 'pc', intel)], 'No node has 50 cores: 40 arm64 nodes have at most 12; 20 nodes are amd64'],
      [{}, [...nodes(38, 'mac', { freeCpu: 2 }), node('small', { cpu: 3 })], 'No node has 4 cores free: 39 nodes have at most 3'],
      [{}, [node('a', { freeCpu: 1 }), node('b', intel)], 'No arm64 node has 4 cores free: node a has 1'],
      [{}, [...nodes(2, 'a', { freeCpu: 1 }), ...nodes(3, 'b', cordoned)], 'No node fits 4 cores: 2 nodes have at most 1 core free; 3 nodes are cordoned'],
      [{ memoryMiB: 8_192 }, [node('a', { freeCpu: 1 }), node('b', { freeMemoryMiB: 512 })], 'No node fits 4 cores and 8 GiB of memory: node a has 1 core free; node b has 512 MiB of memory free'],
      [{ memoryMiB: 65_536 }, nodes(2, 'mac'), 'No node has 64 GiB of memory: 2 nodes have at most 32 GiB'],
      [{}, nodes(2, 'mac', { freeMemoryMiB: 1_024 }), 'No node has enough memory free: 2 nodes have at most 1 GiB'],
      [{}, [...nodes(2, 'a', cordoned), node('b', away)], 'No node is available: 2 nodes are cordoned; node b is not connected'],
      [{}, nodes(3, 'pc', intel), 'No node is arm64: 3 nodes are amd64'],
      [{ tag: 'ios', tagRequired: true }, nodes(3, 'mac'), 'No node has tag ios'],
      [{ tag: 'ios', tagRequired: true }, [...nodes(2, 'mac'), node('pc', intel)], 'No arm64 node has tag ios'],
      [{ tag: 'ios', tagRequired: true }, [node('a'), node('b', { tags: ['ios'], ...cordoned })], 'No node with tag ios is available: node b is cordoned'],
      [{ tag: 'ios', tagRequired: true }, [...nodes(9, 'mac'), ...nodes(9, 'pc', intel)], 'No arm64 node has tag ios'],
      [{ os: 'macos' }, [node('a', { noMacos: 'Not a Mac' }), node('b', { freeCpu: 1 })], 'No node that can run macOS guests has 4 cores free: node b has 1'],
      [{ gpuPassthrough: true }, nodes(2, 'mac'), 'No node has a GPU'],
      [{ gpuPassthrough: true }, nodes(2, 'mac', { gpus: 1, freeGpus: 0 }), 'No node has a free GPU'],
      [{ reservedPorts: [port] }, nodes(2, 'mac', { isPortTaken: () => true }), 'No node has port 9000 free'],
      [{}, nodes(2, 'mac', { vms: 2, maxVms: 2 }), 'No node can run another VM: 2 nodes are at their VM limit'],
      [{ os: 'macos' }, nodes(2, 'mac', { macosVms: 2, maxMacosVms: 2 }), 'No node can run another macOS VM: 2 nodes are at Apple’s limit of macOS VMs'],
      [{ os: 'macos' }, nodes(2, 'mac', { macosVms: 1, maxMacosVms: 0, noMacos: 'Log in' }), 'No node can run another macOS VM: 2 nodes cannot run more macOS guests: Log in'],
      [{ os: 'macos' }, nodes(2, 'pc', { noMacos: 'Not a Mac' }), 'No node can run macOS guests: Not a Mac'],
    ] // biome-ignore format: a table
    for (const [asked, all, expected] of cases) assert.equal(summary(asked, all), expected)
  })

  it('a summary is about cores if only cores are short, and about ports if one is taken', () => {
    assert.equal(isAboutCores(reasonsFor({}, [node('a', { freeCpu: 1 }), node('b', cordoned)])), true)
    assert.equal(isAboutCores(reasonsFor({}, [node('a', { freeCpu: 1 }), node('b', { maxVms: 0 })])), false)
    assert.equal(isAboutCores(reasonsFor({}, [node('a', cordoned)])), false)
    assert.equal(isAboutPorts(reasonsFor({ reservedPorts: [port] }, [node('a', { isPortTaken: () => true })])), true)
    assert.equal(isAboutPorts(reasonsFor({}, [node('a', cordoned)])), false)
  })

  it('verdicts have the reason of each node', () => {
    assert.deepEqual(verdictsOn({ ...demand, node: 'a' }, [node('a'), node('b')]), [
      { name: 'a', fits: true, reason: 'has 12 of 12 cores and 32 GiB of 32 GiB memory free' },
      { name: 'b', fits: false, reason: 'is not the requested node' },
    ])
  })
})

/** A node as in its record. */
const recordOf = ({ name, tags, isKnown, ...report }: Candidate) => ({ name, tags, ...(isKnown && { report }) })
const refusal = (asked: Partial<Demand>, all: readonly Candidate[]) => {
  const whole = { ...demand, ...asked }
  const never = neverFits(whole, all.map(recordOf))
  return never && impossible(never, whole, 'svc-default')
}

describe('a deployment that no node could hold', () => {
  it('a deployment that no node could hold is refused with the largest that fits', () => {
    const mixed = [...nodes(2, 'mac'), node('big', { cpu: 8, memoryMiB: 131_072 }), node('pc', { ...intel, cpu: 64 })]
    const cases: readonly (readonly [Partial<Demand>, readonly Candidate[], string, string])[] = [
      [{ cpu: 64 }, nodes(2, 'mac'), 'cpu', 'No node can hold 64 cores; the largest has 12 cores and 32 GiB'],
      [{ cpu: 64 }, mixed, 'cpu', 'No arm64 node can hold 64 cores; the largest has 12 cores and 32 GiB'],
      [{ memoryMiB: 262_144 }, mixed, 'memory', 'No arm64 node can hold 256 GiB of memory; the largest has 8 cores and 128 GiB'],
      [{ cpu: 12, memoryMiB: 131_072 }, mixed, 'cpu', 'No arm64 node can hold 12 cores and 128 GiB of memory; the largest has 12 cores and 32 GiB'],
      [{ cpu: 64, node: 'mac-1' }, mixed, 'node', 'Node mac-1 has 12 cores; 64 requested'],
      [{ node: 'pc' }, mixed, 'node', 'Node pc is amd64; the image is arm64'],
      [{}, nodes(2, 'pc', intel), 'image', 'No node is arm64: 2 nodes are amd64'],
      [{ tag: 'ios', tagRequired: true }, nodes(2, 'mac'), 'tag', 'No node has tag ios'],
      [{ cpu: 64, tag: 'ios', tagRequired: true }, nodes(2, 'mac', { tags: ['ios'] }), 'cpu', 'No node with tag ios can hold 64 cores; the largest has 12 cores and 32 GiB'],
      [{ gpuPassthrough: true }, nodes(2, 'mac'), 'gpuPassthrough', 'No node has a GPU'],
      [{ cpu: 64 }, nodes(1, 'mac', cordoned), 'cpu', 'No node can hold 64 cores; the largest has 12 cores and 32 GiB'],
    ] // biome-ignore format: a table
    for (const [asked, all, field, expected] of cases) {
      const error = refusal(asked, all)
      assert.deepEqual([error?.message, error?.options.causes?.[0]?.field, error?.code], [expected, field, 422])
      assert.match(error?.options.hint ?? '', /^[A-Z].*[^.]$/)
    }
  })

  it('a deployment that no node could hold names the default size, and the largest possible one', () => {
    const small = nodes(2, 'mac', { cpu: 2, memoryMiB: 4_096 })
    const error = impossible(neverFits(demand, small.map(recordOf)) ?? [], demand, 'svc-ios', { isDefaultCpu: true })
    assert.equal(error.message, 'No node can hold 4 cores (the default); the largest has 2 cores and 4 GiB')
    assert.equal(error.options.hint, 'Try --cpu 2, or add a larger node')
    const hints: readonly (readonly [Partial<Demand>, readonly Candidate[], string])[] = [
      [{ cpu: 1, memoryMiB: 65_536 }, small, 'Try --memory 4, or add a larger node'],
      [{ cpu: 64, memoryMiB: 65_536 }, small, 'Request less, or add a larger node'],
      [{ cpu: 8, memoryMiB: 8_192 }, [...small, node('a', { cpu: 1 }), node('b', { memoryMiB: 512 })], 'Try --cpu 1, or add a larger node'],
    ] // biome-ignore format: a table
    for (const [asked, all, hint] of hints) assert.equal(refusal(asked, all)?.options.hint, hint)
  })

  it('a deployment is not refused if a node may hold it later, or if there are no nodes yet', () => {
    const later: readonly (readonly [Partial<Demand>, readonly Candidate[]])[] = [
      [{ cpu: 64 }, []],
      [{}, nodes(1, 'mac', { freeCpu: 0 })],
      [{}, [...nodes(1, 'mac', cordoned), ...nodes(5, 'pc', intel)]],
      [{}, nodes(1, 'mac', away)],
      [{}, nodes(1, 'mac', { maxVms: 2, vms: 2 })],
      [{ cpu: 64 }, [node('new', { isKnown: false, cpu: 0, memoryMiB: 0 }), node('mac')]],
      [{ reservedPorts: [port] }, nodes(1, 'mac', { isPortTaken: () => true })],
    ]
    for (const [asked, all] of later) assert.equal(refusal(asked, all), undefined)
  })
})

// The best node is the one that a look at all of them finds, whatever has changed.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type Candidate, type Demand, place } from './placement.ts'
import { Ranking } from './ranking.ts'

const node = (name: string, change: Partial<Candidate>): Candidate => ({
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

const someNode = fc.record({
  freeCpu: fc.integer({ min: 0, max: 8 }),
  vms: fc.integer({ min: 0, max: 2 }),
  tags: fc.subarray(['t']),
  images: fc.subarray(['sonoma']),
  unfit: fc.option(fc.constant({ cause: 'cordoned' as const }), { nil: undefined, freq: 3 }),
})
const someDemand = fc.record({
  cpu: fc.integer({ min: 1, max: 4 }),
  scheduler: fc.constantFrom('default' as const, 'most-allocated' as const),
  tag: fc.subarray(['t']),
  tagRequired: fc.boolean(),
})

describe('ranking of nodes', () => {
  it('a ranking that is told which nodes changed has the node that placement chooses of all of them', () => {
    const changes = fc.array(fc.tuple(fc.nat(), someNode, fc.boolean()), { maxLength: 40 })
    fc.assert(
      fc.property(
        fc.array(someNode, { maxLength: 20 }),
        someDemand,
        changes,
        (first, { tag: [tag], ...asked }, then) => {
          const nodes = first.map((each, at) => node(`n${at}`, each))
          const rest = { architecture: 'amd64', image: 'sonoma', memoryMiB: 1, gpuPassthrough: false } as const
          const demand: Demand = {
            ...rest,
            vncConsole: true,
            reservedPorts: [],
            ...asked,
            ...(tag !== undefined && { tag }),
          }
          const ranking = new Ranking(demand, nodes)
          const agrees = (): void => {
            const found = place(demand, nodes)
            assert.equal(ranking.best(), found.ok ? found.node : undefined)
          }
          agrees()
          for (const [number, change, isLooked] of nodes.length > 0 ? then : []) {
            const at = number % nodes.length
            nodes[at] = node(`n${at}`, change)
            ranking.changed(at)
            // Several may change before anybody looks.
            if (isLooked) agrees()
          }
          agrees()
        },
      ),
      { numRuns: 500 },
    )
  })
})

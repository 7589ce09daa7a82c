// Which copies in the reports of nodes are those of an image.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CopyReport } from '../../api/images/image-cache.ts'
import type { NodeRecord } from '../../store/records/fleet-records.ts'
import { cachedImage, copyOn, pulledOn, vmsOn } from './cache.ts'

const digest = (letter: string): string => `sha256:${letter.repeat(64)}`
const reference = `ghcr.io/team/image@${digest('a')}`
const mirror = `mirror.example.com/team/image@${digest('a')}`
const nodeWith = (cache: CopyReport[], pins: Record<string, string> = {}, name = 'one'): NodeRecord =>
  ({
    name,
    report: { architecture: 'arm64', cache },
    cache: {
      pins: Object.fromEntries(
        Object.entries(pins).map(([image, pinned]) => [
          image,
          { by: 'a', at: '', ...(pinned !== '' && { pulled: { reference: pinned, sizeBytes: 1, storedBytes: 1 } }) },
        ]),
      ),
      drops: [],
    },
  }) as unknown as NodeRecord
const pulled = (names: string[], key = digest('c'), from = reference): CopyReport => ({
  key,
  state: 'Ready',
  pulled: { reference: from, names, sizeBytes: 1 },
})

describe('the copy of an image on a node', () => {
  it('the copy of an image of the cluster may have been pulled from a registry', () => {
    const node = nodeWith([pulled(['ghcr.io/team/image:v1'])], { mine: '' })
    const copy = copyOn(node, { name: 'mine', content: digest('c') })
    assert.deepEqual([copy?.state, copy?.pinned], ['Ready', true])
  })

  it('the copy of an image that is pinned from two registries has a state for each', () => {
    const node = nodeWith(
      [
        { key: `pull:${reference}`, state: 'Failed', problem: 'denied' },
        { key: `pull:${mirror}`, state: 'Fetching', percent: 5 },
      ],
      { 'ghcr.io/team/image:v1': reference, 'mirror.example.com/team/image:v1': mirror },
    )
    const states = pulledOn([node]).map((image) => copyOn(node, image)?.state)
    assert.deepEqual(states, ['Failed', 'Fetching'])
    assert.equal(copyOn(node, { name: mirror, digests: new Set([digest('a')]) })?.pinned, false)
  })

  it('the copy of an image that a VM pulled from another registry is in use', () => {
    const node = nodeWith([pulled([mirror])])
    const record = { namespace: 'a', name: 'vm', shape: { image: 'x' }, imageReference: mirror, place: { node: 'one' } }
    const records = {
      nodeVms: { on: () => [{ value: { ...record, node: 'one', desired: { power: 'running' }, observed: {} } }] },
      images: { get: () => undefined },
    }
    assert.deepEqual(vmsOn(records as never, node), [{ vm: 'a/vm', key: digest('c') }])
  })

  it('copies of 30 images on 300 nodes are listed fast', () => {
    const copies = Array.from({ length: 30 }, (_, index) => {
      const own = `sha256:${String(index).padStart(64, '0')}`
      return pulled([`ghcr.io/team/image${index}:v1`], own, `ghcr.io/team/image${index}@${own}`)
    })
    const nodes = Array.from({ length: 300 }, (_, index) => nodeWith(copies, {}, `node-${index}`))
    const list = (): number => pulledOn(nodes).flatMap((image) => cachedImage(image, nodes).nodes).length
    const times = [1, 2, 3].map(() => {
      const before = process.cpuUsage()
      assert.equal(list(), 9_000)
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1_000
    })
    assert.ok(Math.min(...times) < 500, `${times.join(', ')} ms`)
  })
})

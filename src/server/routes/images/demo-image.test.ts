// Built-in images can be added if a node can build them, and uploads have a warning if they will not boot.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { guests } from '../../../../packages/tiny-guests/build.ts'
import { diskBytes } from '../../../../packages/tiny-guests/disk.ts'
import { type Answer, startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { startNode } from '../../../../test/support/stand-ins/node.ts'
import { recipes } from '../../../agent/images/recipes.ts'
import { architectures } from '../../../api/architecture.ts'
import { builtInImages } from '../../../api/images/built-in-images.ts'
import { demoImage } from '../../../store/records/demo-image.ts'

const base = '/api/v1/namespaces/svc-default'
let service: TestService
before(async () => {
  service = await startService()
  await startNode(service, { name: 'intel' })
  await startNode(service, { name: 'mac', report: { architecture: 'arm64', driver: 'apple' } })
})
after(() => service[Symbol.asyncDispose]())

const demo = (type: string, image?: string): Promise<Answer> =>
  service.call('POST', `${base}/images/demo`, { body: { type, ...(image !== undefined && { image }) } })

describe('demo image', () => {
  it('the demo image is added once, and nodes build it', async () => {
    const added = await demo('amd64')
    assert.deepEqual([added.status, added.body.name, added.body.state], [201, 'tiny-amd64', 'Ready'], added.text)
    assert.equal(service.services.collections.images.get('', 'tiny-amd64')?.value.recipe, 'tiny-amd64')
    assert.equal((await demo('amd64')).status, 200)
  })

  it('small can be added besides tiny, once, and other names are refused', async () => {
    const added = await demo('amd64', 'small')
    assert.deepEqual([added.status, added.body.name, added.body.state], [201, 'small-amd64', 'Ready'], added.text)
    assert.equal((await demo('amd64', 'small')).status, 200)
    const before = service.services.collections.images.view.range().length
    assert.equal((await demo('amd64', 'large')).status, 400)
    assert.equal(service.services.collections.images.view.range().length, before)
  })

  it('nodes have a recipe for each built-in image, with the disk size of its record', () => {
    const records = builtInImages.flatMap((image) => architectures.map((type) => demoImage(image, type)))
    assert.deepEqual(records.map(({ recipe }) => recipe).sort(), Object.keys(recipes).sort())
    assert.deepEqual(Object.keys(recipes).sort(), Object.keys(guests).sort())
    assert.deepEqual([...new Set(records.map(({ sizeBytes }) => sizeBytes))], [diskBytes])
  })

  it('the demo image is refused with a hint if no node can build it', async () => {
    const { status, body } = await demo('arm64')
    assert.deepEqual([status, body.message], [409, 'No arm64 node with QEMU can build image tiny-arm64'])
    assert.match(body.hint, /svc3 image upload/)
  })
})

describe('boot warning', () => {
  const upload = async (query: string, disk: Buffer): Promise<Answer> =>
    service.call('POST', `${base}/upload/image?${query}`, {
      body: disk,
      headers: { 'content-type': 'application/octet-stream' },
    })
  const disk = Buffer.alloc(2 ** 20)
  disk.write('boot code', 0, 'latin1')
  disk.writeUInt16LE(0xaa55, 510)

  it('an upload that the firmware cannot boot has a warning, also in copies', async () => {
    const { status, body } = await upload('name=arm&type=arm64', disk)
    const warning = 'No EFI system partition found; this disk will not boot on arm64 nodes'
    assert.deepEqual([status, body.warning], [201, warning])
    const copy = await service.call('POST', `${base}/images/arm/copy`, { body: { name: 'arm-2' } })
    assert.equal(copy.body.warning, warning)
  })

  it('an upload that boots has no warning', async () => {
    assert.equal((await upload('name=intel&type=amd64', disk)).body.warning, undefined)
  })
})

// The tree that an image belongs to, out of records: its order, its bounds, names that were used again.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bytesAddedBy, lineageOf } from './image-lineage.ts'

const of = (name: string, parent?: string) => ({ name, ...(parent !== undefined && { parent: { image: parent } }) })
const drawn = (name: string, images: readonly ReturnType<typeof of>[]) => {
  const image = images.find((each) => each.name === name) ?? assert.fail()
  const { rows, more } = lineageOf(image, images)
  return { rows: rows.map((row) => `${row.depth} ${row.name}${row.isSelf ? '*' : row.image ? '' : '?'}`), more }
}

describe('the lineage of an image', () => {
  const images = [of('b', 'a'), of('a'), of('c', 'b'), of('d', 'c'), of('e', 'b'), of('other'), of('sibling', 'a')]

  it('the lineage of an image has its ancestors, itself, and its descendants below their parents', () => {
    assert.deepEqual(drawn('b', images), { rows: ['0 a', '1 b*', '2 c', '3 d', '2 e'], more: 0 })
    assert.deepEqual(drawn('other', images), { rows: ['0 other*'], more: 0 })
  })

  it('the lineage of an image names ancestors that are deleted or in a registry', () => {
    assert.deepEqual(drawn('b', [of('b', 'ghcr.io/team/a@sha256:1')]).rows, ['0 ghcr.io/team/a@sha256:1?', '1 b*'])
  })

  it('the lineage of images whose names were used again ends', () => {
    assert.deepEqual(drawn('a', [of('a', 'b'), of('b', 'a')]).rows, ['0 b', '1 a*'])
    assert.deepEqual(drawn('a', [of('a', 'a')]).rows, ['0 a*'])
  })

  it('the lineage of an image with many descendants counts the omitted ones', () => {
    const many = [of('a'), ...Array.from({ length: 60 }, (_, index) => of(`n${index}`, 'a'))]
    assert.equal(drawn('a', many).rows.length, 51)
    assert.equal(drawn('a', many).more, 10)
    const chain = Array.from({ length: 40 }, (_, index) => of(`n${index}`, `n${index - 1}`))
    assert.equal(drawn('n39', chain).rows.length, 21)
  })

  it('an image adds the sum of its versions, unless one is unknown', () => {
    const version = (bytesAdded?: number) => ({
      version: 1,
      createdAt: '',
      ...(bytesAdded !== undefined && { bytesAdded }),
    })
    assert.equal(bytesAddedBy({ versions: [version(3), version(4)] }), 7)
    assert.equal(bytesAddedBy({ versions: [version(3), version()] }), undefined)
    assert.equal(bytesAddedBy({}), undefined)
  })
})

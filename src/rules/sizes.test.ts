// Parsing and formatting of sizes.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { diskSize, longSize, parseDiskSize, roughSize, sizeText } from './sizes.ts'

describe('sizes of disks', () => {
  it('sizes of disks are whole numbers with a unit of powers of two', () => {
    assert.equal(parseDiskSize('120G'), 120 * 2 ** 30)
    assert.equal(parseDiskSize('512M'), 512 * 2 ** 20)
    assert.equal(parseDiskSize('1t'), 2 ** 40)
    assert.equal(parseDiskSize('64T'), 64 * 2 ** 40)
  })

  it('invalid and too large sizes of disks are refused', () => {
    const bad = [
      '',
      '0G',
      '-1G',
      '1.5G',
      '120',
      '120GB',
      '120 G',
      'G',
      '1K',
      '1P',
      '65T',
      '999999999T',
      '1e3G',
      '１G',
      '01G',
    ]
    for (const text of bad) assert.equal(parseDiskSize(text), undefined, text)
  })

  it('sizes of disks are formatted in the largest exact unit, which parses to the same size', () => {
    assert.equal(diskSize(2 ** 30), '1G')
    assert.equal(diskSize(1_536 * 2 ** 20), '1536M')
    for (const text of ['120G', '512M', '1T', '64T']) assert.equal(diskSize(parseDiskSize(text) ?? 0), text)
    assert.equal(diskSize(129 * 2 ** 20 + 512), '129M')
  })

  it('amounts of records are shown in one style', () => {
    assert.deepEqual([0, 999, 1_536, 10_846 * 2 ** 20, 412 * 2 ** 20, 2 ** 50].map(sizeText), [
      '0 B',
      '999 B',
      '1.5 KiB',
      '10.6 GiB',
      '412 MiB',
      '1 PiB',
    ])
    const records = ['4.80Gi', '0.50Gi', '11.20G', '90G', '1536M', '412M', '12', 'auto']
    const shown = ['4.8 GiB', '512 MiB', '11.2 GiB', '90 GiB', '1.5 GiB', '412 MiB', '12 B', 'auto']
    assert.deepEqual(records.map(longSize), shown)
  })

  it('stored sizes are rounded', () => {
    assert.deepEqual([0, 999, 1_536, 10 * 2 ** 20, 412 * 2 ** 20, 1_290_000_000].map(roughSize), [
      '0',
      '999',
      '1.5K',
      '10M',
      '412M',
      '1.2G',
    ])
  })
})

// When an unlisted VM is removed, and when it is kept.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Claim, compareRevisions, isBehind, originAfter, whyKept } from './authority.ts'

const claim: Claim = { store: 's', node: 'n', isNewest: true, isReset: false }
const origin = { store: 's', node: 'n', revision: '7' }

describe('VM that is not listed', () => {
  it("a VM that the server does not list is removed if the data is the VM's and at least as new as this node has seen", () => {
    assert.equal(whyKept({ origin, isKept: false }, claim), undefined)
    assert.equal(whyKept({ origin: 'half-made', isKept: false }, claim), undefined)
  })

  const cases: readonly (readonly [string, Parameters<typeof whyKept>, RegExp])[] = [
    [
      'other data',
      [
        { origin, isKept: false },
        { ...claim, store: 'x' },
      ],
      /another cluster/,
    ],
    [
      'older data',
      [
        { origin, isKept: false },
        { ...claim, isNewest: false },
      ],
      /older/,
    ],
    [
      'a node that joined again',
      [
        { origin, isKept: false },
        { ...claim, node: 'x' },
      ],
      /joined again/,
    ],
    ['an earlier decision to keep it', [{ origin, isKept: true }, claim], /kept before/],
    ['its unreadable record', [{ origin: undefined, isKept: false }, claim], /nothing on this node says/],
    [
      'older data, for a half-made VM',
      [
        { origin: 'half-made', isKept: false },
        { ...claim, isNewest: false },
      ],
      /older/,
    ],
  ]
  for (const [what, [unlisted, heard], reason] of cases)
    it(`a VM that the server does not list stays because of ${what}`, () =>
      assert.match(whyKept(unlisted, heard) ?? '', reason))
})

describe('revisions of desired states', () => {
  it('revisions are numbers of any length', () => {
    assert.ok(compareRevisions('9', '10') < 0)
    assert.ok(compareRevisions('10000000000000000000001', '10000000000000000000000') > 0)
    assert.equal(compareRevisions('5', '5'), 0)
  })

  it('revisions only grow within the same data, and start over with other data', () => {
    assert.equal(originAfter(origin, claim, '5')?.revision, '7')
    assert.equal(originAfter(origin, claim, '10')?.revision, '10')
    assert.deepEqual(originAfter(origin, { ...claim, store: 'x' }, '5'), { store: 'x', node: 'n', revision: '5' })
  })

  it('revisions distinguish an older desired state from a newer one', () => {
    const desired = { revision: '9' } as Parameters<typeof isBehind>[0]
    assert.equal(isBehind(desired, { revision: '10' }), true)
    assert.equal(isBehind(desired, { revision: '9' }), false)
    assert.equal(isBehind(desired, undefined), false)
  })
})

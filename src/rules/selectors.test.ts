// Selectors: each form, and what is refused.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Parsed, parseFieldSelector, parseLabelSelector } from './selectors.ts'

const item = {
  node: 'n3',
  name: 'vm-1',
  owner: 'me@example.com',
  cpu: 4,
  on: true,
  place: { node: 'n1' },
  labels: { team: 'ios', stage: 'ci' },
}
const judge = (parsed: Parsed): boolean => {
  assert.ok(parsed.ok, parsed.ok ? '' : parsed.problem)
  return parsed.test(item)
}

const labels: readonly (readonly [string, boolean])[] = [
  ['', true],
  ['team=ios', true],
  ['team==ios', true],
  ['team = ios , stage = ci', true],
  ['team=android', false],
  ['team!=android', true],
  ['absent!=x', true],
  ['absent=x', false],
  ['team in (ios, tvos)', true],
  ['team in (tvos),stage=ci', false],
  ['team notin (tvos)', true],
  ['absent notin (x)', true],
  ['team', true],
  ['absent', false],
  ['!absent', true],
  ['!team', false],
]
const fields: readonly (readonly [string, boolean])[] = [
  ['owner=me@example.com', true],
  ['owner!=me@example.com', false],
  ['cpu=4,on=true', true],
  ['place.node=n1', true],
  ['place.node=n2', false],
  ['status.node=n3', true],
]

describe('selectors', () => {
  for (const [text, expected] of labels)
    it(`selectors: label ${text} → ${expected}`, () => assert.equal(judge(parseLabelSelector(text)), expected))
  const text = { type: 'string' }
  const known = {
    properties: {
      node: text,
      owner: text,
      cpu: { type: 'integer' },
      on: { type: 'boolean' },
      status: { enum: ['Running'] },
      place: { properties: { node: text } },
    },
  }
  for (const [text, expected] of fields)
    it(`selectors: field ${text} → ${expected}`, () => assert.equal(judge(parseFieldSelector(text, known)), expected))

  for (const text of ['=x', 'a=b=c', 'a in b', 'a>3', 'a in (b', '(a)']) {
    it(`the selector ${text} is refused`, () => {
      const parsed = parseLabelSelector(text)
      assert.ok(!parsed.ok)
      assert.match(parsed.problem, /Invalid condition/)
    })
  }

  it('a selector of an unknown field names the fields there are', () => {
    for (const name of ['ownr', 'status.phase', 'owner.name', 'place.rack']) {
      const parsed = parseFieldSelector(`${name}=x`, known)
      assert.ok(!parsed.ok)
      assert.match(parsed.problem, new RegExp(`Unknown field "${name}": use one of node, owner`))
    }
  })
})

// Selectors: every form, and refusals.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type ParsedSelector, parseFieldSelector, parseLabelSelector } from './selectors.ts'

const item = {
  node: 'n3',
  name: 'vm-1',
  owner: 'me@example.com',
  cpu: 4,
  on: true,
  place: { node: 'n1' },
  labels: { team: 'ios', stage: 'ci' },
}
const judge = (parsed: ParsedSelector): boolean => {
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

  it('the refusal of an unknown field names the known ones', () => {
    for (const name of ['ownr', 'status.phase', 'owner.name', 'place.rack']) {
      const parsed = parseFieldSelector(`${name}=x`, known)
      assert.ok(!parsed.ok)
      assert.match(parsed.problem, new RegExp(`Unknown field "${name}": use one of node, owner`))
    }
  })

  it('a selector that is too long is refused before it is parsed', () => {
    const parsed = parseLabelSelector(',a'.repeat(150_000))
    assert.ok(!parsed.ok)
    assert.match(parsed.problem, /too long: use at most 4096 characters/)
  })

  it('a selector tests what its conditions say, in any notation', () => {
    const word = fc.stringMatching(/^[a-z][a-z0-9.-]{0,8}$/)
    const condition = fc.record({
      key: word,
      operator: fc.constantFrom('=', '!=', 'in', 'notin', '', '!'),
      values: fc.array(word, { minLength: 1, maxLength: 3 }),
    })
    const holds = (
      labels: Record<string, string>,
      { key, operator, values }: { key: string; operator: string; values: string[] },
    ): boolean => {
      const value = Object.hasOwn(labels, key) ? labels[key] : undefined
      if (operator === '') return value !== undefined
      if (operator === '!') return value === undefined
      const isIn = value !== undefined && (operator.includes('in') ? values : values.slice(0, 1)).includes(value)
      return operator === '=' || operator === 'in' ? isIn : !isIn
    }
    const written = ({ key, operator, values }: { key: string; operator: string; values: string[] }): string => {
      if (operator === '' || operator === '!') return `${operator}${key}`
      return operator.includes('in') ? `${key} ${operator} (${values.join(', ')})` : `${key} ${operator} ${values[0]}`
    }
    fc.assert(
      fc.property(fc.array(condition, { maxLength: 5 }), fc.dictionary(word, word), (conditions, labels) => {
        const parsed = parseLabelSelector(conditions.map(written).join(' , '))
        assert.ok(parsed.ok)
        assert.equal(
          parsed.test({ labels }),
          conditions.every((each) => holds(labels, each)),
        )
      }),
    )
  })

  it('properties of Object.prototype are no labels', () => {
    const parsed = parseLabelSelector('constructor')
    assert.ok(parsed.ok)
    assert.equal(parsed.test({ labels: {} }), false)
  })

  it('properties of Object.prototype are unknown fields', () => {
    for (const name of ['constructor', 'toString', 'hasOwnProperty', 'valueOf.x']) {
      const parsed = parseFieldSelector(`${name}=x`, { properties: { name: {} } })
      assert.deepEqual(parsed, { ok: false, problem: `Unknown field "${name}": use one of name` })
    }
  })

  it('a selector of any text is parsed or refused, and never throws', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', '=', '!', ',', '(', ')', ' ', 'in', 'notin') }), (text) => {
        const parsed = parseLabelSelector(text)
        assert.ok(parsed.ok ? typeof parsed.test({ labels: {} }) === 'boolean' : parsed.problem)
      }),
    )
  })
})

// The output of `-o yaml` can be read back without a difference.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { parse } from 'yaml'
import { render } from './output.ts'

const toYaml = (items: readonly unknown[]): Promise<string> =>
  render(items, [], { format: 'yaml', isTerminal: false, color: false, now: new Date(0) })

it('-o yaml is plain to read, and quotes what some readers take for something else than text', async () => {
  const record = {
    server: 'https://ghcr.io',
    port: 443,
    on: true,
    at: '2026-11-15T09:00:00Z',
    tags: ['a', 'yes'],
    none: [],
    more: { b: null },
  }
  const text = `- server: https://ghcr.io
  port: 443
  "on": true
  at: "2026-11-15T09:00:00Z"
  tags:
    - a
    - "yes"
  none: []
  more:
    b: null
`
  assert.equal(await toYaml([record]), text)
  assert.equal(await toYaml([]), '[]\n')
})

it('-o yaml is read back unchanged by YAML 1.2 and 1.1', async () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('1e3', '0x1f', '~', '- a', 'a: b', 'a #b', '1:30', '.inf', '=', '<<x'),
  )
  const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4, depthIdentifier: 'tree' },
      fc.oneof(
        text,
        fc.integer(),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.boolean(),
        fc.constant(null),
      ),
      fc.array(tie('tree'), { maxLength: 4, depthIdentifier: 'tree' }),
      fc.dictionary(text, tie('tree'), { maxKeys: 4, depthIdentifier: 'tree', noNullPrototype: true }),
    ),
  }))
  const property = fc.asyncProperty(tree, async (value) => {
    const expected = JSON.parse(JSON.stringify([value]))
    const written = await toYaml([value])
    for (const version of ['1.2', '1.1'] as const)
      assert.deepEqual(parse(written, { version, merge: false }), expected, written)
  })
  await fc.assert(property, { numRuns: 1_000, examples: [[{ e0: 'E12' }]] })
})

// The table of nouns agrees with the table of operations.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { allOperations } from './index.ts'
import { allNouns, isListed, nouns } from './nouns.ts'
import { base, inNamespace } from './operation.ts'

it('the table of nouns has the path of a list operation, whose items have the field that names them', () => {
  for (const [noun, { nameField: field = 'name' }] of allNouns) {
    if (!isListed(noun)) continue
    const path = `${noun === 'namespaces' ? base : inNamespace}/${nouns[noun].list}`
    const operation = allOperations.find((each) => each.method === 'GET' && each.path === path)
    assert.equal(operation?.noun, noun, path)
    assert.ok(operation?.item && field in (operation.item as { properties: object }).properties, noun)
  }
})

it('the table of nouns has every noun whose changes name a record in the path', () => {
  const changed = allOperations.filter(({ involves, involvesKind }) => involves?.startsWith('params.') && !involvesKind)
  const missing = new Set(changed.map(({ noun }) => noun).filter((noun) => !Object.hasOwn(nouns, noun)))
  assert.deepEqual([...missing], [])
})

// What is generated and checked in is what the source would generate now, and is well formed.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { currentText, generatedFiles } from '../../scripts/generate.ts'

describe('generated files', () => {
  for (const { file, make } of generatedFiles) {
    it(`${file} is current (npm run generate writes it)`, async () =>
      assert.equal(await currentText(file), await make()))
  }

  it('the API document passes the OpenAPI linter', async () => {
    const source = await currentText('docs/openapi.json')
    const config = await createConfig({ extends: ['recommended-strict'] })
    const found = await lintFromString({ source, absoluteRef: 'docs/openapi.json', config })
    // A WebSocket's success is 101.
    const problems = found.filter(
      ({ ruleId, location }) =>
        ruleId !== 'operation-2xx-response' || !location[0]?.pointer?.endsWith('~1connect/get/responses'),
    )
    assert.deepEqual(
      problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} at ${location[0]?.pointer}`),
      [],
    )
  })
})

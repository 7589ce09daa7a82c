// Generated files are current and well formed.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import path from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { root } from '../../scripts/build.ts'
import { currentText, generatedFiles, strayPages } from '../../scripts/generate.ts'

const exec = promisify(execFile)

describe('generated files', () => {
  for (const { file, make } of generatedFiles) {
    it(`${file} is current (npm run generate writes it)`, async () =>
      assert.equal(await currentText(file), await make()))
  }

  it('there is no page of a command that is gone', async () => assert.deepEqual(await strayPages(), []))

  it('the man pages are what groff expects of them', async () => {
    for (const { file } of generatedFiles.filter(({ file }) => file.endsWith('.1'))) {
      const { stderr } = await exec('groff', ['-man', '-Tutf8', '-ww', '-z', path.join(root, file)])
      assert.equal(stderr, '', file)
    }
  })

  it('the API document passes the OpenAPI linter', async () => {
    const source = await currentText('docs/openapi.json')
    const config = await createConfig({ extends: ['recommended-strict'] })
    const found = await lintFromString({ source, absoluteRef: 'docs/openapi.json', config })
    // A WebSocket's success is 101.
    const problems = found.filter(
      ({ ruleId, location }) =>
        ruleId !== 'operation-2xx-response' ||
        !/~1(connect|terminal|watch)\/get\/responses$/.test(location[0]?.pointer ?? ''),
    )
    assert.deepEqual(
      problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} at ${location[0]?.pointer}`),
      [],
    )
  })
})

// Compatibility of versions of client and server.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { versionAdvice, versionsApart } from './versions.ts'

describe('versions', () => {
  const cases = [
    ['3.0.0', '3.0.0', undefined],
    ['3.0.0-alpha.1', '3.4.2', undefined],
    ['3.1.0', '3.0.9', 'server-older'],
    ['3.10.0', '3.9.0', 'server-older'],
    ['3.0.0', '4.0.0', 'other-major'],
    ['4.0.0', '3.9.9', 'other-major'],
    ['unknown', '3.0.0', undefined],
    ['3.0.0', '', undefined],
  ] as const
  for (const [client, server, wanted] of cases)
    it(`versions: ${client} and ${server || 'nothing'}: ${wanted ?? 'fit'}`, () =>
      assert.equal(versionsApart(client, server), wanted))

  it('the advice for incompatible versions says what to do', () => {
    assert.equal(versionAdvice('3.0.0', '3.0.1'), undefined)
    assert.match(versionAdvice('3.0.0', '4.0.0') ?? '', /version 3\.0\.0, the server is 4\.0\.0\. Use/)
    assert.match(versionAdvice('3.1.0', '3.0.0') ?? '', /Update the server/)
  })
})

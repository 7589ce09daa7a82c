// Settings of the identity provider: the defaults, and refusals that name the setting.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseSettings, SettingsError } from './settings.ts'

it('the settings are the same without a file and with an empty one', () => {
  assert.deepEqual(parseSettings(undefined), parseSettings('{}'))
})

describe('auth settings', () => {
  it('without auth settings, the built-in provider is used', () => {
    assert.deepEqual(parseSettings(undefined).auth, { emailClaim: 'email', groupsClaim: 'groups', adminGroups: [] })
  })

  it('auth settings accept a provider by https, or on this machine', () => {
    for (const issuer of ['https://id.example.com/realms/x', 'http://127.0.0.1:9000', 'http://localhost:9000'])
      assert.equal(parseSettings(JSON.stringify({ auth: { issuer, clientId: 'svc3' } })).auth.issuer, issuer)
  })

  const refused: readonly (readonly [object, RegExp])[] = [
    [{ issuer: 'http://id.example.com', clientId: 'svc3' }, /auth\.issuer must be an https/],
    [{ issuer: 'http://127.0.0.1.example.com', clientId: 'svc3' }, /auth\.issuer must be an https/],
    [{ issuer: 'https://id.example.com?x=1', clientId: 'svc3' }, /auth\.issuer must be an https/],
    [{ issuer: 'id.example.com', clientId: 'svc3' }, /auth\.issuer must be an https/],
    [{ issuer: 'https://id.example.com' }, /auth\.clientId is required/],
    [{ clientId: 'svc3' }, /auth\.clientId requires auth\.issuer/],
    [{ adminGroups: 'platform' }, /auth\.adminGroups must be array/],
    [{ adminGroup: ['platform'] }, /Unknown setting "auth.adminGroup"/],
  ]
  for (const [auth, problem] of refused) {
    it(`auth settings refuse ${JSON.stringify(auth)}`, () => {
      assert.throws(() => parseSettings(JSON.stringify({ auth })), { name: SettingsError.name, message: problem })
    })
  }
})

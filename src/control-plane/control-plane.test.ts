// What follows for the settings from how a server is started.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { parseSettings } from '../server/config/settings.ts'
import { startedWith } from './control-plane.ts'

const plain = parseSettings(undefined)

it('svc3 server allows no private and loopback registries, also with plain HTTP; svc3 dev does', () => {
  const allowed = (settings = plain, options: Parameters<typeof startedWith>[1] = { plainHttp: true }): unknown => {
    const { allowPrivate, allowLoopback } = startedWith(settings, options).registries
    return [allowPrivate, allowLoopback]
  }
  assert.deepEqual(allowed(), [false, false])
  assert.deepEqual(allowed(plain, { plainHttp: true, publicUrl: 'https://svc3.example.com' }), [false, false])
  assert.deepEqual(allowed(plain, { plainHttp: false }), [false, false])
  assert.deepEqual(allowed(plain, { plainHttp: true, isDev: true }), [true, true])
  const given = parseSettings('{"registries":{"allowPrivate":true}}')
  assert.deepEqual(allowed(given), [true, false])
  const strict = parseSettings('{"registries":{"allowLoopback":false}}')
  assert.deepEqual(allowed(strict, { plainHttp: true, isDev: true }), [true, false])
})

it('the gateway for 2.4.x is on in svc3 dev only, unless the settings say otherwise', () => {
  assert.equal(startedWith(plain, { plainHttp: true }).legacy.enabled, false)
  assert.equal(startedWith(plain, { plainHttp: true, isDev: true }).legacy.enabled, true)
  const off = parseSettings('{"legacy":{"enabled":false}}')
  assert.equal(startedWith(off, { plainHttp: true, isDev: true }).legacy.enabled, false)
})

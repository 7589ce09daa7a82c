// Settings that depend on how a server is started, and errors for a backup that cannot be written and a data folder that
// cannot be read.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import { it } from 'node:test'
import { parseSettings, SettingsError } from '../server/config/settings.ts'
import { openMemory } from '../store/memory.ts'
import { startedWith } from './control-plane.ts'
import { handleRequest } from './operator-requests.ts'
import { startFailure } from './start-failure.ts'
import { storeAddressFor } from './store-place.ts'

const plain = parseSettings(undefined)

it('svc3 server refuses private and loopback registries, also with plain HTTP; svc3 dev allows them', () => {
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

it('the gateway for 2.4.x is enabled by default in svc3 dev only', () => {
  assert.equal(startedWith(plain, { plainHttp: true }).legacy.enabled, false)
  assert.equal(startedWith(plain, { plainHttp: true, isDev: true }).legacy.enabled, true)
  const off = parseSettings('{"legacy":{"enabled":false}}')
  assert.equal(startedWith(off, { plainHttp: true, isDev: true }).legacy.enabled, false)
})

/** As for a user other than root, even if root runs the test. */
const denied = (file: string) =>
  Promise.reject(Object.assign(new Error(`EACCES: permission denied, open '${file}'`), { code: 'EACCES', path: file }))

it('a server that cannot write a backup names its user and a folder that it can write', async (test) => {
  test.mock.method(fs, 'open', denied)
  test.mock.method(fs, 'rm', denied)
  const operated = { store: openMemory(), dataDir: '/var/lib/svc3' } as unknown as Parameters<typeof handleRequest>[0]
  const file = '/nowhere/else/all.tar'
  await assert.rejects(handleRequest(operated, { name: 'backup', file, withImages: false }), {
    name: 'OperatorError',
    message: `The server runs as ${os.userInfo().username} and cannot write to /nowhere/else. Choose a file in /var/lib/svc3`,
  })
})

it('the error for a data folder of another user suggests sudo', async (test) => {
  test.mock.method(fs, 'readFile', denied)
  await assert.rejects(storeAddressFor('/var/lib/svc3', undefined), {
    message: 'Cannot read /var/lib/svc3 (EACCES). Run this with sudo, or as the owner of the folder',
  })
})

it('the error for invalid settings names the page about settings', async () => {
  const error = new SettingsError('Invalid config.json: limits.bodyBytes must be integer')
  const options = { listen: { host: '127.0.0.1', port: 0 }, dataDir: '/nowhere' }
  const [, next] = await startFailure(error, options)
  assert.equal(next, 'Nothing was started. See docs/reference/config.md')
})

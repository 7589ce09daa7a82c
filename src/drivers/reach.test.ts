// Why a connection to a guest failed.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { unreachable } from './reach.ts'

const failing = (code?: string) => Object.assign(new Error(`connect ${code}`), code === undefined ? {} : { code })

it('the error of a connection to a guest says why it cannot be reached, with the error as message', () => {
  for (const [code, address, platform, reason] of [
    ['ECONNREFUSED', '192.168.64.5', 'darwin', 'Refused'],
    ['EHOSTUNREACH', '192.168.64.5', 'darwin', 'BlockedByLocalNetwork'],
    ['EHOSTUNREACH', '10.0.0.9', 'darwin', 'BlockedByLocalNetwork'],
    ['EHOSTUNREACH', '8.8.8.8', 'darwin', 'NoRoute'],
    ['EHOSTUNREACH', '192.168.64.5', 'linux', 'NoRoute'],
    ['EHOSTDOWN', '192.168.64.5', 'darwin', 'NoRoute'],
    ['ENETUNREACH', '192.168.64.5', 'darwin', 'NoRoute'],
    [undefined, '192.168.64.5', 'darwin', 'NoAnswer'],
  ] as const)
    assert.deepEqual(unreachable(failing(code), address, platform), { reason, message: `connect ${code}` })
})

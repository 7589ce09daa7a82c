// A command requests the revision that the last one saw: from the same service, for some minutes, and ignoring errors.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { Host } from '../host.ts'
import { keptRevision } from './kept-revision.ts'

let folder: string
let nowMs: number
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-revision-'))
  nowMs = Date.parse('2026-11-15T11:00:00Z')
})
afterEach(() => fs.rmSync(folder, { recursive: true, force: true }))

const url = 'https://svc3.example.com'
const kept = (apiUrl = url, env: Host['env'] = { XDG_CACHE_HOME: folder }) =>
  keptRevision({ env, now: () => new Date(nowMs) } as Host, apiUrl)

describe('the revision kept between commands', () => {
  it('the revision kept between commands is the highest one of each service', () => {
    const first = kept()
    assert.equal(first.latest(), undefined)
    for (const revision of ['9', '10', '8', 'x', undefined]) first.saw(revision)
    assert.equal(kept().latest(), '10')
    assert.equal(kept('https://other.example.com').latest(), undefined)
    kept('https://other.example.com').saw('3')
    assert.deepEqual([kept().latest(), kept('https://other.example.com').latest()], ['10', '3'])
    assert.equal(fs.statSync(path.join(folder, 'svc3/revisions.json')).mode & 0o777, 0o600)
  })

  it('the revision kept between commands is forgotten after some minutes', () => {
    kept().saw('10')
    nowMs += 11 * 60_000
    assert.equal(kept().latest(), undefined)
  })

  it('commands work if the stored revision cannot be written or read', () => {
    const nowhere = kept(url, {})
    nowhere.saw('5')
    assert.equal(nowhere.latest(), '5')
    const blocked = kept(url, { XDG_CACHE_HOME: '/dev/null' })
    blocked.saw('5')
    assert.equal(blocked.latest(), '5')
    fs.mkdirSync(path.join(folder, 'svc3'))
    fs.writeFileSync(path.join(folder, 'svc3/revisions.json'), '{"https://svc3.example.com":7,')
    assert.equal(kept().latest(), undefined)
  })
})

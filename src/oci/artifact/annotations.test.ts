// What a pushed image says of itself, by where it goes and what it was made from.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { annotationsOf } from './annotations.ts'

const digest = `sha256:${'a'.repeat(64)}`
const to = { registry: 'ghcr.io', repository: 'acme/ios/sonoma', tag: '1.2', digest: undefined }

it('the annotations of a push are its title, version and time, and the base where that is in a registry', () => {
  const createdAt = '2026-11-15T09:00:00Z'
  const own = {
    'org.opencontainers.image.created': createdAt,
    'org.opencontainers.image.title': 'sonoma',
    'org.opencontainers.image.version': '1.2',
  }
  assert.deepEqual(annotationsOf({ to, createdAt }), own)
  const from = { registry: 'reg:5000', repository: 'base', tag: 'v1', digest, server: 'http://reg:5000' }
  assert.deepEqual(annotationsOf({ to, createdAt, from }), {
    ...own,
    'org.opencontainers.image.source': 'http://reg:5000/base',
    'org.opencontainers.image.base.name': 'reg:5000/base:v1',
    'org.opencontainers.image.base.digest': digest,
  })
  const untagged = annotationsOf({ to, from: { ...from, tag: undefined } })
  assert.equal(untagged['org.opencontainers.image.base.name'], 'reg:5000/base')
  assert.ok(!('org.opencontainers.image.created' in untagged))
})

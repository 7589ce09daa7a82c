// Image metrics of nodes, added up over restarts of their agents.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { ImageFigures } from '../../api/nodes/agent.ts'
import { createImageFigures } from './image-figures.ts'

it('image metrics of nodes are added up, also when agents restart', () => {
  const none: ImageFigures = { reads: 0, readWaitMs: 0, peerBytes: 0, serverBytes: 0, registryBytes: 0 }
  const sum = { reads: 0, registryBytes: 0 }
  const seen = createImageFigures(({ reads, registryBytes }) => {
    sum.reads += reads
    sum.registryBytes += registryBytes
  })
  seen('a', { ...none, reads: 5, registryBytes: 100 })
  seen('a', { ...none, reads: 7, registryBytes: 150 })
  seen('b', { ...none, reads: 1 })
  seen('a', { ...none, reads: 2, registryBytes: 10 })
  assert.deepEqual(sum, { reads: 10, registryBytes: 160 })
})

// How a node gets another key: its agent asks, by the word of the key that it has; and what it gets for the one that it
// has. Not in the API document.
import * as t from 'typebox'
import { base, operation } from '../operation.ts'
import { Timestamp } from '../records.ts'

/** With every token, for the key that asked for it: what the node shows to other nodes, and judges theirs by. PEM. */
export const NodeCertificate = t.Object({
  certificate: t.String(),
  /** The cluster's own, which vouches for all of its nodes. */
  authority: t.String(),
})
export type NodeCertificate = t.Static<typeof NodeCertificate>

export const replaceNodeKey = operation({
  id: 'replaceNodeKey',
  noun: 'node-key',
  isUnpublished: true,
  isIdempotent: true,
  method: 'POST',
  path: `${base}/agent/key`,
  allow: 'anyone',
  summary: 'Replace the key of a node',
  involves: 'body.name',
  involvesKind: 'nodes',
  past: 'replaced its key',
  body: t.Object({
    name: t.String({ minLength: 1, maxLength: 256 }),
    at: Timestamp,
    publicKey: t.String({ maxLength: 512, description: 'New key: Ed25519, as SPKI in base64' }),
    signature: t.String({
      maxLength: 512,
      writeOnly: true,
      description: 'Ed25519 over `svc3-agent-key\\n<name>\\n<publicKey>\\n<at>` by the old key of the node, in base64',
    }),
  }),
  response: t.Object({ name: t.String(), namespace: t.Optional(t.String()) }),
  refuses: ['Unauthorized', 'Invalid'],
  example: {
    body: {
      name: 'mini-arm-13',
      at: '2026-11-15T09:00:00Z',
      publicKey: 'MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=',
      signature: 'c2lnbmF0dXJl',
    },
    response: { name: 'mini-arm-13', namespace: 'svc-default' },
  },
})

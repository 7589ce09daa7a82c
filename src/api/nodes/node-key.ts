// The key of a node: how its agent replaces it, signing with the current one, and the certificate that the server issues
// for it. Not in the API document.
import * as t from 'typebox'
import { base, operation } from '../operation.ts'
import { Timestamp } from '../records.ts'

/** Issued with every token, for the key that requested it, in PEM. Nodes use it to authenticate each other. */
export const NodeCertificate = t.Object({
  certificate: t.String(),
  /** The authority of the cluster, which signs the certificates of all of its nodes. */
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

// The protocol of connections between nodes: TLS 1.3 with a certificate of the cluster's CA on each side, and tickets in a
// header.
import { constants } from 'node:crypto'
import type { SecureContextOptions } from 'node:tls'
import type { Peer } from '../../api/nodes/agent.ts'
import type { NodeCertificate } from '../../api/nodes/node-key.ts'
import { nodeUri } from '../../rules/names.ts'

/** All fields are PEM. The key never leaves this node. */
export interface NodeCredentials extends NodeCertificate {
  readonly key: string
}

/** Only the cluster's CA is trusted, not those that Node.js trusts. Without credentials no peer is trusted. */
export const peerTls = (
  credentials: NodeCredentials | undefined,
): SecureContextOptions & { rejectUnauthorized: true } => ({
  ca: credentials ? [credentials.authority] : [],
  ...(credentials && { cert: credentials.certificate, key: credentials.key }),
  minVersion: 'TLSv1.3',
  maxVersion: 'TLSv1.3',
  // No session tickets: every connection is checked by the current certificates.
  secureOptions: constants.SSL_OP_NO_TICKET,
  rejectUnauthorized: true,
})

/** Whether a certificate is for this node only. `alternativeNames` is in the format of Node.js. */
export const namesNode = (alternativeNames: string | undefined, uid: string): boolean =>
  uid !== '' && alternativeNames === `URI:${nodeUri(uid)}`

/** Errors of TLS if the clock of one side is wrong. */
export const outOfTime: ReadonlySet<string> = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'])

const ticketForm = /^svc3-ticket (\S+) ([A-Za-z0-9+/=]+)$/

export const ticketHeader = ({ identity, key }: Pick<Peer, 'identity' | 'key'>): string =>
  `svc3-ticket ${identity} ${key}`

/** Both fields are empty if there is no ticket. */
export function readTicket(header: string | undefined): { readonly identity: string; readonly key: Buffer } {
  const [, identity = '', key = ''] = ticketForm.exec(header ?? '') ?? []
  return { identity, key: Buffer.from(key, 'base64') }
}

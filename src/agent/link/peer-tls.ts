// What both sides of a connection between nodes agree on: TLS 1.3, a certificate of the cluster's authority on each side,
// and how a ticket is shown.
import { constants } from 'node:crypto'
import type { SecureContextOptions } from 'node:tls'
import type { Peer } from '../../api/nodes/agent.ts'
import type { NodeCertificate } from '../../api/nodes/node-key.ts'
import { nodeUri } from '../../rules/names.ts'

/** All of it PEM; the key is this node's own, and stays here. */
export interface NodeCredentials extends NodeCertificate {
  readonly key: string
}

/** Nobody but the cluster's authority counts: without credentials nobody at all, and not those that Node trusts. */
export const peerTls = (
  credentials: NodeCredentials | undefined,
): SecureContextOptions & { rejectUnauthorized: true } => ({
  ca: credentials ? [credentials.authority] : [],
  ...(credentials && { cert: credentials.certificate, key: credentials.key }),
  minVersion: 'TLSv1.3',
  maxVersion: 'TLSv1.3',
  // Every connection shows its certificate: one that was good an hour ago is not remembered.
  secureOptions: constants.SSL_OP_NO_TICKET,
  rejectUnauthorized: true,
})

/** Whether a certificate is for this node, and for nothing besides; as Node writes alternative names. */
export const namesNode = (alternativeNames: string | undefined, uid: string): boolean =>
  uid !== '' && alternativeNames === `URI:${nodeUri(uid)}`

/** What TLS says where the clock of one of the two is off. */
export const outOfTime: ReadonlySet<string> = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'])

const ticketForm = /^svc3-ticket (\S+) ([A-Za-z0-9+/=]+)$/

export const ticketHeader = ({ identity, key }: Pick<Peer, 'identity' | 'key'>): string =>
  `svc3-ticket ${identity} ${key}`

/** Empty where there is none. */
export function readTicket(header: string | undefined): { readonly identity: string; readonly key: Buffer } {
  const [, identity = '', key = ''] = ticketForm.exec(header ?? '') ?? []
  return { identity, key: Buffer.from(key, 'base64') }
}

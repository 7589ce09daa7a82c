// The cluster's certificate authority for nodes. Certificates live as long as a node's token, so no revocation list is
// needed; its key is a sealed record, so that every server signs with the same one.
import { X509Certificate } from 'node:crypto'
import type { NodeCertificate } from '../../api/nodes/node-key.ts'
import type { Secrets } from '../../auth/secrets.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import type { CertificateRecord, Collections } from '../../store/records/collections.ts'
import type { Entry } from '../../store/store.ts'
import type { Pair } from '../tls/certificate-check.ts'
import type { CertifiedNode } from './certificates.ts'

interface NodeAuthorityOptions {
  readonly collections: Pick<Collections, 'certificates'>
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
}

const recordName = 'node-authority'
const yearMs = 365 * 86_400_000
const validYears = 10
/** Renewed in its last year. Nodes get the new one with their next token. */
const renewBeforeMs = yearMs
/** Clocks of nodes may be off. */
const skewMs = 3_600_000

export class NodeAuthority {
  readonly #options: NodeAuthorityOptions
  #making: Promise<Pair> | undefined

  constructor(options: NodeAuthorityOptions) {
    this.#options = options
  }

  /**
   * Returns a certificate that is valid slightly longer than the token of the node. A failure is logged, because a node
   * without a certificate only cannot exchange content with other nodes.
   */
  async certify(node: CertifiedNode, tokenEnd: Date): Promise<NodeCertificate | undefined> {
    const { clock, log } = this.#options
    const notBefore = new Date(clock.now().getTime() - skewMs)
    const notAfter = new Date(tokenEnd.getTime() + skewMs)
    try {
      const authority = await this.current()
      const { signNode } = await import('./certificates.ts')
      const certificate = await signNode(authority, node, { notBefore, notAfter })
      return { certificate, authority: authority.certificate }
    } catch (error) {
      log.error(
        'could not issue a node certificate; the node fetches no content from other nodes',
        { node: node.name },
        error,
      )
      return undefined
    }
  }

  /**
   * Creates the authority when it is first needed, and renews it with the same key, so that issued certificates stay
   * valid. Throws SealError if the stored key cannot be decrypted.
   */
  async current(): Promise<Pair> {
    const { collections, secrets, clock } = this.#options
    const entry = collections.certificates.get('', recordName)
    const pair = entry && { certificate: entry.value.certificate, key: secrets.open(entry.key, entry.value) }
    const endMs = pair ? new X509Certificate(pair.certificate).validToDate.getTime() : 0
    if (pair && endMs - clock.now().getTime() > renewBeforeMs) return pair
    this.#making ??= this.#make(entry, pair?.key).finally(() => {
      this.#making = undefined
    })
    return this.#making
  }

  async #make(before: Entry<CertificateRecord> | undefined, key: string | undefined): Promise<Pair> {
    const { collections, secrets, clock, log } = this.#options
    const now = clock.now()
    const validity = {
      notBefore: new Date(now.getTime() - skewMs),
      notAfter: new Date(now.getTime() + validYears * yearMs),
    }
    const { makeNodeAuthority } = await import('./certificates.ts')
    const pair = await makeNodeAuthority(validity, key)
    const fields = {
      certificate: pair.certificate,
      origin: 'made' as const,
      updatedAt: timestamp(now),
      updatedBy: 'svc3',
    }
    const { certificates } = collections
    const recordKey = certificates.key('', recordName)
    // If several servers create it at the same time, the first one wins.
    const entry = await secrets.sealing((protect) =>
      certificates.change(recordKey, (_, current) =>
        current?.rev === before?.rev ? protect(recordKey, fields, pair.key) : undefined,
      ),
    )
    if (entry?.value.certificate !== pair.certificate) {
      this.#making = undefined
      return this.current()
    }
    const reason = `valid until ${timestamp(validity.notAfter)}`
    if (before) log.info('renewed the certificate authority for nodes, with the same key', { reason })
    return pair
  }
}

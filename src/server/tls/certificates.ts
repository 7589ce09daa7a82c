// The certificate for HTTPS: the uploaded one, or a self-signed one that is renewed automatically. It is a record of
// the store, with its key sealed, so that every server has the same.
import type { Certificate } from '../../api/service/certificates.ts'
import type { Secrets } from '../../auth/secrets.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import type { CertificateRecord, Collections } from '../../store/records/collections.ts'
import type { Entry } from '../../store/store.ts'
import { factsOf, type Pair } from './certificate-check.ts'

export interface Served extends Pair {
  readonly facts: Certificate
}

interface CertificateOptions {
  readonly collections: Pick<Collections, 'certificates'>
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
  /** Host names for a self-signed certificate. */
  readonly names: readonly string[]
}

const recordName = 'api'
const renewBeforeMs = 30 * 86_400_000

export class Certificates {
  readonly #options: CertificateOptions
  readonly #listeners = new Set<(served: Served) => void>()
  #served: Served | undefined
  #making: Promise<Served> | undefined

  constructor(options: CertificateOptions) {
    this.#options = options
    // Never unsubscribed: the view and the service end together.
    options.collections.certificates.view.subscribe(() => this.#follow())
  }

  /** The stored certificate, or else a new self-signed one. Throws SealError if the stored key cannot be decrypted. */
  async current(): Promise<Served> {
    const entry = this.#entry()
    if (entry) return this.#open(entry)
    this.#making ??= this.#make().finally(() => {
      this.#making = undefined
    })
    return this.#making
  }

  /** Calls back with every new certificate, also those that another server stored. The listener MUST NOT throw. */
  subscribe(listener: (served: Served) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** On return, new connections get this certificate. */
  async replace(pair: Pair, by: string): Promise<Certificate> {
    return (await this.#write(pair, 'uploaded', by)).facts
  }

  /**
   * Renews a self-signed certificate that expires soon with the same key, which clients have pinned. Logs a warning for an
   * uploaded one.
   */
  async renew(): Promise<void> {
    const { clock, log, names } = this.#options
    const entry = this.#entry()
    if (!entry) return
    const { notAfter } = factsOf(entry.value.certificate)
    const now = clock.now()
    if (Date.parse(notAfter) - now.getTime() > renewBeforeMs) return
    if (entry.value.origin === 'uploaded')
      return log.warn('the uploaded certificate expires soon: upload a new one', { reason: `valid until ${notAfter}` })
    const pair = await selfSigned(names, now, this.#open(entry).key)
    const { facts } = await this.#write(pair, 'made', 'svc3', (current) => current?.rev === entry.rev)
    log.info('renewed the API certificate with the same key', { reason: `valid until ${facts.notAfter}` })
  }

  #entry(): Entry<CertificateRecord> | undefined {
    return this.#options.collections.certificates.get('', recordName)
  }

  async #make(): Promise<Served> {
    const pair = await selfSigned(this.#options.names, this.#options.clock.now())
    // If several servers start at the same time, the first certificate wins.
    return this.#write(pair, 'made', 'svc3', (current) => current === undefined)
  }

  /** Returns the certificate that is served afterwards: the stored one if `isWanted` returns false for it. */
  async #write(
    { certificate, key: secret }: Pair,
    origin: CertificateRecord['origin'],
    updatedBy: string,
    isWanted: (current: Entry<CertificateRecord> | undefined) => boolean = () => true,
  ): Promise<Served> {
    const { secrets, clock } = this.#options
    const { certificates } = this.#options.collections
    const key = certificates.key('', recordName)
    const fields = { certificate, origin, updatedAt: timestamp(clock.now()), updatedBy }
    const entry = await secrets.sealing((protect) =>
      certificates.change(key, (_, current) => (isWanted(current) ? protect(key, fields, secret) : undefined)),
    )
    return entry ? this.#open(entry) : this.current()
  }

  #open({ key, value }: Entry<CertificateRecord>): Served {
    if (this.#served?.certificate === value.certificate) return this.#served
    this.#served = {
      certificate: value.certificate,
      key: this.#options.secrets.open(key, value),
      facts: factsOf(value.certificate),
    }
    return this.#served
  }

  #follow(): void {
    const entry = this.#entry()
    const before = this.#served
    if (!entry || entry.value.certificate === before?.certificate) return
    try {
      const served = this.#open(entry)
      for (const listener of this.#listeners) listener(served)
    } catch (error) {
      this.#options.log.error('cannot use the new certificate, keeping the old one', {}, error)
    }
  }
}

const selfSigned = async (names: readonly string[], now: Date, key?: string): Promise<Pair> =>
  (await import('./self-signed.ts')).makeSelfSigned(names, now, key)

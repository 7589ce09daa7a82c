// Secrets of records: sealed when they are written, opened where they are used, and sealed again after a rotation.
import type { Collection } from '../store/collection.ts'
import type { SealedRecord } from '../store/records/collections.ts'
import type { Keyring } from './keyring.ts'
import { SealError, seal, sealedWith, unseal } from './seal.ts'

export interface ResealReport {
  readonly resealed: number
  /** Records that did not open and are unchanged. */
  readonly refused: readonly { readonly key: string; readonly problem: string }[]
}

type Protect = <F extends object>(key: string, fields: F, secret: string) => F & SealedRecord

/** Records that are sealed again concurrently share commits of the store. */
const resealsAtOnce = 32

export class Secrets {
  #ring: Keyring
  readonly #writes = new Set<Promise<unknown>>()

  constructor(ring: Keyring) {
    this.#ring = ring
  }

  get ring(): Keyring {
    return this.#ring
  }

  /** Seals with the new ring from now on. Resolves when all writes of records that the old ring sealed have ended. */
  async use(ring: Keyring): Promise<void> {
    this.#ring = ring
    await Promise.allSettled([...this.#writes])
  }

  /**
   * The only way to seal. `protect` binds a secret to `key` and to all other fields of its record. `work` MUST write the
   * record before it ends, so that a rotation can wait for it.
   */
  async sealing<T>(work: (protect: Protect) => Promise<T>): Promise<T> {
    const running = work((key, fields, secret) => ({
      ...fields,
      sealed: seal(this.#ring, secret, { key, fields: { ...fields } as Record<string, unknown> }),
    }))
    this.#writes.add(running)
    try {
      return await running
    } finally {
      this.#writes.delete(running)
    }
  }

  /** Throws SealError if the record was moved or altered. */
  open(key: string, record: SealedRecord): string {
    const { sealed, ...fields } = record
    return unseal(this.#ring, sealed, { key, fields })
  }

  /** Opens every record of a collection, and seals those of other keys with the active one. */
  async reseal<T extends SealedRecord>(collection: Collection<T>): Promise<ResealReport> {
    let resealed = 0
    const refused: { key: string; problem: string }[] = []
    const keys = collection.list().map(({ key }) => key)
    const work = async (): Promise<void> => {
      for (let key = keys.pop(); key !== undefined; key = keys.pop()) {
        try {
          if (await this.#resealOne(collection, key)) resealed += 1
        } catch (error) {
          if (!(error instanceof SealError)) throw error
          refused.push({ key, problem: error.message })
        }
      }
    }
    await Promise.all(Array.from({ length: resealsAtOnce }, work))
    return { resealed, refused }
  }

  /** Returns whether the record was sealed again. */
  async #resealOne<T extends SealedRecord>(collection: Collection<T>, key: string): Promise<boolean> {
    let isStale = false
    await this.sealing((protect) =>
      collection.change(key, (record) => {
        const secret = record && this.open(key, record)
        isStale = record !== undefined && sealedWith(record.sealed) !== this.#ring.active.id
        if (!record || secret === undefined || !isStale) return undefined
        const { sealed: _, ...fields } = record
        return protect(key, fields, secret) as unknown as T
      }),
    )
    return isStale
  }
}

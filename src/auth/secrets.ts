// Records with a sealed secret: sealed as they are written, opened where they are used, sealed again after a rotation.
import type { Collection } from '../store/collection.ts'
import { isFault } from '../store/store.ts'
import type { Keyring } from './keyring.ts'
import { SealError, type Sealed, seal, sealedWith, unseal } from './seal.ts'

export interface WithSecret {
  readonly sealed: Sealed
}

export interface ResealReport {
  readonly resealed: number
  /** Records that did not open: left as they are, named so that somebody can look. */
  readonly refused: readonly { readonly key: string; readonly problem: string }[]
}

export class Secrets {
  #ring: Keyring

  constructor(ring: Keyring) {
    this.#ring = ring
  }

  get ring(): Keyring {
    return this.#ring
  }

  use(ring: Keyring): void {
    this.#ring = ring
  }

  /** The record with its secret sealed and bound to `key` and to every other field. */
  protect<F extends object>(key: string, fields: F, secret: string): F & WithSecret {
    return { ...fields, sealed: seal(this.#ring, secret, { key, fields: { ...fields } as Record<string, unknown> }) }
  }

  /** Throws SealError when the record was moved or altered. */
  open(key: string, record: WithSecret): string {
    const { sealed, ...fields } = record
    return unseal(this.#ring, sealed, { key, fields })
  }

  /** Opens every record of a collection, and seals those under the active key that are under another one. */
  async reseal<T extends WithSecret>(collection: Collection<T>): Promise<ResealReport> {
    let resealed = 0
    const refused: { key: string; problem: string }[] = []
    for (const { key } of collection.list()) {
      try {
        if (await this.#resealOne(collection, key)) resealed += 1
      } catch (error) {
        if (!(error instanceof SealError)) throw error
        refused.push({ key, problem: error.message })
      }
    }
    return { resealed, refused }
  }

  /** Whether it had to be sealed anew. */
  async #resealOne<T extends WithSecret>(collection: Collection<T>, key: string): Promise<boolean> {
    for (;;) {
      const entry = collection.at(key)
      if (!entry) return false
      const secret = this.open(key, entry.value)
      if (sealedWith(entry.value.sealed) === this.#ring.active.id) return false
      const { sealed: _, ...fields } = entry.value
      try {
        await collection.update(entry, this.protect(key, fields, secret) as unknown as T)
        return true
      } catch (error) {
        // Changed or removed meanwhile: look again.
        if (!isFault(error, 'Conflict') && !isFault(error, 'NotFound')) throw error
      }
    }
  }
}

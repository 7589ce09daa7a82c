// Errors that every engine reports in the same words: what happened, to what, and what to do next.
import { type Precondition, PreconditionFailed, type Rev, StoreError } from './store.ts'

export const keyExists = (key: string): StoreError =>
  new StoreError('AlreadyExists', `"${key}" already exists: update it, or choose another key`)

export const keyNotFound = (key: string): StoreError =>
  new StoreError('NotFound', `"${key}" not found: it was deleted or never created`)

export const revisionConflict = (key: string, expected: Rev, actual: Rev): StoreError =>
  new StoreError('Conflict', otherRev(key, expected, actual))

const otherRev = (key: string, expected: Rev, actual: Rev): string =>
  `"${key}" is at revision ${actual}, not ${expected}: read it again`

export const preconditionFailed = (precondition: Precondition, actual: Rev | undefined): PreconditionFailed => {
  const { key, rev } = precondition
  const gone = `"${key}" no longer exists; it was at revision ${rev}: read it again`
  return new PreconditionFailed({ key, rev }, actual === undefined ? gone : otherRev(key, rev, actual))
}

export const compacted = (after: Rev): StoreError =>
  new StoreError('Compacted', `The changes after revision ${after} have expired: list again and watch from there`)

export const closed = (): StoreError =>
  new StoreError('Unavailable', 'The store is closed: nothing was read or written')

export const restoreAdvice =
  'restore the latest backup (made by svc3 server backup FILE): svc3 server restore FILE --data NEW-FOLDER'

export const damaged = (key: string, why: string): StoreError =>
  new StoreError('Damaged', `Record "${key}" is damaged: ${why}; ${restoreAdvice}`)

/** `known` is the format of this program. 3.0.0-alpha.31 upgrades most older data when it opens them. */
export const otherFormat = (place: string, format: number, known: number): StoreError => {
  const advice =
    format > known
      ? 'run the newer svc3 that wrote it, or restore a backup from before the upgrade'
      : 'start svc3 3.0.0-alpha.31 on it once, which upgrades it or says what to do'
  return new StoreError(
    'OtherFormat',
    `The data ${place} has format ${format}, and this program uses ${known}: ${advice}`,
  )
}

/** Whether the store is out of space, as the engines report it. Retrying does not help. */
export const isOutOfSpace = (error: StoreError): boolean =>
  error.fault === 'Unavailable' && /^(disk full|etcd has used up its quota)/.test(error.message)

/** A revision as a number, or NaN (equal to nothing) for text that no engine has issued. */
export const revNumber = (rev: Rev): number => (/^(0|[1-9]\d{0,14})$/.test(rev) ? Number(rev) : Number.NaN)

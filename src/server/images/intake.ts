// Takes a file on the server's disk in as the content of an Updating record, then makes the record Ready by one
// compare-and-set. For all uploads and pulls.
import { ApiError, invalid } from '../../api/errors.ts'
import { DiskFullError } from '../../images/content/temporary-files.ts'
import { BadDiskError } from '../../images/qcow2/header.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import type { ImageRecord } from '../../store/records/fleet-records.ts'
import type { Entry } from '../../store/store.ts'
import { diskFull } from '../transfer/uploads.ts'
import type { Firmware, Imported, ImportOptions } from './contents.ts'
import type { ImageStore } from './store.ts'

export interface Intake {
  readonly store: ImageStore
  readonly entry: Entry<ImageRecord>
  readonly firmware: Firmware | undefined
  readonly signal: AbortSignal
  /** Brings the content into the store. */
  take(options: ImportOptions): Promise<Imported>
  /** All of it is in the store, and no record says so yet. */
  stored?(): void
}

export interface Progress {
  readonly percent: number
  readonly bytes: number
}

/** The record tells how far it is, but a write for every chunk would be too much of it. */
const reportEveryMs = 1_000

/** The caller holds the collector back (`uploads.hold`). A failure leaves the record as it is. */
export async function takeIn({ clock }: { readonly clock: Clock }, intake: Intake): Promise<Entry<ImageRecord>> {
  const { store, entry, firmware, signal } = intake
  const reporter = progressReporter((progress) => store.change(entry, (record) => ({ ...record, progress })))
  const { architecture, os } = entry.value
  const imported = await intake
    .take({ architecture, firmware, os, signal, progress: reporter.report })
    .finally(reporter.end)
  intake.stored?.()
  return store.change(entry, ({ progress: _, state: __, pull: ___, ...record }) => ({
    ...record,
    ...imported,
    updatedAt: timestamp(clock.now()),
  }))
}

/** Reports progress, one report at a time and throttled. A failed report does not fail the intake. */
function progressReporter(write: (progress: Progress) => Promise<unknown>): {
  report(progress: Progress): void
  end(): Promise<void>
} {
  let lastMs = performance.now()
  let writing: Promise<unknown> | undefined
  return {
    report(progress) {
      if (writing || performance.now() - lastMs < reportEveryMs) return
      writing = write(progress)
        .catch(() => undefined)
        .finally(() => {
          lastMs = performance.now()
          writing = undefined
        })
    },
    async end() {
      lastMs = Number.POSITIVE_INFINITY
      await writing
    },
  }
}

/** What QEMU tools make of a file is never asked: src/images has its own reader. */
export function refusalOf(error: unknown, noun: string, ending: AbortSignal): unknown {
  if (error instanceof BadDiskError)
    return invalid(
      noun,
      [{ field: 'image', reason: 'FieldValueInvalid', message: error.message }],
      'Convert it to a raw or qcow2 disk, then upload that',
    )
  if (error instanceof DiskFullError) return diskFull(error)
  if (!ending.aborted) return error
  return new ApiError('ServiceUnavailable', 'The server stopped before the upload was complete; nothing was kept', {
    hint: 'Upload it again when the server is back',
    retryAfterSeconds: 5,
  })
}

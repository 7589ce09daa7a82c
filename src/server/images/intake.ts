// Takes a file on the server's disk in as the content of an Updating record, then makes the record Ready by one
// compare-and-set. For all uploads and pulls.
import { ApiError, invalid, invalidField } from '../../api/errors.ts'
import { DiskFullError } from '../../images/content/temporary-files.ts'
import { BadDiskError } from '../../images/qcow2/header.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import { createReporter } from '../../platform/reporter.ts'
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

export interface IntakeProgress {
  readonly percent: number
  readonly bytes: number
}

/** The caller holds the collector back (`uploads.hold`). A failure leaves the record as it is. */
export async function takeIn({ clock }: { readonly clock: Clock }, intake: Intake): Promise<Entry<ImageRecord>> {
  const { store, entry, firmware, signal } = intake
  const { architecture, os, progress: before } = entry.value
  const imported = await taking()
  intake.stored?.()
  return store.change(entry, ({ progress: _, state: __, pull: ___, ...record }) => ({
    ...record,
    ...imported,
    updatedAt: timestamp(clock.now()),
  }))

  /** The record tells how far it is; where it cannot be written, the intake goes on. */
  async function taking(): Promise<Imported> {
    let far: IntakeProgress = { percent: before?.percent ?? 0, bytes: before?.bytes ?? 0 }
    await using reporter = createReporter(
      (progress: IntakeProgress & { readonly phase?: string }) =>
        store.change(entry, (record) => ({ ...record, progress })),
      { isPatient: true },
    )
    return await intake.take({
      architecture,
      firmware,
      os,
      signal,
      progress(progress) {
        far = progress
        reporter.report(far)
      },
      waits: (reason) => reporter.report({ ...far, ...(reason !== undefined && { phase: reason }) }),
    })
  }
}

type Noun = 'images' | 'isos'

/** What was sent, and what to send in its place. */
const better: Readonly<Record<Noun, readonly [string, string]>> = {
  images: ['image', 'Convert it to a raw or qcow2 disk, then upload that'],
  isos: ['iso', 'Upload an .iso file; on a Mac, hdiutil convert -format UDTO makes one of a .dmg'],
}

/** What QEMU tools make of a file is never asked: src/images has its own reader. */
export function intakeError(error: unknown, noun: Noun, ending: AbortSignal): unknown {
  if (error instanceof BadDiskError) {
    const [field, hint] = better[noun]
    return invalid(noun, [invalidField(field, error.message)], hint)
  }
  if (error instanceof DiskFullError) return diskFull(error)
  if (!ending.aborted) return error
  return new ApiError('ServiceUnavailable', 'The server stopped before the upload was complete; nothing was kept', {
    hint: 'Upload it again when the server is back',
    retryAfterSeconds: 5,
  })
}

// Stores the content of a record that is Updating, and then makes the record Ready by one compare-and-set. Used by all
// uploads and pulls.
import { ApiError, invalid, invalidField } from '../../api/errors.ts'
import { DiskFullError } from '../../images/content/temporary-files.ts'
import { BadDiskError } from '../../images/qcow2/header.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import { defined } from '../../platform/defined.ts'
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
  take(options: ImportOptions): Promise<Imported>
  /** Called when the content is stored, before the record is written. */
  stored?(): void
}

export interface IntakeProgress {
  readonly percent: number
  readonly bytes: number
}

/** Callers must hold off the collector with `uploads.hold`. A failure does not change the record. */
export async function takeIn({ clock }: { readonly clock: Clock }, intake: Intake): Promise<Entry<ImageRecord>> {
  const { store, entry, firmware, signal } = intake
  const { architecture, os, progress: before } = entry.value
  let latest: IntakeProgress = { percent: before?.percent ?? 0, bytes: before?.bytes ?? 0 }
  const reporter = createReporter(
    (progress: IntakeProgress & { readonly phase?: string }) =>
      store.change(entry, (record) => ({ ...record, progress })),
    { isPatient: true },
  )
  const importing = intake.take({
    architecture,
    firmware,
    os,
    signal,
    progress(progress) {
      latest = progress
      reporter.report(latest)
    },
    waits: (phase) => reporter.report({ ...latest, ...defined({ phase }) }),
  })
  // The reporter is disposed first, so that it writes nothing after the record is Ready.
  const imported = await importing.finally(() => reporter[Symbol.asyncDispose]())
  intake.stored?.()
  return store.change(entry, ({ progress: _, state: __, pull: ___, ...record }) => ({
    ...record,
    ...imported,
    updatedAt: timestamp(clock.now()),
  }))
}

type Noun = 'images' | 'isos'

/** The field of the file, and what to upload instead. */
const alternatives: Readonly<Record<Noun, readonly [string, string]>> = {
  images: ['image', 'Convert it to a raw or qcow2 disk, then upload that'],
  isos: ['iso', 'Upload an .iso file; on a Mac, hdiutil convert -format UDTO makes one of a .dmg'],
}

export function intakeError(error: unknown, noun: Noun, ending: AbortSignal): unknown {
  if (error instanceof BadDiskError) {
    const [field, hint] = alternatives[noun]
    return invalid(noun, [invalidField(field, error.message)], hint)
  }
  if (error instanceof DiskFullError) return diskFull(error)
  if (!ending.aborted) return error
  return new ApiError('ServiceUnavailable', 'The server stopped before the upload was complete; nothing was kept', {
    hint: 'Upload it again when the server is back',
    retryAfterSeconds: 5,
  })
}

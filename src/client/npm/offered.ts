// Which operations the package's client has, and in which form.
import type { Operation } from '../../api/operation.ts'

/** Connections, forms and files are not for a request and its answer in JSON. */
export const hasMethod = ({ isUpgrade, isUpload, isDownload, consumes, noun }: Operation): boolean =>
  !isUpgrade && !isUpload && !isDownload && !consumes && noun !== 'uploads'

export const isStreamed = ({ isStream, isDownload }: Operation): boolean => isStream === true || isDownload === true

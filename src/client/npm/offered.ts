// Which operations the client of the npm package has, and in which form.
import type { Operation } from '../../api/operation.ts'

/** Upgraded connections, forms and files do not fit a method with JSON input and output. */
export const hasMethod = ({ isUpgrade, isUpload, isDownload, consumes, noun }: Operation): boolean =>
  !isUpgrade && !isUpload && !isDownload && !consumes && noun !== 'uploads'

export const isStreamed = ({ isStream, isDownload }: Operation): boolean => isStream === true || isDownload === true

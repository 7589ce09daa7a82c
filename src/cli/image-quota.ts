// What copies of images may take of a disk, as it is typed.
import { diskSizeRule, parseDiskSize } from '../rules/sizes.ts'
import { UsageError } from './line/usage.ts'

export function imageQuota(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const bytes = parseDiskSize(text)
  if (bytes !== undefined) return bytes
  throw new UsageError(`--image-quota "${text}" is not ${diskSizeRule}`, 'for example --image-quota 200G')
}

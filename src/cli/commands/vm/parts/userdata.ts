// Reads the first-boot script of a VM from a file or standard input, as base64.

import type { Context } from '../../../command.ts'
import { readInputFile, readStdin } from '../../../input.ts'
import { UsageError } from '../../../line/usage.ts'

/** The limit of the service, before encoding as base64. */
const maxBytes = 256 * 1024

export async function readUserdata(context: Context, file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined
  const bytes =
    file === '-'
      ? await readStdin(context, maxBytes, tooLong)
      : readInputFile(context.host, file, 'Check the path of --userdata')
  if (bytes.length === 0) throw new UsageError('The --userdata script is empty')
  if (bytes.length > maxBytes) throw tooLong()
  return bytes.toString('base64')
}

const tooLong = (): UsageError =>
  new UsageError('The --userdata script is larger than 256 KiB', 'Let the script download the rest')

// Reads the first-boot script of a VM from a file or standard input, as base64.

import fs from 'node:fs'
import path from 'node:path'
import type { Context } from '../../../command.ts'
import { Failure, UsageError } from '../../../line/usage.ts'

/** What the service takes is base64, a third longer. */
const maxBytes = 256 * 1024

export async function readUserdata(context: Context, file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined
  const bytes = file === '-' ? await readStdin(context) : readFile(context, file)
  if (bytes.length === 0) throw new UsageError('The --userdata script is empty')
  if (bytes.length > maxBytes) throw tooLong()
  return bytes.toString('base64')
}

const tooLong = (): UsageError =>
  new UsageError('The --userdata script is larger than 256 KiB', 'Let the script download the rest')

async function readStdin({ host, signal }: Context): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of host.stdin.chunks(signal)) {
    bytes += chunk.length
    if (bytes > maxBytes) throw tooLong()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function readFile({ host }: Context, file: string): Buffer {
  const place = path.resolve(host.workingDir, file)
  try {
    return fs.readFileSync(place)
  } catch (error) {
    throw new Failure(`Cannot read ${place} (${(error as NodeJS.ErrnoException).code})`, 'Check the path of --userdata')
  }
}

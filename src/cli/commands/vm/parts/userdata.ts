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
  if (bytes.length === 0) throw new UsageError('the script of --userdata is empty')
  if (bytes.length > maxBytes) throw tooLong()
  return bytes.toString('base64')
}

const tooLong = (): UsageError =>
  new UsageError('the script of --userdata is longer than 256 KiB', 'let it fetch the rest from elsewhere')

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
    throw new Failure(`cannot read ${place} (${(error as NodeJS.ErrnoException).code})`, 'check the file of --userdata')
  }
}

// Reads files and standard input for commands.
import fs from 'node:fs'
import path from 'node:path'
import type { Context } from './command.ts'
import type { Host } from './host.ts'
import { Failure } from './line/usage.ts'

export function readInputFile({ workingDir }: Pick<Host, 'workingDir'>, file: string, hint: string): Buffer {
  const absolute = path.resolve(workingDir, file)
  try {
    return fs.readFileSync(absolute)
  } catch (error) {
    throw new Failure(`Cannot read ${absolute} (${(error as NodeJS.ErrnoException).code})`, hint)
  }
}

/** Reads standard input to its end, and throws `tooLong()` rather than hold more than `maxBytes`. */
export async function readStdin({ host, signal }: Context, maxBytes: number, tooLong: () => Error): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of host.stdin.chunks(signal)) {
    bytes += chunk.length
    if (bytes > maxBytes) throw tooLong()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Reads one line of standard input, without its end. */
export async function readLine({ stdin }: Pick<Host, 'stdin'>, signal: AbortSignal): Promise<string> {
  let line = ''
  for await (const chunk of stdin.chunks(signal)) {
    line += Buffer.from(chunk).toString('utf8')
    if (/[\r\n]/.test(line)) break
  }
  return line.split(/[\r\n]/)[0]?.trim() ?? ''
}

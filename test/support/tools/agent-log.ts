// A log that tests can read.
import { createLog, type Level, type Log } from '../../../src/platform/log.ts'

export interface LogLine {
  readonly level: Level
  readonly message: string
  readonly name?: string
  readonly namespace?: string
  readonly reason?: string
  readonly problem?: string
}

export function readableLog(): { readonly log: Log; readonly lines: readonly LogLine[] } {
  const lines: LogLine[] = []
  return { log: createLog('info', (line) => void lines.push(JSON.parse(line))), lines }
}

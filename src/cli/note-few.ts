// Notes below a table, of its rows.
import type { Context } from './command.ts'
import { visible } from './output/output.ts'

/** More than these would bury the table. */
const maxNotes = 5

/** `rest` says where the others are read. */
export function noteFew(context: Pick<Context, 'note'>, notes: readonly string[], rest: string): void {
  for (const note of notes.slice(0, maxNotes)) context.note(visible(note))
  const left = notes.length - maxNotes
  if (left > 0) context.note(`${left} more; ${rest}`)
}

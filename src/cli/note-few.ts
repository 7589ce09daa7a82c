// Prints notes about the rows of a table below it.
import type { Context } from './command.ts'
import { visible } from './output/output.ts'

const maxNotes = 5

/** `rest` says how to see the omitted notes. */
export function noteFew(context: Pick<Context, 'note'>, notes: readonly string[], rest: string): void {
  for (const note of notes.slice(0, maxNotes)) context.note(visible(note))
  const left = notes.length - maxNotes
  if (left > 0) context.note(`${left} more; ${rest}`)
}

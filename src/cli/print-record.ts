// What every show command does: one record in full, or as data.
import type { Context } from './command.ts'
import { type Field, recordText } from './output/record.ts'

export async function printRecord<T>(context: Context, record: T, fields: readonly Field<T>[]): Promise<number> {
  if (context.isData) await context.print([record], [], '')
  else context.host.stdout.write(recordText(record, fields, context.rendering()))
  return 0
}

// svc3 migrate map
import { notFound } from '../../../api/errors.ts'
import { callsAt } from '../../../legacy/find.ts'
import { legacyRows } from '../../../legacy/map.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import { advised, advisedColumns } from './advised.ts'

export const command = defineCommand({
  description: 'What replaces each call of the 2.4.x API, or why nothing does. Asks no server.',
  arguments: {
    method: { value: 'METHOD', description: 'of one call' },
    path: { value: 'PATH', description: 'of one call, as it is sent or as the table has it; a URL will do' },
  },
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 migrate map', does: 'The whole table' },
    { line: 'svc3 migrate map POST /resources/vm/deploy', does: 'One call, with an example of what replaces it' },
  ],
  async run(context, { args: { method, path }, options: { namespace } }) {
    const all = legacyRows.flatMap((row) => row.calls.map((call) => ({ row, call })))
    const place = pathIn(path ?? '') ?? pathIn(method ?? '')
    if (method !== undefined && place === undefined)
      throw new UsageError('PATH is missing', 'for example svc3 migrate map POST /resources/vm/deploy')
    const isAsked = path === undefined ? () => true : (verb: string) => verb === method?.toUpperCase()
    const found = place === undefined ? all : callsAt(place).filter(({ call }) => isAsked(call.method))
    if (found.length === 0)
      throw notFound('calls of 2.4.x', [method, path].filter(Boolean).join(' '), '"svc3 migrate map" shows all of them')
    await context.print(
      found.map((each) => advised(each, namespace)),
      advisedColumns,
      '',
    )
    return 0
  },
})

/** `http://host/resources/vm/deploy` → its path, as it stands: there may be braces in it. */
function pathIn(word: string): string | undefined {
  const path = word.replace(/^https?:\/\/[^/]*/i, '')
  return path.startsWith('/') ? path : undefined
}

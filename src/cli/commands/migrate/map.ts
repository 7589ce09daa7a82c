// svc3 migrate map
import { notFound } from '../../../api/errors.ts'
import { callsAt } from '../../../legacy/find.ts'
import { legacyRows } from '../../../legacy/map.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import { advised, advisedColumns } from './advised.ts'

export const command = defineCommand({
  description: 'Prints what replaces each call of the 2.4.x API, or why nothing does. Does not contact a server.',
  arguments: {
    method: { value: 'METHOD', description: 'method of one call' },
    path: { value: 'PATH', description: 'path of one call, or its URL' },
  },
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 migrate map', does: 'Show all calls' },
    { line: 'svc3 migrate map POST /resources/vm/deploy', does: 'Show what replaces one call, with an example' },
  ],
  async run(context, { args: { method, path }, options: { namespace } }) {
    const all = legacyRows.flatMap((row) => row.calls.map((call) => ({ row, call })))
    const callPath = pathIn(path ?? '') ?? pathIn(method ?? '')
    if (method !== undefined && callPath === undefined)
      throw new UsageError('Specify PATH', 'Run, for example, svc3 migrate map POST /resources/vm/deploy')
    const isAsked = path === undefined ? () => true : (verb: string) => verb === method?.toUpperCase()
    const found = callPath === undefined ? all : callsAt(callPath).filter(({ call }) => isAsked(call.method))
    const hint = 'Run svc3 migrate map to see all calls'
    if (found.length === 0) throw notFound('2.4.x call', [method, path].filter(Boolean).join(' '), { hint })
    const rows = found.map((each) => advised(each, namespace))
    await context.print(rows, advisedColumns, '')
  },
})

/** The path of a URL, not decoded, because it may contain braces. */
function pathIn(word: string): string | undefined {
  const path = word.replace(/^https?:\/\/[^/]*/i, '')
  return path.startsWith('/') ? path : undefined
}

// svc3 events
import { allNouns } from '../../api/nouns.ts'
import { type Event, listEvents } from '../../api/service/events.ts'
import { followList } from '../../client/follow-list.ts'
import { defined } from '../../platform/defined.ts'
import { parseDuration } from '../../rules/durations.ts'
import { defaultNamespace } from '../../rules/names.ts'
import { defineCommand, namespaced, printed } from '../command.ts'
import { UsageError } from '../line/usage.ts'
import { growingTable, jsonText, type OutputColumn } from '../output/output.ts'
import { noteConnection } from '../watch-note.ts'

/** `isMixed` adds the namespace, because the default namespace also has the events of deleted ones. */
const columnsOf = (isMixed: boolean): readonly OutputColumn<Event>[] => [
  { header: 'AT', cell: (item) => ({ time: item.at }) },
  { header: 'REASON', cell: (item) => item.reason },
  { header: 'INVOLVED', cell: (item) => `${item.involved.kind}/${item.involved.name}` },
  { header: 'ACTOR', cell: (item) => item.actor },
  ...(isMixed ? [{ header: 'NAMESPACE', terminal: 'always', cell: (item: Event) => item.namespace } as const] : []),
  { header: 'OUTCOME', wide: true, cell: (item) => item.outcome },
  { header: 'REQUEST', wide: true, cell: (item) => item.requestId },
  { header: 'NAMESPACE', wide: true, cell: (item) => item.namespace },
  { header: 'MESSAGE', keep: 'wide', cell: (item) => item.message },
]

const outcomes = ['Succeeded', 'Failed'] as const

export const command = defineCommand({
  arguments: {},
  options: {
    for: { type: 'string', value: 'KIND/NAME', description: 'Only events about this record' },
    kind: { type: 'string', value: 'KIND', description: 'Only about records of this kind, such as vm' },
    actor: { type: 'string', value: 'USER', description: 'Only what this user, service account or `system` did' },
    outcome: { type: 'choice', choices: outcomes, description: 'Filter by outcome' },
    since: {
      type: 'string',
      value: 'TIME',
      description: 'Since this time, or this long ago: 2026-11-17T12:00:00Z or 2h',
    },
    until: { type: 'string', value: 'TIME', description: 'Before this time, or this long ago' },
    jsonl: { type: 'boolean', description: 'Print JSON lines, one event each' },
    watch: { type: 'boolean', description: 'Follow new events until Ctrl-C' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 events', does: 'List changes in the default namespace, and who made them' },
    { line: 'svc3 events --for vm/demo --watch', does: 'Follow a VM until Ctrl-C' },
    { line: 'svc3 events --outcome Failed --since 24h', does: 'Show what failed since yesterday' },
    { line: 'svc3 events --since 7d --jsonl', does: 'Export a week as JSON lines' },
    { line: 'svc3 events --for serviceaccount/jenkins -n svc-ios -o wide', does: 'Show the history of one record' },
  ],
  async run(context, { options }) {
    const { actor, outcome } = options
    const fields = defined({ 'involved.kind': options.kind && kindOf(options.kind), actor, outcome })
    const fieldSelector = [
      ...(options.for === undefined ? [] : [selectorOf(options.for)]),
      ...Object.entries(fields).map(([field, value]) => `${field}=${value}`),
    ].join(',')
    const times = defined({ since: timeOf('since', options.since), until: timeOf('until', options.until) })
    const { client, namespace } = await context.connect()
    const input = { params: { namespace }, query: { ...times, ...(fieldSelector !== '' && { fieldSelector }) } }
    if (!options.watch) {
      const { signal } = context
      const { items: first, continue: next, completeSince } = await client.call(listEvents, { ...input, signal })
      const query = { ...input.query, ...(next !== undefined && { continue: next }) }
      const items = next ? [...first, ...(await client.listAll(listEvents, { ...input, query, signal }))] : first
      const isMixed = items.some((event) => event.namespace !== namespace)
      if (options.jsonl) for (const item of items) context.host.stdout.write(`${jsonText(item)}\n`)
      else await context.print(items, columnsOf(isMixed), `No events in ${namespace}`)
      if (completeSince !== undefined) context.note(`All events since ${completeSince} are kept`)
      return 0
    }
    const row = await growingTable(columnsOf(namespace === defaultNamespace), context.rendering())
    const watchOptions = { signal: context.signal, onConnection: noteConnection(context) }
    for await (const { type, object } of followList(client, listEvents, input, watchOptions)) {
      if (type === 'ADDED' || type === 'MODIFIED')
        context.host.stdout.write(context.isData || options.jsonl ? `${jsonText(object)}\n` : row(object))
    }
    return context.signal.aborted ? 130 : 0
  },
})

/** The kind of events for each word of the command line. */
const kinds: ReadonlyMap<string, string> = new Map(
  allNouns.flatMap(([noun, { typed = [] }]) => typed.map((word) => [word, noun] as const)),
)

function kindOf(word: string): string {
  const kind = knownKind(word)
  if (kind) return kind
  throw new UsageError(`Invalid --kind "${word}"`, kindsHint)
}

const knownKind = (word: string): string | undefined =>
  kinds.get(word) ?? kinds.get(word.replace(/s$/, '')) ?? [...kinds.values()].find((known) => known === word)

const kindsHint = `Choose KIND from ${[...new Set(kinds.values())].join(', ')}`

/** Accepts a time, or a duration for how long ago it was. */
function timeOf(option: 'since' | 'until', text: string | undefined): string | undefined {
  if (text === undefined || /^\d{4}-\d{2}-\d{2}T/.test(text)) return text
  const seconds = parseDuration(text)
  if (seconds !== undefined) return new Date(Date.now() - seconds * 1_000).toISOString()
  throw new UsageError(
    `Invalid --${option} "${text}"`,
    'Use a time such as 2026-11-17T12:00:00Z, or how long ago: 30m, 2h, 7d',
  )
}

function selectorOf(text: string): string {
  const [word = '', ...rest] = text.split('/')
  const name = rest.join('/')
  const kind = knownKind(word)
  if (kind && name) return `involved.kind=${kind},involved.name=${name}`
  throw new UsageError(`Invalid --for "${text}": specify KIND/NAME`, kindsHint)
}

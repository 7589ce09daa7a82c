// Checks a history: `node test/support/history/check.ts FILE`. Each rule is a function from the history to its violations.
import { compareRevs } from '../../../src/store/store.ts'
import {
  type HistoryRecord,
  type Listing,
  type Operation,
  partOf,
  readHistory,
  recordOf,
  type Stream,
  valueOfKey,
  type WatchEvent,
} from './history.ts'
import { illegal, linearize, type Step } from './linearize.ts'
import { Timelines } from './timeline.ts'

interface Violation {
  readonly rule: string
  readonly text: string
  /** The evidence. */
  readonly records: readonly unknown[]
}

interface Judged {
  readonly operations: readonly Operation[]
  readonly lists: readonly Listing[]
  readonly chains: ReadonlyMap<string, readonly Stream[]>
  readonly timelines: Timelines
}

type Found = Omit<Violation, 'rule'>
type Rule = (judged: Judged) => Found[]

const rules: Readonly<Record<string, Rule>> = {
  linearizable,
  'one meaning': oneMeaning,
  'carried out once': carriedOutOnce,
  'refused is not done': refusedIsNotDone,
  'update by version': updateByVersion,
  'lists are of one moment': listsAreOfOneMoment,
  'watches in order': watchesInOrder,
  'watches without gaps': watchesWithoutGaps,
  'sessions never go back': sessionsNeverGoBack,
}

export function checkHistory(records: readonly HistoryRecord[]): Violation[] {
  const ofType = <T extends HistoryRecord['type']>(type: T) =>
    records.filter((record): record is Extract<HistoryRecord, { type: T }> => record.type === type)
  const judged: Judged = {
    operations: ofType('operation'),
    lists: ofType('list'),
    chains: Map.groupBy(ofType('stream'), ({ chain }) => chain),
    timelines: new Timelines(records),
  }
  return Object.entries(rules).flatMap(([rule, judge]) => judge(judged).map((found) => ({ rule, ...found })))
}

// ---- linearizability, key by key

type State = string | null
/**
 * The effect of each act and outcome on the value. `expected` is the value of the version that an update was to replace.
 */
type Steps = Readonly<Record<string, (state: State, operation: Judgeable) => State | typeof illegal>>
interface Judgeable extends Operation {
  readonly expectedValue?: State
}

const only = (isLegal: boolean, after: State): State | typeof illegal => (isLegal ? after : illegal)
const written = ({ value = '' }: Operation): string => value
const steps: Steps = {
  'create ok': (state, operation) => only(state === null, written(operation)),
  'create exists': (state) => only(state !== null, state),
  'create unknown': (state, operation) => state ?? written(operation),
  'put ok': (_, operation) => written(operation),
  'put unknown': (_, operation) => written(operation),
  'update ok': (state, operation) => only(state === operation.expectedValue, written(operation)),
  'update conflict': (state, operation) => only(state !== operation.expectedValue, state),
  'update absent': (state) => only(state === null, state),
  'update unknown': (state, operation) => (state === operation.expectedValue ? written(operation) : state),
  'delete ok': (state, { isLenient = false }) => only(isLenient || state !== null, null),
  'delete absent': (state) => only(state === null, null),
  'delete unknown': () => null,
  'read ok': (state, { value = null }) => only(state === value, state),
}
const step: Step<State, Judgeable> = (state, operation) => {
  const name = `${operation.act} ${operation.outcome}`
  const found = steps[name]
  if (!found) throw new Error(`nobody can be told "${name}"`)
  return found(state, operation)
}

/** A list is a read of each of its keys. */
const readsOf = (list: Listing): Operation[] =>
  list.keys.map((key) => {
    const value = valueOfKey(key, list.items[recordOf(key)]?.value)
    const { session, server, startMs, endMs, isLinearizable } = list
    const told = { session, server, startMs, isLinearizable, ...(endMs !== undefined && { endMs }) }
    return { ...told, type: 'operation', key, act: 'read', outcome: 'ok', ...(value !== undefined && { value }) }
  })

function linearizable({ operations, lists, timelines }: Judged): Found[] {
  const judgeable = [...operations, ...lists.flatMap(readsOf)].flatMap((operation): Operation[] => {
    const { outcome, act, key, isLinearizable, isLenient } = operation
    if (outcome === 'never') return []
    if (!isLinearizable && (act === 'read' || !['ok', 'unknown'].includes(outcome))) return []
    // In a part, an update by version is a write like others; another rule checks whether the version was right.
    const isUpdateOfPart = partOf(key) !== undefined && act === 'update'
    if (isUpdateOfPart && outcome === 'conflict') return []
    // Where only the session is promised something, a deletion may have found an older record that no longer existed.
    const isOpen = outcome === 'unknown' || (!isLinearizable && isLenient && outcome === 'ok')
    const named: Operation = isUpdateOfPart ? { ...operation, act: 'put' } : operation
    return [isOpen ? open(named) : named]
  })
  return [...Map.groupBy(judgeable, ({ key }) => key)].flatMap(([key, all]) => {
    const valueAt = new Map(timelines.of(recordOf(key)).map(({ rev, value }) => [rev, value]))
    const withExpected = all.map((each): Judgeable => {
      if (each.expected === undefined) return each
      return { ...each, expectedValue: valueAt.get(each.expected) ?? '' }
    })
    const verdict = linearize<State, Judgeable>(withExpected, null, step)
    if (verdict.isLinearizable) return []
    const text = `${key}: after these, nobody can have been told the last`
    return [{ text, records: [...verdict.order.slice(-12), verdict.stuck] }]
  })
}

const open = ({ endMs: _, ...operation }: Operation): Operation => ({ ...operation, outcome: 'unknown' })

// ---- versions

function oneMeaning({ timelines }: Judged): Found[] {
  return timelines.contradictions.map((records) => ({
    text: `version ${records[0].rev} of ${records[0].key} is two things`,
    records,
  }))
}

const isRecord = ({ key }: Operation): boolean => partOf(key) === undefined
const isWrite = ({ act }: Operation): boolean => ['create', 'put', 'update'].includes(act)

function carriedOutOnce({ operations, timelines }: Judged): Found[] {
  // Records with parts may have the same value again.
  const withParts = new Set(operations.filter((each) => !isRecord(each)).map(({ key }) => recordOf(key)))
  const whole = timelines.keys.filter((key) => !withParts.has(key))
  // A retry after others changed the result may be carried out twice: docs/reference/api.md says when.
  const repeated = new Set(operations.filter(({ isRepeated }) => isRepeated).map(({ value }) => value))
  return whole.flatMap((key) =>
    [...Map.groupBy(timelines.of(key), ({ value }) => value)]
      .filter(([value, versions]) => value !== undefined && versions.length > 1 && !repeated.has(value))
      .map(([value, versions]) => ({
        text: `${value} was written to ${key} ${versions.length} times`,
        records: versions,
      })),
  )
}

function refusedIsNotDone({ operations, timelines }: Judged): Found[] {
  return operations
    .filter((each) => isRecord(each) && isWrite(each) && !['ok', 'unknown'].includes(each.outcome))
    .flatMap((operation) => {
      const done = timelines.of(operation.key).find(({ value }) => value === operation.value)
      const text = `${operation.value} was refused (${operation.outcome}) and written to ${operation.key}`
      return done ? [{ text, records: [operation, done] }] : []
    })
}

function updateByVersion({ operations, timelines }: Judged): Found[] {
  return operations
    .filter(({ act, outcome, version }) => act === 'update' && outcome === 'ok' && version !== undefined)
    .flatMap((operation) => {
      const versions = timelines.of(recordOf(operation.key))
      const at = versions.findIndex(({ rev }) => rev === operation.version)
      const before = versions[at - 1]
      if (before?.rev === operation.expected) return []
      const text = `${operation.key} was to change from version ${operation.expected}, and changed from ${before?.rev}`
      return [{ text, records: [operation, before, versions[at]] }]
    })
}

function listsAreOfOneMoment({ lists, timelines }: Judged): Found[] {
  return lists.flatMap((list) =>
    [...new Set(list.keys.map(recordOf))].flatMap((key) => {
      const [shown, was] = [list.items[key], timelines.at(key, list.rev)]
      if (shown?.version === (was?.value === undefined ? undefined : was.rev)) return []
      const text = `a list at revision ${list.rev} shows ${key} at version ${shown?.version}, not ${was?.rev}`
      return [{ text, records: [{ ...list, items: shown }, was] }]
    }),
  )
}

// ---- watches

type Change = Exclude<WatchEvent, { type: 'BOOKMARK' }>
const isChange = (event: WatchEvent): event is Change => event.type !== 'BOOKMARK'

/** Initial items, and what changes during them, come in any order until the first bookmark. */
function presentOf(streams: readonly Stream[]): {
  readonly present: ReadonlyMap<string, Change>
  readonly rest: WatchEvent[]
} {
  const all = streams.flatMap(({ events }) => events)
  const present = new Map<string, Change>()
  if (streams[0]?.from !== undefined) return { present, rest: all }
  const first = all.findIndex((event) => !isChange(event))
  const end = first < 0 ? all.length : first
  for (const event of all.slice(0, end).filter(isChange))
    if (event.type === 'DELETED') present.delete(event.key)
    else present.set(event.key, event)
  return { present, rest: all.slice(end) }
}

function watchesInOrder({ chains }: Judged): Found[] {
  return [...chains].flatMap(([chain, streams]) => {
    const found: Found[] = []
    const { present, rest } = presentOf(streams)
    const state = new Map([...present].map(([key, { value }]) => [key, value]))
    const isFromPresent = streams[0]?.from === undefined
    let last = streams[0]?.from ?? '0'
    for (const event of rest) {
      const isLater = compareRevs(event.version, last) > 0 || (!isChange(event) && event.version === last)
      if (!isLater) found.push({ text: `${chain} goes from ${last} back to ${event.version}`, records: [event] })
      last = event.version
      if (!isChange(event)) continue
      const had = state.get(event.key)
      // If the watch began in the middle, the first event of a key can be any.
      const isKnown = isFromPresent || state.has(event.key)
      const isRight = event.type === 'ADDED' ? had === undefined : had !== undefined
      const isSame = event.type !== 'DELETED' || had === event.value
      if (isKnown && !(isRight && isSame))
        found.push({
          text: `${chain} says ${event.type} of ${event.key}, which was ${had ?? 'not there'}`,
          records: [event],
        })
      state.set(event.key, event.type === 'DELETED' ? (undefined as unknown as string) : event.value)
    }
    return found
  })
}

function watchesWithoutGaps({ chains, timelines }: Judged): Found[] {
  return [...chains].flatMap(([chain, streams]) => {
    const { present, rest } = presentOf(streams)
    const [{ from, collection } = { from: undefined, collection: '' }] = streams
    const start = from ?? rest[0]?.version
    const end = rest.at(-1)?.version
    if (start === undefined || end === undefined) return []
    const told = new Set(rest.filter(isChange).map(({ version }) => version))
    const missed = timelines
      .inCollection(collection)
      .filter(({ rev }) => compareRevs(rev, start) > 0 && compareRevs(rev, end) <= 0 && !told.has(rev))
      .map((version) => ({
        text: `${chain} did not tell version ${version.rev} of ${version.key}`,
        records: [version],
      }))
    if (from !== undefined) return missed
    const wrong = timelines.keys
      .filter((key) => key.startsWith(`${collection}/`))
      .flatMap((key) => {
        const was = timelines.at(key, start)
        const began = present.get(key)?.version
        if (began === (was?.value === undefined ? undefined : was.rev)) return []
        return [{ text: `${chain} begins with version ${began} of ${key}, not ${was?.rev}`, records: [was] }]
      })
    return [...missed, ...wrong]
  })
}

// ---- sessions

interface Observation {
  readonly key: string
  readonly atMs: number
  readonly record: HistoryRecord
  /** A version, or only whether there was one. */
  readonly saw: { readonly rev: string } | 'something' | 'nothing'
}

const seenBy: Readonly<Record<string, 'something' | 'nothing'>> = {
  'create exists': 'something',
  'update absent': 'nothing',
  'delete ok': 'nothing',
  'delete absent': 'nothing',
  'read ok': 'nothing',
}

function observationsOf(record: Operation | Listing): Observation[] {
  const atMs = record.endMs ?? Number.POSITIVE_INFINITY
  if (record.type === 'list')
    return [...new Set(record.keys.map(recordOf))].map((key) => {
      const shown = record.items[key]
      return { key, atMs, record, saw: shown ? { rev: shown.version } : 'nothing' }
    })
  const key = recordOf(record.key)
  if (record.version !== undefined && record.outcome === 'ok')
    return [{ key, atMs, record, saw: { rev: record.version } }]
  const saw = isRecord(record) ? seenBy[`${record.act} ${record.outcome}`] : undefined
  return saw && !record.isLenient ? [{ key, atMs, record, saw }] : []
}

function sessionsNeverGoBack({ operations, lists, timelines }: Judged): Found[] {
  const all = [...operations, ...lists].flatMap((record) =>
    observationsOf(record).map((observation) => ({ session: record.session, ...observation })),
  )
  return [...Map.groupBy(all, ({ session, key }) => `${session} ${key}`)].flatMap(([, observations]) => {
    const [{ session, key } = { session: '', key: '' }] = observations
    const versions = [{ rev: '0', key, value: undefined }, ...timelines.of(key)]
    let [place, before]: [number, Observation | undefined] = [0, undefined]
    for (const observation of observations.toSorted((a, b) => a.atMs - b.atMs)) {
      const { saw } = observation
      const fits = ({ rev, value }: (typeof versions)[number]): boolean =>
        typeof saw === 'object' ? rev === saw.rev : (value === undefined) === (saw === 'nothing')
      const next = versions.findIndex((version, index) => index >= place && fits(version))
      if (next < 0) {
        const what = typeof saw === 'object' ? `version ${saw.rev}` : saw
        const text = `${session} saw ${key} at version ${versions[place]?.rev} and then ${what}`
        return [{ text, records: [before?.record, observation.record, versions.slice(place)] }]
      }
      ;[place, before] = [next, observation]
    }
    return []
  })
}

export const toldOf = ({ rule, text, records }: Violation): string =>
  [`${rule}: ${text}`, ...records.map((record) => `    ${JSON.stringify(record)}`)].join('\n')

if (import.meta.main) {
  const violations = checkHistory(readHistory(process.argv[2] ?? ''))
  process.stdout.write(`${violations.map(toldOf).join('\n')}${violations.length === 0 ? 'no violation' : ''}\n`)
  process.exit(violations.length === 0 ? 0 : 1)
}

// The versions of every record of a history in order, from all answers, lists and watches. A version means the same
// everywhere.
import { compareRevs, type Rev } from '../../../src/store/store.ts'
import { collectionOf, type HistoryRecord, partOf, recordOf, type WatchEvent } from './history.ts'

interface Version {
  readonly rev: Rev
  readonly key: string
  /** Absent for a deletion. */
  readonly value: string | undefined
}

export class Timelines {
  readonly #byKey = new Map<string, Version[]>()
  readonly #byCollection = new Map<string, Version[]>()
  /** Versions with two different meanings. */
  readonly contradictions: (readonly [Version, Version])[] = []

  constructor(records: readonly HistoryRecord[]) {
    const all = new Map<string, Version>()
    const learn = (version: Version): void => {
      const place = `${collectionOf(version.key)} ${version.rev}`
      const known = all.get(place)
      if (!known) all.set(place, version)
      else if (known.key !== version.key || known.value !== version.value) this.contradictions.push([known, version])
    }
    for (const record of records) for (const version of versionsIn(record)) learn(version)
    for (const version of [...all.values()].sort((a, b) => compareRevs(a.rev, b.rev))) {
      append(this.#byKey, version.key, version)
      append(this.#byCollection, collectionOf(version.key), version)
    }
  }

  get keys(): readonly string[] {
    return [...this.#byKey.keys()]
  }

  /** The versions of a record, oldest first. */
  of(key: string): readonly Version[] {
    return this.#byKey.get(key) ?? []
  }

  inCollection(name: string): readonly Version[] {
    return this.#byCollection.get(name) ?? []
  }

  /** The record at that revision. */
  at(key: string, rev: Rev): Version | undefined {
    return this.of(key).findLast((version) => compareRevs(version.rev, rev) <= 0)
  }
}

const versionOfEvent = (event: Exclude<WatchEvent, { type: 'BOOKMARK' }>): Version => ({
  rev: event.version,
  key: event.key,
  value: event.type === 'DELETED' ? undefined : event.value,
})

function versionsIn(record: HistoryRecord): Version[] {
  switch (record.type) {
    case 'operation': {
      const { key, act, version: rev } = record
      const value = partOf(key) === undefined ? record.value : record.record
      if (rev === undefined || record.outcome !== 'ok' || (act === 'delete' && partOf(key) === undefined)) return []
      return value === undefined ? [] : [{ rev, key: recordOf(key), value }]
    }
    case 'list':
      return Object.entries(record.items).map(([key, { value, version: rev }]) => ({ rev, key, value }))
    case 'stream':
      return record.events.flatMap((event) => (event.type === 'BOOKMARK' ? [] : [versionOfEvent(event)]))
    case 'note':
      return []
  }
}

function append<K, T>(map: Map<K, T[]>, key: K, value: T): void {
  const list = map.get(key)
  if (list) list.push(value)
  else map.set(key, [value])
}

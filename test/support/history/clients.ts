// Clients that work concurrently on the same few records, through any server, and record the answers. What each does
// follows from its seed and the answers.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { revisionHeader } from '../../../src/api/revision.ts'
import { createRevision, type Revision } from '../../../src/client/revision.ts'
import { compareRevs } from '../../../src/store/store.ts'
import { collections, type Item, type Request } from './collections.ts'
import { collectionOf, type HistoryRecord, type Operation, type Outcome, partOf, partOn, recordOf, type Shown, type WatchEvent } from './history.ts' // biome-ignore format: one line
import type { Random } from './random.ts'

interface Place {
  readonly name: string
  readonly url: string
}

interface ClientsOptions {
  readonly places: readonly Place[]
  readonly token: () => string
  readonly random: Random
  /** Whether servers share the store. If so, a read is only as recent as what its caller knows. */
  readonly isShared: boolean
  readonly record: (record: HistoryRecord) => void
}

interface Session {
  readonly name: string
  readonly random: Random
  readonly revision: Revision
  readonly isLinearizable: boolean
  /** The latest known version of each record. */
  readonly versions: Map<string, string>
}

interface Answer {
  readonly status: number
  readonly reason: string
  readonly text: string
  readonly body: unknown
  readonly rev: string
}

/** A key that all clients work on, until its history is long or leaves too much open to be checked quickly. */
interface Slot {
  readonly collection: string
  key: string
  operations: number
  unknown: number
}

const slotsOf = { credentials: 3, configs: 2, nodes: 2 }
const maxOperations = 80
const maxUnknown = 4
const answerMs = 4_000
const maxTries = 3
const maxStreamMs = 5_000

export class HistoryClients {
  readonly #options: ClientsOptions
  readonly #slots: Slot[] = []
  readonly #stopping = new AbortController()
  readonly #watchesEnd = new AbortController()
  readonly #reached = new Map<string, string>()
  /** All of the group send the highest revision that any of them saw. */
  readonly #group = createRevision()
  #names = 0
  #values = 0
  #working: Promise<unknown> = Promise.resolve()
  #watching: Promise<unknown> = Promise.resolve()
  #lastAckMs = performance.now()
  #longestGapMs = 0
  acknowledged = 0

  constructor(options: ClientsOptions) {
    this.#options = options
    for (const [collection, count] of Object.entries(slotsOf))
      for (let n = 0; n < count; n++) this.#slots.push(this.#renew({ collection, key: '', operations: 0, unknown: 0 }))
  }

  start(): void {
    const sessions = ['g1', 'g2', 'g3', 'g4', 'l1', 'l2'].map((name) => this.#session(name))
    this.#working = Promise.all(sessions.map((session) => this.#work(session)))
    const watches = Object.keys(collections).flatMap((collection) =>
      [1, 2].map((n) => this.#watch(this.#session(`w${n}-${collection}`), collection)),
    )
    this.#watching = Promise.all(watches)
    // A failure stops the clients; callers that wait for the end receive it.
    for (const each of [this.#working, this.#watching]) each.catch(() => this.#stopping.abort())
  }

  get hasFailed(): boolean {
    return this.#stopping.signal.aborted
  }

  /** The longest time without an acknowledged write since the last call. */
  takeLongestGapMs(): number {
    const gapMs = Math.max(this.#longestGapMs, performance.now() - this.#lastAckMs)
    this.#longestGapMs = 0
    return gapMs
  }

  /** With all servers healthy: the final state is read everywhere, and every watch reaches it. */
  async finish(): Promise<void> {
    this.#stopping.abort()
    await this.#working
    const { places } = this.#options
    const ends = new Map<string, string>()
    const session = this.#session('g-end')
    for (const collection of Object.keys(collections)) {
      const slot = this.#renew({ collection, key: '', operations: 0, unknown: 0 })
      const act = collections[collection]?.acts.put ? 'put' : 'create'
      for (let isDone = false; !isDone; ) isDone = (await this.#write(session, slot, act, places[0])) === 'ok'
      ends.set(collection, session.versions.get(recordOf(slot.key)) ?? '')
      const keys = this.#slots.filter((each) => each.collection === collection).map(({ key }) => key)
      for (const place of places)
        while (!(await this.#list(session, collection, [...keys, slot.key], place))) await sleep(200)
    }
    const untilMs = performance.now() + 60_000
    for (const [chain, reached] of this.#reached)
      while (compareRevs(this.#reached.get(chain) ?? reached, ends.get(chain.split(' ')[1] ?? '') ?? '0') < 0) {
        if (performance.now() > untilMs) throw new Error(`the watch ${chain} did not get to the end`)
        await sleep(50)
      }
    this.#watchesEnd.abort()
    await this.#watching
  }

  #session(name: string): Session {
    const { random, isShared } = this.#options
    const isInGroup = name.startsWith('g')
    return {
      name,
      random: random.named(name),
      revision: isInGroup ? this.#group : createRevision(),
      isLinearizable: isInGroup || !isShared,
      versions: new Map(),
    }
  }

  #renew(slot: Slot): Slot {
    const name = collections[slot.collection]?.newName(++this.#names) ?? ''
    return Object.assign(slot, { key: `${slot.collection}/${name}`, operations: 0, unknown: 0 })
  }

  async #work(session: Session): Promise<void> {
    const { random } = session
    while (!this.#stopping.signal.aborted) {
      const slot = random.pick(this.#slots)
      const { collection, key } = slot
      const act = random.pick(collections[collection]?.mix ?? [])
      if (++slot.operations > maxOperations || slot.unknown > maxUnknown) {
        const old = { ...slot }
        this.#renew(slot)
        // Keeps the number of records small.
        await this.#write(session, old, 'delete')
      } else if (act === 'list' || act === 'read') await this.#read(session, slot, act)
      // An update by version needs a known version.
      else if (act === 'update' && !session.versions.has(recordOf(key))) await this.#list(session, collection, [key])
      else await this.#write(session, slot, act)
      await sleep(random.integer(0, 60))
    }
  }

  async #read(session: Session, slot: Slot, act: 'list' | 'read'): Promise<void> {
    const { collection, key } = slot
    if (act === 'read') return this.#readOne(session, key)
    const keys = this.#slots.filter((each) => each.collection === collection).map((each) => each.key)
    const { selector } = collections[collection] ?? {}
    if (selector && session.random.chance(0.5))
      await this.#list(session, collection, [key], undefined, selector(nameOf(key)))
    else await this.#list(session, collection, keys)
  }

  async #readOne(session: Session, key: string): Promise<void> {
    const collection = collections[collectionOf(key)]
    const request = collection?.acts.read?.({ name: nameOf(key), part: '', value: '', expected: '' })
    if (!collection || !request) return
    const told = this.#begin(session)
    const answer = await this.#ask(session, told.place, request)
    const shown = answer?.status === 200 ? collection.shown(answer.body as Item) : undefined
    if (answer?.status !== 200 && answer?.status !== 404) return
    const saw = shown ? { value: shown.value, version: shown.version } : {}
    this.#options.record({ ...told.ended(), type: 'operation', act: 'read', key, outcome: 'ok', ...saw })
  }

  /** Returns whether there was an answer. */
  async #list(
    session: Session,
    name: string,
    keys: readonly string[],
    place?: Place,
    selector?: string,
  ): Promise<boolean> {
    // biome-ignore format: one line
    const collection = collections[name]
    if (!collection) return false
    const told = this.#begin(session, place)
    const query = selector === undefined ? '' : `?fieldSelector=${encodeURIComponent(selector)}`
    const answer = await this.#ask(session, told.place, { method: 'GET', where: collection.where + query })
    if (answer?.status !== 200) return false
    const found = (answer.body as { items: readonly Item[] }).items.map((item) => collection.shown(item))
    const asked = new Set(keys.map(recordOf))
    const items: Record<string, Shown> = {}
    for (const { name: each, value, version } of found)
      if (asked.has(`${name}/${each}`)) items[`${name}/${each}`] = { value, version }
    for (const key of asked) {
      const { version } = items[key] ?? {}
      if (version === undefined) session.versions.delete(key)
      else session.versions.set(key, version)
    }
    this.#options.record({ ...told.ended(), type: 'list', collection: name, keys, items, rev: answer.rev })
    return true
  }

  async #write(session: Session, slot: Slot, act: Operation['act'], place?: Place): Promise<Outcome | undefined> {
    const { key } = slot
    const collection = collections[collectionOf(key)]
    const expected = session.versions.get(recordOf(key))
    const part = partOf(key)
    const value = part === undefined ? `${session.name}-${++this.#values}` : partOn
    const request = collection?.acts[act]?.({ name: nameOf(key), part: part ?? '', value, expected: expected ?? '' })
    if (!collection || !request || (act === 'update' && expected === undefined)) return undefined
    const isKeyed = request.method === 'POST' && session.random.chance(0.4)
    const idempotency: Record<string, string> = isKeyed ? { 'idempotency-key': randomUUID() } : {}
    let isPerhapsDone = false
    for (let tries = 1; ; tries++) {
      const told = this.#begin(session, tries === 1 ? place : undefined)
      const answer = await this.#ask(session, told.place, request, idempotency)
      const judged = answer ? outcomeOf(answer) : 'unknown'
      const isLast = judged !== 'unknown' && judged !== 'never'
      const isOver = isLast || !isKeyed || tries === maxTries
      // An earlier try may have been carried out and changed by others since, so the outcome of this one is unknown.
      const outcome = isPerhapsDone ? 'unknown' : judged
      isPerhapsDone ||= judged === 'unknown'
      const hasShown = answer && judged === 'ok' && (act !== 'delete' || part !== undefined)
      const shown = hasShown ? collection.shown(answer.body as Item) : undefined
      if (judged === 'ok') this.#acknowledge()
      if (outcome === 'unknown') slot.unknown += 1
      if (shown) session.versions.set(recordOf(key), shown.version)
      else session.versions.delete(recordOf(key))
      if (isOver || outcome === 'unknown')
        this.#options.record({
          ...(outcome === 'unknown' ? told.open : told.ended()),
          type: 'operation',
          key,
          act,
          outcome,
          ...(act !== 'delete' && { value }),
          ...(act === 'update' && expected !== undefined && { expected }),
          ...(shown && { version: shown.version }),
          ...(shown && part !== undefined && { record: shown.value }),
          ...(act === 'delete' && collection.isDeletedLeniently && { isLenient: true }),
          ...(isKeyed && outcome === 'unknown' && { isRepeated: true }),
        })
      if (isOver) return judged
      await sleep(session.random.integer(50, 500))
    }
  }

  #acknowledge(): void {
    this.acknowledged += 1
    const nowMs = performance.now()
    this.#longestGapMs = Math.max(this.#longestGapMs, nowMs - this.#lastAckMs)
    this.#lastAckMs = nowMs
  }

  #place({ random }: Session): Place {
    return random.pick(this.#options.places)
  }

  #begin(session: Session, at?: Place) {
    const place = at ?? this.#place(session)
    const { name, isLinearizable } = session
    const open = { session: name, server: place.name, startMs: performance.now(), isLinearizable }
    return { place, open, ended: () => ({ ...open, endMs: performance.now() }) }
  }

  #headers({ revision }: Session): Record<string, string> {
    const latest = this.#options.isShared ? revision.latest() : undefined
    return { authorization: `Bearer ${this.#options.token()}`, ...(latest && { [revisionHeader]: latest }) }
  }

  /** Undefined without an answer. */
  async #ask(
    session: Session,
    { url }: Place,
    { method, where, body }: Request,
    headers: Record<string, string> = {},
  ): Promise<Answer | undefined> {
    try {
      const response = await fetch(url + where, {
        method,
        headers: { ...this.#headers(session), ...(body && { 'content-type': 'application/json' }), ...headers },
        ...(body && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(answerMs),
      })
      const text = await response.text()
      // The group sees every revision and is promised the latest; others see only their own.
      for (const each of [session.revision, this.#group]) each.saw(response.headers.get(revisionHeader) ?? undefined)
      const parsed = JSON.parse(text) as { reason?: string }
      const rev = response.headers.get('resource-version') ?? ''
      return { status: response.status, reason: parsed.reason ?? '', text, body: parsed, rev }
    } catch (error) {
      if (error instanceof SyntaxError) throw error
      return undefined
    }
  }

  // ---- watches

  async #watch(session: Session, collection: string): Promise<void> {
    const { random } = session
    const ended = this.#watchesEnd.signal
    let [chains, from]: [number, string | undefined] = [0, undefined]
    this.#reached.set(`${session.name} ${collection}`, '0')
    while (!ended.aborted) {
      if (from === undefined) {
        chains += 1
        // Some begin with the present items, some after a list.
        if (random.chance(0.5)) from = await this.#revOf(session, collection)
      }
      const place = this.#place(session)
      const { events, isExpired }: Streamed = await this.#stream(session, collection, place, from)
      const chain = `${session.name}/${chains}`
      const isBookmarked = events.some(({ type }) => type === 'BOOKMARK')
      // Without a bookmark the initial items are incomplete, so it begins again.
      if (from !== undefined || isBookmarked) {
        const stream = { type: 'stream', chain, session: session.name, server: place.name, collection } as const
        this.#options.record({ ...stream, ...(from !== undefined && { from }), events })
        from = events.at(-1)?.version ?? from
        this.#reached.set(`${session.name} ${collection}`, from ?? '0')
      } else chains += 1
      if (isExpired) from = undefined
      await sleep(random.integer(0, 300))
    }
  }

  async #revOf(session: Session, name: string): Promise<string | undefined> {
    const where = collections[name]?.where ?? ''
    const answer = await this.#ask(session, this.#place(session), { method: 'GET', where })
    return answer?.status === 200 ? answer.rev : undefined
  }

  async #stream(session: Session, name: string, place: Place, from: string | undefined): Promise<Streamed> {
    const collection = collections[name]
    const events: WatchEvent[] = []
    const ending = AbortSignal.any([
      this.#watchesEnd.signal,
      AbortSignal.timeout(session.random.integer(300, maxStreamMs)),
    ])
    const query = `?watch=true${from === undefined ? '' : `&resourceVersion=${from}`}`
    try {
      const response = await fetch(place.url + collection?.where + query, {
        headers: this.#headers(session),
        signal: ending,
      })
      if (response.status === 410) return { events, isExpired: true }
      if (response.status !== 200) return { events, isExpired: false }
      let rest = ''
      for await (const chunk of response.body ?? []) {
        const lines = (rest + Buffer.from(chunk).toString()).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines.filter((each) => each !== '')) {
          const { type, object } = JSON.parse(line) as { type: WatchEvent['type'] | 'ERROR'; object: Item }
          if (type === 'ERROR') return { events, isExpired: true }
          const { name: each = '', value = '' } = type === 'BOOKMARK' ? {} : (collection?.shown(object) ?? {})
          const version = object.resourceVersion
          events.push(type === 'BOOKMARK' ? { type, version } : { type, key: `${name}/${each}`, value, version })
        }
      }
    } catch (error) {
      if (error instanceof SyntaxError) throw error
    }
    return { events, isExpired: false }
  }
}

interface Streamed {
  readonly events: readonly WatchEvent[]
  readonly isExpired: boolean
}

const nameOf = (key: string): string => recordOf(key).slice(collectionOf(key).length + 1)

/** Status and reason → what a caller may conclude. */
const outcomes: Readonly<Record<string, Outcome>> = {
  '200 ': 'ok',
  '201 ': 'ok',
  '409 AlreadyExists': 'exists',
  '409 Conflict': 'conflict',
  '404 NotFound': 'absent',
}

function outcomeOf({ status, reason, text }: Answer): Outcome {
  const known = outcomes[`${status} ${status < 300 ? '' : reason}`]
  if (known) return known
  if (status === 503 && text.includes('nothing was changed')) return 'never'
  if (status >= 500 || status === 429) return 'unknown'
  throw new Error(`the service answered ${status}: ${text}`)
}

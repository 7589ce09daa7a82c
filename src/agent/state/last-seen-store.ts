// The revision of the server's data that this node saw last. It is stored, so that an agent detects that the data was set back
// while it did not run.
import path from 'node:path'
import type { AgentMessage } from '../../api/nodes/agent.ts'
import { readFileIfPresent, writeFileAtomically, writeFileWhole } from '../../platform/files.ts'
import type { Log } from '../../platform/log.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import { type Claim, compareRevisions, firstRevision, laterOf, type Origin } from './authority.ts'
import type { Durability } from './handles.ts'

interface SeenRevision {
  readonly uid: string
  readonly revision: string
  /** The era of the data at that revision. Each start of a server begins a new one. */
  readonly era?: string | undefined
}

type StoreState = Extract<AgentMessage, { type: 'HELLO' }>['store']

interface Content {
  readonly version: 1
  /** The revision seen last. If the next HELLO has a lower one, the data was set back. */
  readonly latest?: SeenRevision
  /** The highest revision of each store. A HELLO with a lower one does not remove VMs. */
  readonly highest: Readonly<Record<string, string>>
}

/** Writes may be late, because the record of each VM has the revision of its desired state, too. */
const writeEveryMs = 30_000

export class LastSeenStore {
  readonly #file: string
  readonly #durability: Durability
  readonly #log: Log
  readonly #highest: Map<string, string>
  readonly #loop: Loop
  #latest: SeenRevision | undefined
  #isDirty = false

  constructor(file: string, durability: Durability, log: Log, content: Content | undefined) {
    this.#file = file
    this.#durability = durability
    this.#log = log
    this.#latest = content?.latest
    this.#highest = new Map(Object.entries(content?.highest ?? {}))
    this.#loop = startLoop({
      everyMs: writeEveryMs,
      isFirstLater: true,
      run: () => this.#write(),
      failed: (error) => this.#failed(error),
    })
  }

  /** Raises the highest revision of a store, for example to that in the record of a VM. */
  remember({ store, revision }: Origin): void {
    if (compareRevisions(revision, this.#highestOf(store)) <= 0 && this.#highest.has(store)) return
    this.#highest.set(store, revision)
    this.#isDirty = true
  }

  /** Notes the revision of a desired state that the server has sent. */
  heard(origin: Origin): void {
    if (this.#latest?.uid === origin.store)
      this.#latest = { ...this.#latest, revision: laterOf(this.#latest.revision, origin.revision) }
    this.remember(origin)
  }

  /** Notes a HELLO, and returns its claim. `isBehind`: one of its desired states is older than this node's. */
  hear({ uid, revision, eras }: StoreState, node: string, isBehind: boolean): Claim {
    const highest = this.#highestOf(uid)
    const latest = this.#latest
    const isOther = latest !== undefined && latest.uid !== uid
    const isRestored = latest?.uid === uid && wasSetBack(latest, eras)
    const isOlder = isRestored || (latest?.uid === uid && compareRevisions(revision, latest.revision) < 0)
    const isNewest = !isBehind && !isRestored && compareRevisions(revision, highest) >= 0
    if (isOther) this.#log.error(otherData, { revision })
    else if (isOlder || isBehind) {
      const seen = laterOf(highest, latest?.revision ?? firstRevision)
      this.#log.error(olderData, { revision, problem: `it was at ${seen}` })
    }
    this.#latest = { uid, revision, era: eras.at(-1)?.uid }
    this.#isDirty = true
    this.remember({ store: uid, node, revision })
    return { store: uid, node, isNewest, isReset: isOther || isOlder }
  }

  async stop(): Promise<void> {
    await this.#loop.stop()
    await this.#write().catch((error: unknown) => this.#failed(error))
  }

  #highestOf(store: string): string {
    return this.#highest.get(store) ?? firstRevision
  }

  async #write(): Promise<void> {
    if (!this.#isDirty) return
    this.#isDirty = false
    const latest = this.#latest
    const content: Content = { version: 1, ...(latest && { latest }), highest: Object.fromEntries(this.#highest) }
    try {
      await (this.#durability === 'synced' ? writeFileAtomically : writeFileWhole)(
        this.#file,
        `${JSON.stringify(content)}\n`,
      )
    } catch (error) {
      this.#isDirty = true
      throw error
    }
  }

  #failed(error: unknown): void {
    this.#log.error('failed to save the last seen revision; trying again', { folder: path.dirname(this.#file) }, error)
  }
}

export async function openLastSeenStore(folder: string, durability: Durability, log: Log): Promise<LastSeenStore> {
  const file = path.join(folder, 'store.json')
  return new LastSeenStore(file, durability, log, parse(await readFileIfPresent(file), file, log))
}

/**
 * Whether the data was set back, even if its revision is higher by now: the era that this node has seen is missing, or the next
 * one began before the revision that this node had seen.
 */
function wasSetBack({ era, revision }: SeenRevision, eras: StoreState['eras']): boolean {
  if (era === undefined || eras.length === 0) return false
  const at = eras.findIndex(({ uid }) => uid === era)
  const next = eras[at + 1]
  return at < 0 || (next !== undefined && compareRevisions(next.since, revision) < 0)
}

const otherData =
  'The server has different data than before. The agent follows it and keeps VMs that it does not list. If the data is wrong, restore the right data on the server'
const olderData =
  'The data of the server is older than what this node has seen, as after restoring a backup. The agent follows it and keeps VMs that it does not list'

function parse(text: string | undefined, file: string, log: Log): Content | undefined {
  if (text === undefined) return undefined
  try {
    const content = JSON.parse(text) as Content
    if (content.version === 1 && typeof content.highest === 'object') return content
  } catch {}
  // The records of the VMs still have their revisions.
  log.warn('a file cannot be read and is rewritten', { folder: file })
  return undefined
}

// How far the data of the server were when this node last saw them: kept on disk, because a server whose data went
// back may be met by the next agent.
import path from 'node:path'
import { readFileIfPresent, writeFileAtomically, writeFileWhole } from '../../platform/files.ts'
import type { Log } from '../../platform/log.ts'
import { type Claim, compareRevisions, firstRevision, laterOf, type Origin } from './authority.ts'
import type { Durability } from './handles.ts'

export interface LastSeenStore {
  /** What a VM of this node has seen. */
  remember(origin: Origin): void
  /** A desired state that just came, in the era of the last HELLO. */
  heard(origin: Origin): void
  /** `isBehind`: some desired state in it is older than the one that this node has. */
  hear(store: Heard, node: string, isBehind: boolean): Claim
  /** Also the last change, for good. */
  stop(): Promise<void>
}

interface Place {
  readonly uid: string
  readonly revision: string
  /** The newest era when it was seen. */
  readonly era?: string | undefined
}

interface Heard extends Omit<Place, 'era'> {
  readonly eras: readonly { readonly uid: string; readonly since: string }[]
}

interface Content {
  readonly version: 1
  /** Of the last HELLO: one with less has gone back. */
  readonly latest?: Place
  /** For each store that was seen, the highest revision ever: with less nothing is removed. */
  readonly highest: Readonly<Record<string, string>>
}

const fileName = 'store.json'
/** Desired states have their revision in the record of their VM as well: this may be a little late. */
const writeAfterMs = 30_000

export async function openLastSeenStore(folder: string, durability: Durability, log: Log): Promise<LastSeenStore> {
  const file = path.join(folder, fileName)
  const known = parse(await readFileIfPresent(file), file, log)
  let latest = known?.latest
  const highest = new Map(Object.entries(known?.highest ?? {}))
  let timer: NodeJS.Timeout | undefined
  let isDirty = false
  let writing: Promise<void> = Promise.resolve()

  const write = async (): Promise<void> => {
    timer = undefined
    if (!isDirty) return
    isDirty = false
    const content: Content = { version: 1, ...(latest && { latest }), highest: Object.fromEntries(highest) }
    const text = `${JSON.stringify(content)}\n`
    try {
      await (durability === 'synced' ? writeFileAtomically : writeFileWhole)(file, text)
    } catch (error) {
      isDirty = true
      log.error('failed to save the last seen revision; trying again', { folder }, error)
      arm()
    }
  }
  const flush = (): void => {
    writing = writing.then(write)
  }
  const arm = (): void => {
    timer ??= setTimeout(flush, writeAfterMs).unref()
  }
  const raise = (uid: string, revision: string): void => {
    const before = highest.get(uid)
    if (before !== undefined && compareRevisions(revision, before) <= 0) return
    highest.set(uid, revision)
    isDirty = true
    arm()
  }

  return {
    remember: ({ store, revision }) => raise(store, revision),
    heard: ({ store, revision }) => {
      if (latest?.uid === store) latest = { ...latest, revision: laterOf(latest.revision, revision) }
      raise(store, revision)
    },
    hear(store, node, isBehind) {
      const { uid, revision, eras } = store
      const wentBack = latest?.uid === uid && hasGoneBack(latest, eras)
      const isNewest = !isBehind && !wentBack && compareRevisions(revision, highest.get(uid) ?? firstRevision) >= 0
      const isOther = latest !== undefined && latest.uid !== uid
      const isBack = wentBack || (latest?.uid === uid && compareRevisions(revision, latest.revision) < 0)
      if (isOther) log.error(otherData, { revision })
      else if (isBack || isBehind) log.error(olderData, { revision, problem: `it was at ${seenText(uid)}` })
      latest = { uid, revision, era: eras.at(-1)?.uid }
      isDirty = true
      raise(uid, revision)
      arm()
      return { store: uid, node, isNewest, isAnew: isOther || isBack }
    },
    async stop() {
      clearTimeout(timer)
      flush()
      await writing
      clearTimeout(timer)
    },
  }

  function seenText(uid: string): string {
    return laterOf(highest.get(uid) ?? firstRevision, latest?.revision ?? firstRevision)
  }
}

/**
 * However far the data have grown since: the era that this node knows is not among theirs, or the next one began before
 * what this node had seen in it.
 */
function hasGoneBack({ era, revision }: Place, eras: Heard['eras']): boolean {
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
  } catch {
    // said below
  }
  // Each VM knows its own revision still.
  log.warn('a file cannot be read and is rewritten', { folder: file })
  return undefined
}

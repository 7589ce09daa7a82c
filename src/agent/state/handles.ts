// The agent's records of VMs, with which it continues after a kill -9. Each is in the VM's folder; simulated VMs, which have no
// folders, share one file. There is no journal: every step can be repeated, so the desired and the observed state suffice.
// Records contain no secrets: metadata, user data and credentials come from the server and are not written. Therefore VMs that
// ended with their host start again only after the server has responded.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { DesiredVm } from '../../api/nodes/agent.ts'
import { machineDefaults } from '../../api/vms/vm-shape.ts'
import type { Handle } from '../../drivers/driver.ts'
import { ifAbsent, readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import { KeyedLog } from '../../platform/keyed-log.ts'
import { firstRevision, type Origin } from './authority.ts'

export type StoredDesired = Omit<DesiredVm, 'metadata' | 'facts' | 'userdata' | 'growth' | 'fulfilled'>

export interface VmHandleRecord {
  readonly version: 1
  readonly handle: Handle
  readonly desired: StoredDesired
  /** Missing in records of early versions. */
  readonly origin?: Origin
  /** No server with authority lists the VM. It is left alone until one does, or until a user has it removed. */
  readonly isKept?: true
  /** The last generation that was carried out, or that failed with `problem`. */
  readonly fulfilled: number
  /** The VM has run, although `fulfilled` may be 0 because generations started over. */
  readonly wasDeployed?: true
  /** 0 if there is no disk. */
  readonly diskGeneration: number
  readonly diskGb?: number
  /** The key of the image that the disk was made from. */
  readonly base?: string
  readonly problem?: string
  readonly warning?: string
  /** The VM may be reading from an image that was still being fetched. */
  readonly isArriving?: true
  /** The VM has taken over its slot of a pool, or the slot was removed and the VM is created instead. */
  readonly isClaimed?: true
  /** The file system in the guest is still to be grown, with credentials that are only in the agent's memory. */
  readonly isGrowing?: true
}

/** The stored form. An earlier version of the agent must be able to read it, because a failed upgrade restores that version. */
type StoredRecord = Omit<VmHandleRecord, 'desired'> & { readonly wish: StoredDesired }

export interface HandleLookup {
  readonly uid: string
  /** Undefined if none was written, so the VM never started. */
  readonly record: VmHandleRecord | 'unreadable' | undefined
}

/** synced: one file for each VM, survives a power cut. written: one file for all, survives a kill of the agent. */
export type Durability = 'synced' | 'written'

export interface Handles {
  handleFor(uid: string): Handle
  list(): Promise<readonly HandleLookup[]>
  write(record: VmHandleRecord): Promise<void>
  remove(uid: string): Promise<void>
  close(): void
}

const recordName = 'svc3'
const fileName = `${recordName}.json`

/** Uids are used as folder names. */
const isSafe = (uid: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(uid)

/** Omits secrets, and `fulfilled`, which the record has itself. */
export const storedOf = ({
  metadata: _,
  facts: __,
  userdata: ___,
  growth: ____,
  fulfilled: _____,
  ...rest
}: DesiredVm): StoredDesired => rest

export const isDeployed = ({ diskGeneration, fulfilled, wasDeployed }: VmHandleRecord): boolean =>
  diskGeneration > 0 && (fulfilled > 0 || wasDeployed === true)

/**
 * Adapts a record to a server whose generations start over. The desired generation counts as not carried out, and the disk as not
 * newer than the server's, because otherwise its next revert would count as carried out.
 */
export const rebased = (record: VmHandleRecord, { generation, diskGeneration }: StoredDesired): VmHandleRecord => ({
  ...record,
  fulfilled: generation - 1,
  diskGeneration: Math.min(record.diskGeneration, diskGeneration),
  ...(isDeployed(record) && { wasDeployed: true as const }),
})

/** The desired state of a VM that the server does not know: that it is removed. */
export const desiredDeletion = (uid: string, known: StoredDesired | undefined): DesiredVm => ({
  name: uid,
  namespace: '',
  uid,
  diskGeneration: 0,
  architecture: 'amd64',
  cpu: 1,
  memoryMiB: 1,
  image: { name: '' },
  ip: '',
  ssh: 1,
  reservedPorts: [],
  display: { width: 0, height: 0, dpi: 0 },
  ...machineDefaults,
  revision: firstRevision,
  ...known,
  captures: [],
  generation: Number.MAX_SAFE_INTEGER,
  power: 'deleted',
  metadata: {},
  facts: {},
})

export function openHandles(folder: string, driver: string, durability: Durability): Handles {
  const vms = path.join(folder, 'vms')
  const folderOf = (uid: string): string => {
    if (!isSafe(uid)) throw new Error(`the uid ${JSON.stringify(uid.slice(0, 200))} of a VM cannot name a folder`)
    return path.join(vms, uid)
  }
  const handleFor = (uid: string): Handle => ({ version: 1, driver, uid, folder: folderOf(uid) })
  if (durability === 'written') return loggedHandles(handleFor, new KeyedLog(vms, recordName))

  const read = async (uid: string): Promise<HandleLookup['record']> => {
    const text = await readFileIfPresent(path.join(folderOf(uid), fileName))
    return text === undefined ? undefined : parse(text)
  }
  return {
    handleFor,
    async list() {
      const entries = await fs.readdir(vms, { withFileTypes: true }).catch(ifAbsent([]))
      const uids = entries.filter((entry) => entry.isDirectory() && isSafe(entry.name)).map(({ name }) => name)
      return Promise.all(uids.map(async (uid) => ({ uid, record: await read(uid) })))
    },
    async write(record) {
      const { folder } = record.handle
      await fs.mkdir(folder, { recursive: true, mode: 0o700 })
      await writeFileAtomically(path.join(folder, fileName), `${JSON.stringify(toStored(record))}\n`)
    },
    remove: (uid) => fs.rm(folderOf(uid), { recursive: true, force: true }),
    close: () => undefined,
  }
}

function loggedHandles(handleFor: (uid: string) => Handle, log: KeyedLog<StoredRecord>): Handles {
  return {
    handleFor,
    list: async () => [...log].map(([uid, stored]) => ({ uid, record: fromStored(stored) })),
    write: async (record) => void log.set(record.handle.uid, toStored(record)),
    remove: async (uid) => void log.delete(uid),
    close: () => log.close(),
  }
}

const toStored = ({ desired: wish, ...rest }: VmHandleRecord): StoredRecord => ({ ...rest, wish })

function fromStored({ wish: desired, ...record }: StoredRecord): VmHandleRecord | 'unreadable' {
  return record.version === 1 && typeof record.fulfilled === 'number' && desired ? { ...record, desired } : 'unreadable'
}

function parse(text: string): VmHandleRecord | 'unreadable' {
  try {
    return fromStored(JSON.parse(text) as StoredRecord)
  } catch {
    return 'unreadable'
  }
}

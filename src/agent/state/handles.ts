// What the agent keeps of each VM: enough to find it again and to go on after a kill -9. It is in the VM's own folder; of
// simulated VMs, which have none, in one file for all.
// There is no journal: every step can be done again, so the observed and the desired state say what is left to do.
// Nothing secret is in here: metadata, user data and credentials come from the server and are not written. So VMs that
// ended with their host start again once the server has answered, not before: nothing here would do for a start.
import { existsSync, mkdirSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { DesiredVm } from '../../api/nodes/agent.ts'
import { machineDefaults } from '../../api/vms/vm-shape.ts'
import type { Handle } from '../../drivers/driver.ts'
import { readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import { KeyedLog } from '../../platform/keyed-log.ts'
import { firstRevision, type Origin } from './authority.ts'

export type StoredDesired = Omit<DesiredVm, 'metadata' | 'facts' | 'userdata' | 'growth' | 'fulfilled'>

export interface VmHandleRecord {
  readonly version: 1
  readonly handle: Handle
  readonly desired: StoredDesired
  /** Missing in what was written when servers did not say. */
  readonly origin?: Origin
  /** No server lists it that could be believed: it runs on untouched until one lists it, or somebody has it removed. */
  readonly isKept?: true
  /** The generation that was carried out, or that failed for good: then `problem` says why. */
  readonly fulfilled: number
  /** It was up once, though by `fulfilled` it was not: generations have begun anew with other data of the server. */
  readonly wasDeployed?: true
  /** 0: there is no disk. */
  readonly diskGeneration: number
  readonly diskGb?: number
  /** The key of the image that the disk stands on. */
  readonly base?: string
  readonly problem?: string
  readonly warning?: string
  /** It may be reading from an image that was still on its way. */
  readonly isArriving?: true
  /** A slot has become this VM, or has made room for it. */
  readonly isClaimed?: true
  /** Partition and file system are still to be grown, with credentials that only the living agent has. */
  readonly isGrowing?: true
}

/** As it is written: an agent of an earlier version, put back by a failed upgrade, has to read it (where it is a file each). */
type StoredRecord = Omit<VmHandleRecord, 'desired'> & { readonly wish: StoredDesired }

export interface HandleLookup {
  readonly uid: string
  /** Missing when none was written: then the VM never started. `unreadable`: something is there that nobody can read. */
  readonly record: VmHandleRecord | 'unreadable' | undefined
}

/** synced: a file each, survives a power cut. written: one for all, survives the agent. */
export type Durability = 'synced' | 'written'

export interface Handles {
  handleFor(uid: string): Handle
  list(): Promise<readonly HandleLookup[]>
  read(uid: string): Promise<HandleLookup['record']>
  write(record: VmHandleRecord): Promise<void>
  /** All that is kept of the VM. */
  remove(uid: string): Promise<void>
  close(): void
}

const recordName = 'svc3'
const fileName = `${recordName}.json`

/** uids become names of folders. */
const isSafe = (uid: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(uid)

/** What the server says of the record is in the record already. */
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
 * The record for a server that counts anew: this generation is still to be done, and the disk is not newer than what the
 * server knows of, or its next revert would pass for done.
 */
export const rebased = (record: VmHandleRecord, { generation, diskGeneration }: StoredDesired): VmHandleRecord => ({
  ...record,
  fulfilled: generation - 1,
  diskGeneration: Math.min(record.diskGeneration, diskGeneration),
  ...(isDeployed(record) && { wasDeployed: true as const }),
})

/** That nothing is left of a VM about which the server says nothing. */
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
    read,
    async list() {
      const entries = await fs.readdir(vms, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return []
        throw error
      })
      const uids = entries.filter((entry) => entry.isDirectory() && isSafe(entry.name)).map(({ name }) => name)
      return Promise.all(uids.map(async (uid) => ({ uid, record: await read(uid) })))
    },
    async write(record) {
      const { folder } = record.handle
      if (!existsSync(folder)) mkdirSync(folder, { recursive: true, mode: 0o700 })
      await writeFileAtomically(path.join(folder, fileName), `${JSON.stringify(toStored(record))}\n`)
    },
    async remove(uid) {
      const folder = folderOf(uid)
      if (existsSync(folder)) await fs.rm(folder, { recursive: true, force: true })
    },
    close: () => undefined,
  }
}

function loggedHandles(handleFor: (uid: string) => Handle, log: KeyedLog<StoredRecord>): Handles {
  return {
    handleFor,
    list: async () => [...log].map(([uid, stored]) => ({ uid, record: fromStored(stored) })),
    read: async (uid) => {
      const stored = log.get(uid)
      return stored && fromStored(stored)
    },
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

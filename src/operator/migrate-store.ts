// svc3 server migrate-store: moves the records of a data folder from SQLite to etcd. The old store serves until the new
// one is complete, then is marked as moved; an interrupted run is resumed by the same command.
import fs from 'node:fs/promises'
import { defineCommand } from '../cli/command.ts'
import { UsageError } from '../cli/line/usage.ts'
import { clusterKey } from '../control-plane/backup-file.ts'
import { becomeOwner } from '../control-plane/data-folder.ts'
import { databaseIn, markIn, writePlace } from '../control-plane/store-place.ts'
import { timestamp } from '../platform/clock.ts'
import { failpoint } from '../platform/failpoint.ts'
import { syncFolder } from '../platform/files.ts'
import { fillStore, finishFilling, startRevOf } from '../store/fill.ts'
import { openStore } from '../store/open.ts'
import type { ClusterRecord } from '../store/records/collections.ts'
import { type Store, StoreError } from '../store/store.ts'
import { isPortable, markMoved, storeState } from '../store/store-state.ts'
import { explaining, masterKeyLocation } from './data.ts'
import { checkedStore, fileOf } from './options.ts'

export const command = defineCommand({
  description:
    'Moves the records of a data folder from SQLite to etcd. Stop the server first. The folder stays in use for everything\nelse; no server starts on its old records. If interrupted, run the same command to resume.',
  ownSignals: true,
  arguments: {
    from: { value: 'FROM', description: 'data folder with SQLite records, also as sqlite:DIR', required: true },
    to: { value: 'TO', description: 'empty prefix in etcd, etcd://HOST:PORT,…/PREFIX', required: true },
  },
  options: {},
  examples: [
    {
      line: 'svc3 server migrate-store /var/lib/svc3 etcd://a:2379,b:2379,c:2379/svc3',
      does: 'Move to etcd, to run several servers',
    },
  ],
  run({ host }, { args }) {
    if (args.from.startsWith('etcd:'))
      throw new UsageError(
        'Only records in SQLite can be moved',
        'Use svc3 server backup and restore for records in etcd',
      )
    const to = checkedStore(args.to)
    const dataDir = fileOf(host, args.from.replace(/^sqlite:/, ''))
    return explaining('The records in SQLite are unchanged', async () => {
      becomeOwner(dataDir)
      const { records, revision } = await migrateStore(dataDir, to)
      host.stdout.write(
        `Moved ${records} records as of revision ${revision} to ${to}.\n` +
          `No server starts on the old records in ${movedIn(dataDir)}. Delete the file when everything works.\n` +
          `Start every server with --store '${to}' and the same master key (${masterKeyLocation(dataDir)}); this one with --data ${dataDir}.\n`,
      )
      return 0
    })
  },
})

interface Migrated {
  readonly records: number
  readonly revision: string
}

async function migrateStore(dataDir: string, to: string): Promise<Migrated> {
  if (!(await fs.stat(databaseIn(dataDir)).catch(() => undefined))) throw nothingThere(dataDir)
  const from = await openStore(`sqlite:${dataDir}`)
  let migrated: Migrated
  try {
    migrated = await move(from, dataDir, to)
  } finally {
    await from.close()
  }
  failpoint('migrate.moved')
  await writePlace(dataDir, to)
  // Renamed, the old records are not found. If the file is put back, the mark in it keeps servers from using it.
  await fs.rename(databaseIn(dataDir), movedIn(dataDir))
  await fs.rm(markIn(dataDir), { force: true })
  await syncFolder(dataDir)
  return migrated
}

const movedIn = (dataDir: string): string => `${databaseIn(dataDir)}.moved`

async function move(from: Store, dataDir: string, to: string): Promise<Migrated> {
  const { entries, rev } = await from.list('')
  const records = entries.filter(isPortable)
  const moved = (await storeState(from))?.value
  if (moved?.state === 'filling')
    throw new StoreError(
      'Unavailable',
      `Another migration into ${dataDir} is unfinished (from ${moved.source}). Finish it first`,
    )
  if (moved && moved.to !== to)
    throw new StoreError('Unavailable', `The records of ${dataDir} were moved to ${moved.to} (${moved.at})`)
  const uid = (records.find(({ key }) => key === clusterKey)?.value as ClusterRecord | undefined)?.uid
  if (uid === undefined) throw nothingThere(dataDir)
  const target = await openStore(to, undefined, { startRev: startRevOf(rev) })
  try {
    const isDone = moved && !(await storeState(target)) && (await target.get(clusterKey))
    if (!isDone) {
      // The uid names the source, because the folder may have another name when the migration is resumed.
      await fillStore(target, { source: `the SQLite store ${uid}`, rev, entries: () => records }, timestamp(new Date()))
      await markMoved(from, to, timestamp(new Date()))
      failpoint('migrate.marked')
      await finishFilling(target)
    }
    return { records: records.length, revision: rev }
  } finally {
    await target.close()
  }
}

const nothingThere = (dataDir: string): StoreError =>
  new StoreError('Unavailable', `${dataDir} has no records. Specify the data folder of a server`)

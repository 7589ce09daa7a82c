// `svc3 server rotate-key`: a new master key becomes active, everything sealed goes under it, the old one is dropped.
// With a server running on the data, that server does it; otherwise this process does. A crash at any point leaves a
// key ring that opens everything, and the next start finishes the work.

import fs from 'node:fs'
import path from 'node:path'
import { KeyringError, loadKeyring, takeKeySource } from '../auth/keyring.ts'
import { Secrets } from '../auth/secrets.ts'
import type { RotateKeyOptions } from '../cli/programs.ts'
import { readFileIfPresent } from '../platform/files.ts'
import { LockedError, withLockFile } from '../platform/lock-file.ts'
import { openStore } from '../store/open.ts'
import { openCollections } from '../store/records/collections.ts'
import { isFault, StoreError } from '../store/store.ts'
import { becomeOwner } from './become-owner.ts'
import { askServer, NotDoneError } from './operator-request.ts'
import { notOurs, type Rotation, rotateKeyFile } from './reseal.ts'

const patienceMs = 60_000

export async function runRotateKey({ dataDir }: RotateKeyOptions): Promise<number> {
  becomeOwner(dataDir)
  const { source } = takeKeySource(dataDir, { ...process.env })
  if (source.kind !== 'file') return fail(notOurs(source.name), 'docs/operating.md has the steps')
  if ((await readFileIfPresent(source.file)) === undefined) {
    return fail(`there is no master key in ${dataDir}`, 'is it the data folder of a service? Name it with --data DIR')
  }
  if (!fs.existsSync(path.join(dataDir, 'svc3.db'))) {
    return fail(
      `the records of the service in ${dataDir} are not there but in a store that servers share`,
      'its master key cannot be rotated by this command: the other servers would not know the new one',
    )
  }
  try {
    const rotation = await withLockFile(`${source.file}.lock`, () => rotate(dataDir, source.file))
    return report(rotation)
  } catch (error) {
    if (error instanceof LockedError)
      return fail(`another rotation is under way (process ${error.pid})`, 'wait until it is done')
    if (error instanceof KeyringError || error instanceof StoreError || error instanceof NotDoneError)
      return fail(error.message, 'the keys in use still open everything; try again')
    throw error
  }
}

async function rotate(dataDir: string, keyFile: string): Promise<Rotation> {
  const store = await openStore(`sqlite:${dataDir}`).catch((error: unknown) => {
    if (isFault(error, 'Locked')) return undefined
    throw error
  })
  if (!store) return askServer(dataDir, { name: 'master-key' }, patienceMs)
  try {
    const secrets = new Secrets(await loadKeyring({ source: { kind: 'file', file: keyFile } }, false))
    await using collections = await openCollections(store)
    return await rotateKeyFile(collections, secrets, keyFile)
  } finally {
    await store.close()
  }
}

function report({ keyId, resealed, refused }: Rotation): number {
  process.stdout.write(`Master key rotated: ${resealed} sealed records are now under key ${keyId}.\n`)
  for (const { problem } of refused) process.stderr.write(`svc3: ${problem}\n`)
  if (refused.length === 0) return 0
  return fail(
    `${refused.length} sealed records do not open and were left alone; the old key is kept for them`,
    'remove those records and add them again',
  )
}

function fail(what: string, next: string): number {
  process.stderr.write(`svc3: ${what}\nsvc3: ${next}\n`)
  return 1
}

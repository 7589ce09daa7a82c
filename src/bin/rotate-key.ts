// `svc3 server rotate-key`: a new master key becomes active, everything sealed goes under it, the old one is dropped.
// With a server running on the data, that server does it; otherwise this process does. A crash at any point leaves a
// key ring that opens everything, and the next start finishes the work.

import fs from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { KeyringError, loadKeyring, saveKeyring, takeKeySource, withNewKey } from '../auth/keyring.ts'
import { Secrets } from '../auth/secrets.ts'
import type { RotateKeyOptions } from '../cli/programs.ts'
import { readFileIfPresent } from '../platform/files.ts'
import { isAlive, LockedError, withLockFile } from '../platform/lock-file.ts'
import { openCollections } from '../store/collections.ts'
import { openStore } from '../store/open.ts'
import { isFault, type Store, StoreError } from '../store/store.ts'
import { readConnection } from './connection.ts'
import { rotateSignal, rotationFile } from './dev.ts'
import { type Rotation, resealAll } from './reseal.ts'

const patienceMs = 60_000

export async function runRotateKey({ dataDir }: RotateKeyOptions): Promise<number> {
  const { source } = takeKeySource(dataDir, { ...process.env })
  if (source.kind !== 'file') {
    return fail(
      `the master keys come from ${source.name}, which only you can change`,
      'put a new key before the old one there and restart the service: it seals everything anew. Then drop the old key.',
    )
  }
  if ((await readFileIfPresent(source.file)) === undefined) {
    return fail(`there is no master key in ${dataDir}`, 'is it the data folder of a service? Name it with --data DIR')
  }
  try {
    const rotation = await withLockFile(`${source.file}.lock`, () => rotate(dataDir, source.file))
    return report(rotation)
  } catch (error) {
    if (error instanceof LockedError)
      return fail(`another rotation is under way (process ${error.pid})`, 'wait until it is done')
    if (error instanceof KeyringError || error instanceof StoreError || error instanceof RotationError)
      return fail(error.message, 'the keys in use still open everything; try again')
    throw error
  }
}

class RotationError extends Error {}

async function rotate(dataDir: string, keyFile: string): Promise<Rotation> {
  const store = await openStore(`sqlite:${dataDir}`).catch((error: unknown) => {
    if (isFault(error, 'Locked')) return undefined
    throw error
  })
  const ring = withNewKey(await loadKeyring({ source: { kind: 'file', file: keyFile } }, false))
  await saveKeyring(keyFile, ring)
  if (!store) return askServer(dataDir, ring.active.id)
  return rotateHere(store, new Secrets(ring), keyFile)
}

async function rotateHere(store: Store, secrets: Secrets, keyFile: string): Promise<Rotation> {
  try {
    await using collections = await openCollections(store)
    return await resealAll(collections, secrets, (ring) => saveKeyring(keyFile, ring))
  } finally {
    await store.close()
  }
}

async function askServer(dataDir: string, keyId: string): Promise<Rotation> {
  const server = await readConnection(dataDir)
  if (!server || !isAlive(server.pid))
    throw new RotationError(`a process has ${dataDir} open, but ${dataDir}/connection.json does not say which`)
  const file = path.join(dataDir, rotationFile)
  await fs.rm(file, { force: true })
  process.kill(server.pid, rotateSignal)
  for (const end = performance.now() + patienceMs; performance.now() < end; await sleep(50)) {
    const text = await readFileIfPresent(file)
    const rotation = text === undefined ? undefined : (JSON.parse(text) as Rotation)
    if (rotation?.keyId === keyId) return rotation
    if (!isAlive(server.pid))
      throw new RotationError(
        `the server (process ${server.pid}) ended meanwhile; its next start finishes the rotation`,
      )
  }
  throw new RotationError(
    `the server (process ${server.pid}) did not finish within ${patienceMs / 1_000} s; its log says why`,
  )
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

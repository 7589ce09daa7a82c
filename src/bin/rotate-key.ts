// `svc3 server rotate-key`: a new master key becomes active, everything sealed goes under it, the old one is dropped.
// With a server running on the data, that server does it; otherwise this process does. A crash at any point leaves a
// key ring that opens everything, and the next start finishes the work.

import { randomUUID } from 'node:crypto'
import fs from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { KeyringError, loadKeyring, takeKeySource } from '../auth/keyring.ts'
import { Secrets } from '../auth/secrets.ts'
import type { RotateKeyOptions } from '../cli/programs.ts'
import { readFileIfPresent } from '../platform/files.ts'
import { isAlive, LockedError, withLockFile } from '../platform/lock-file.ts'
import { openCollections } from '../store/collections.ts'
import { openStore } from '../store/open.ts'
import { isFault, StoreError } from '../store/store.ts'
import { becomeOwner } from './become-owner.ts'
import { readConnection } from './connection.ts'
import { notOurs, type Rotation, rotateKeyFile } from './reseal.ts'
import { readRotation, rotateSignal, writeRotation } from './rotation-note.ts'

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
  if (!store) return askServer(dataDir)
  try {
    const secrets = new Secrets(await loadKeyring({ source: { kind: 'file', file: keyFile } }, false))
    await using collections = await openCollections(store)
    return await rotateKeyFile(collections, secrets, keyFile)
  } finally {
    await store.close()
  }
}

async function askServer(dataDir: string): Promise<Rotation> {
  const server = await readConnection(dataDir)
  if (!server || !isAlive(server.pid) || !(await answers(server.apiUrl))) {
    throw new RotationError(`a process has ${dataDir} open, but ${dataDir}/connection.json does not say which`)
  }
  const id = randomUUID()
  await writeRotation(dataDir, { id })
  process.kill(server.pid, rotateSignal)
  for (const end = performance.now() + patienceMs; performance.now() < end; await sleep(50)) {
    const note = await readRotation(dataDir)
    if (note?.id === id && note.rotation) return note.rotation
    if (note?.id === id && note.problem !== undefined) throw new RotationError(note.problem)
    if (!isAlive(server.pid)) {
      throw new RotationError(
        `the server (process ${server.pid}) ended meanwhile; its next start finishes the rotation`,
      )
    }
  }
  throw new RotationError(
    `the server (process ${server.pid}) did not answer within ${patienceMs / 1_000} s; its log says why`,
  )
}

/** A note left by a killed server may name a process that is somebody else's by now. */
function answers(apiUrl: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  // Whose certificate it is does not matter here: nothing is sent, and only "alive" is asked.
  const options = { timeout: 5_000, rejectUnauthorized: false, agent: false } as const
  const get = apiUrl.startsWith('https:') ? https.get : http.get
  const request = get(`${apiUrl}/healthz`, options, (response) => {
    response.resume()
    resolve(response.statusCode === 200)
  })
  request.on('error', () => resolve(false))
  request.on('timeout', () => request.destroy())
  return promise
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

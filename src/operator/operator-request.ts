// The note by which commands of an operator ask the server that has the data open for what only it can do, and are
// answered: a new master key, new signing keys, a backup.
import { randomUUID } from 'node:crypto'
import http from 'node:http'
import https from 'node:https'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Rotated } from '../auth/signing-keys.ts'
import { readConnection } from '../control-plane/connection.ts'
import { readFileIfPresent, writeFileAtomically } from '../platform/files.ts'
import { isAlive, LockedError, withLockFile } from '../platform/lock-file.ts'
import type { BackupReport } from './backup.ts'
import { becomeOwner } from './become-owner.ts'
import type { Rotation } from './reseal.ts'

/** SIGHUP is for terminals that close. */
export const rotateSignal = 'SIGUSR2'

/** What can be asked for, and what is answered. */
interface Wishes {
  'master-key': { readonly given: object; readonly answer: Rotation }
  'signing-keys': { readonly given: { readonly isRevoking: boolean }; readonly answer: Rotated }
  backup: { readonly given: { readonly file: string; readonly withImages: boolean }; readonly answer: BackupReport }
}
export type WishName = keyof Wishes
export type Wish = { [Name in WishName]: { readonly name: Name } & Wishes[Name]['given'] }[WishName]

export interface RotationNote {
  readonly id: string
  readonly wish: Wish
  readonly answer?: Wishes[WishName]['answer']
  readonly problem?: string
}

/** The server did not do it, or nobody knows. */
export class NotDoneError extends Error {
  override readonly name = 'NotDoneError'
}

const fileIn = (dataDir: string): string => path.join(dataDir, 'rotation.json')

export const writeRotation = (dataDir: string, note: RotationNote): Promise<void> =>
  writeFileAtomically(fileIn(dataDir), `${JSON.stringify(note)}\n`, { mode: 0o600 })

export async function readRotation(dataDir: string): Promise<RotationNote | undefined> {
  const text = await readFileIfPresent(fileIn(dataDir))
  return text === undefined ? undefined : (JSON.parse(text) as RotationNote)
}

/** Has it done by the server that runs on the data, and waits. */
export async function askServer<Name extends WishName>(
  dataDir: string,
  wish: { readonly name: Name } & Wishes[Name]['given'],
  patienceMs: number,
): Promise<Wishes[Name]['answer']> {
  const server = await readConnection(dataDir)
  if (!server || !isAlive(server.pid) || !(await answers(server.apiUrl))) {
    throw new NotDoneError(`a process has ${dataDir} open, but ${dataDir}/connection.json does not say which`)
  }
  // The server reads the note, and writes its answer over it.
  becomeOwner(dataDir)
  const asked = withLockFile(`${fileIn(dataDir)}.lock`, () =>
    ask(dataDir, server.pid, wish as unknown as Wish, patienceMs),
  )
  return (await asked.catch((error: unknown) => {
    if (!(error instanceof LockedError)) throw error
    throw new NotDoneError(`the server is busy with what another command asked for (process ${error.pid})`)
  })) as Wishes[Name]['answer']
}

async function ask(dataDir: string, pid: number, wish: Wish, patienceMs: number): Promise<Wishes[WishName]['answer']> {
  const id = randomUUID()
  await writeRotation(dataDir, { id, wish })
  process.kill(pid, rotateSignal)
  for (const end = performance.now() + patienceMs; performance.now() < end; await sleep(50)) {
    const note = await readRotation(dataDir)
    if (note?.id === id && note.answer) return note.answer
    if (note?.id === id && note.problem !== undefined) throw new NotDoneError(note.problem)
    if (!isAlive(pid))
      throw new NotDoneError(`the server (process ${pid}) ended meanwhile; its next start finishes what it began`)
  }
  throw new NotDoneError(`the server (process ${pid}) did not answer within ${patienceMs / 1_000} s; its log says why`)
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

// Requests of operator commands to the server that has the data open: keys, users, a backup. Request and answer are
// exchanged in a file of the data folder.
import { randomUUID } from 'node:crypto'
import http from 'node:http'
import https from 'node:https'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TokenRequest, UserEdit, UserEditResult } from '../auth/provider/users.ts'
import type { Rotated } from '../auth/signing-keys.ts'
import { readFileIfPresent, writeFileAtomically } from '../platform/files.ts'
import { processExists, withLockFile } from '../platform/lock-file.ts'
import type { BackupReport } from './backup-file.ts'
import { readConnection } from './connection.ts'
import { becomeOwner, OperatorError } from './data-folder.ts'
import type { Rotation } from './reseal.ts'

export const requestSignal = 'SIGUSR2'

interface Requests {
  'master-key': { readonly given: object; readonly answer: Rotation }
  'signing-keys': { readonly given: { readonly isRevoking: boolean }; readonly answer: Rotated }
  users: { readonly given: { readonly edit: UserEdit | TokenRequest }; readonly answer: UserEditResult }
  backup: { readonly given: { readonly file: string; readonly withImages: boolean }; readonly answer: BackupReport }
}
type RequestName = keyof Requests
export type OperatorRequest = { [Name in RequestName]: { readonly name: Name } & Requests[Name]['given'] }[RequestName]

export interface RequestFile {
  readonly id: string
  /** Removed once answered, so that no password hash stays in the file. */
  readonly wish?: OperatorRequest
  readonly answer?: Requests[RequestName]['answer']
  readonly problem?: string
}

const fileIn = (dataDir: string): string => path.join(dataDir, 'rotation.json')

export const writeRequest = (dataDir: string, request: RequestFile): Promise<void> =>
  writeFileAtomically(fileIn(dataDir), `${JSON.stringify(request)}\n`, { mode: 0o600 })

export async function readRequest(dataDir: string): Promise<RequestFile | undefined> {
  const text = await readFileIfPresent(fileIn(dataDir))
  return text === undefined ? undefined : (JSON.parse(text) as RequestFile)
}

export async function askServer<Name extends RequestName>(
  dataDir: string,
  request: { readonly name: Name } & Requests[Name]['given'],
  timeoutMs: number,
): Promise<Requests[Name]['answer']> {
  const server = await readConnection(dataDir)
  if (!server || !processExists(server.pid) || !(await answers(server.apiUrl))) {
    throw new OperatorError(`A process has ${dataDir} open, but ${dataDir}/connection.json does not name it`)
  }
  // The server has to be able to read the request and to overwrite it.
  becomeOwner(dataDir)
  const work = () => ask(dataDir, server.pid, request as unknown as OperatorRequest, timeoutMs)
  const busy = (pid: number) => new OperatorError(`The server is busy with another command (process ${pid})`)
  return (await withLockFile(`${fileIn(dataDir)}.lock`, work, busy)) as Requests[Name]['answer']
}

async function ask(
  dataDir: string,
  pid: number,
  wish: OperatorRequest,
  timeoutMs: number,
): Promise<Requests[RequestName]['answer']> {
  const id = randomUUID()
  await writeRequest(dataDir, { id, wish })
  process.kill(pid, requestSignal)
  for (const end = performance.now() + timeoutMs; performance.now() < end; await sleep(50)) {
    const written = await readRequest(dataDir)
    const answer = written?.id === id ? written.answer : undefined
    // Its answer may be a token, which does not stay in the file.
    if (answer) return writeRequest(dataDir, { id }).then(() => answer)
    if (written?.id === id && written.problem !== undefined) throw new OperatorError(written.problem)
    if (!processExists(pid))
      throw new OperatorError(`The server (process ${pid}) stopped. Its next start finishes the work`)
  }
  throw new OperatorError(`The server (process ${pid}) did not answer within ${timeoutMs / 1_000} s. Check its log`)
}

/** Checks that the server responds, because the pid of a killed server may have been reused. */
function answers(apiUrl: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  // The certificate is not checked, because nothing secret is sent or received.
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

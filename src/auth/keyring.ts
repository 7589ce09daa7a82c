// The master keys that encrypt secrets at rest: base64 keys of 32 bytes, separated by white space or commas. The first one
// encrypts, and all of them decrypt. They come from a file that the first start creates, an environment variable, or a
// credential file of the service manager.
import { createHash, randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { mayBeThere, whyUnreadable, writeFileAtomically } from '../platform/files.ts'

interface MasterKey {
  /** A hash that names the key in sealed text. */
  readonly id: string
  readonly bytes: Buffer
}

export interface Keyring {
  readonly active: MasterKey
  readonly keys: ReadonlyMap<string, MasterKey>
}

export type KeySource =
  | { readonly kind: 'file'; readonly file: string }
  | { readonly kind: 'variable' | 'credential'; readonly name: string }

const keyVariable = 'SVC3_MASTER_KEY'
const credentialName = 'svc3-master-key'
const keyBytes = 32

export class KeyringError extends Error {
  override readonly name = 'KeyringError'
}

export function makeKeyring(bytes: readonly Buffer[]): Keyring {
  const keys = bytes.map((key) => ({ id: createHash('sha256').update(key).digest('hex').slice(0, 12), bytes: key }))
  const [active] = keys
  if (!active) throw new KeyringError('A key ring needs at least one key')
  return { active, keys: new Map(keys.map((key) => [key.id, key])) }
}

export function parseKeyring(text: string, where: string): Keyring {
  const parts = text.split(/[\s,]+/).filter((part) => part !== '')
  const keys = parts.map((part) => Buffer.from(part, 'base64'))
  const isWhole = keys.every((key, index) => key.length === keyBytes && key.toString('base64') === parts[index])
  if (keys.length === 0 || !isWhole) {
    const problem = parts.length === 0 ? 'is empty' : 'does not hold master keys'
    throw new KeyringError(`${where} ${problem}: it must hold one or more base64 keys of ${keyBytes} bytes`)
  }
  return makeKeyring(keys)
}

export const formatKeyring = (ring: Keyring): string =>
  [ring.active, ...[...ring.keys.values()].filter((key) => key !== ring.active)]
    .map((key) => `${key.bytes.toString('base64')}\n`)
    .join('')

/** The ring with a new active key. The other keys still decrypt. */
export const withNewKey = (ring: Keyring): Keyring =>
  makeKeyring([randomBytes(keyBytes), ...[...ring.keys.values()].map((key) => key.bytes)])

export const onlyActive = (ring: Keyring): Keyring => makeKeyring([ring.active.bytes])

/** Finds the keys of this process. Removes the variable from the environment, so that no child process inherits it. */
export function takeKeySource(
  dataFolder: string,
  environment: NodeJS.ProcessEnv,
): { source: KeySource; text?: string } {
  const fromVariable = environment[keyVariable]
  if (fromVariable !== undefined) {
    delete environment[keyVariable]
    return { source: { kind: 'variable', name: keyVariable }, text: fromVariable }
  }
  // The service manager sets the folder for any credential, so ours may be missing.
  const credential = path.join(environment.CREDENTIALS_DIRECTORY ?? '', credentialName)
  if (environment.CREDENTIALS_DIRECTORY && mayBeThere(credential))
    return { source: { kind: 'credential', name: credential } }
  return { source: { kind: 'file', file: path.join(dataFolder, 'master.key') } }
}

/** Reads the keys. `isFresh`: there are no data yet, so a missing file is created (mode 0600). */
export async function loadKeyring(found: { source: KeySource; text?: string }, isFresh: boolean): Promise<Keyring> {
  const { source, text } = found
  if (source.kind === 'variable') return parseKeyring(text ?? '', `Variable ${source.name}`)
  const file = source.kind === 'file' ? source.file : source.name
  // An unreadable file is an error, because a new key would decrypt nothing.
  const content = mayBeThere(file) ? await readKeys(file) : undefined
  if (source.kind === 'file' && content !== undefined) await refuseIfOpen(file)
  if (content !== undefined) return parseKeyring(content, `Master key ${file}`)
  if (!isFresh || source.kind === 'credential') {
    throw new KeyringError(`Master key ${file} not found: restore it from your backup to open the stored secrets`)
  }
  const ring = makeKeyring([randomBytes(keyBytes)])
  await saveKeyring(file, ring)
  return ring
}

async function readKeys(file: string): Promise<string> {
  try {
    return await fs.readFile(file, 'utf8')
  } catch (error) {
    throw new KeyringError(`Master key ${file} ${whyUnreadable(error)}`)
  }
}

async function refuseIfOpen(file: string): Promise<void> {
  const { mode } = await fs.stat(file)
  if ((mode & 0o077) === 0) return
  throw new KeyringError(
    `Master key ${file} is readable by other users: run chmod 600, and rotate the key if it may have leaked`,
  )
}

export const saveKeyring = (file: string, ring: Keyring): Promise<void> =>
  writeFileAtomically(file, formatKeyring(ring), { mode: 0o600 })

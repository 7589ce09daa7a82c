// Writes the configuration file: atomically, readable by its owner only, under a lock between processes, and with unknown
// fields kept. connection.ts reads it.
import fs from 'node:fs'
import path from 'node:path'
import { writeFileAtomically } from '../../platform/files.ts'
import { LockedError, withLockFile } from '../../platform/lock-file.ts'
import { type RetryPolicy, retry } from '../../platform/retry.ts'
import type { Host } from '../host.ts'
import { Failure } from '../line/usage.ts'
import { readCliConfig } from './connection.ts'
import { userFolder } from './folders.ts'

type Fields = { readonly [field: string]: unknown }

interface Config {
  readonly currentContext?: string
  readonly contexts?: { readonly [name: string]: Fields }
  readonly [field: string]: unknown
}

const lockPolicy: RetryPolicy = { attempts: Infinity, withinMs: 60_000, firstDelayMs: 50, maxDelayMs: 50 }

export function configFile(host: Pick<Host, 'env'>): string {
  const folder = userFolder(host, 'CONFIG')
  if (folder) return `${folder}/config.json`
  throw new Failure('No place for a configuration file', 'Set HOME or XDG_CONFIG_HOME')
}

export async function editConfig(host: Host, change: (config: Config) => Config): Promise<void> {
  const file = configFile(host)
  await withConfigLock(host, 'write', async () => {
    const { config = {} } = readCliConfig(host)
    await writeFileAtomically(file, `${JSON.stringify(change(config), null, 2)}\n`, { mode: 0o600 })
  })
}

/** Changes fields of one context; undefined removes a field. */
export function editContext(
  host: Host,
  name: string,
  change: Fields,
  options: { readonly makeCurrent?: boolean } = {},
): Promise<void> {
  return editConfig(host, (config) => {
    const merged = { ...config.contexts?.[name], ...change }
    const remaining = Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== undefined))
    return {
      ...config,
      ...(options.makeCurrent && { currentContext: name }),
      contexts: { ...config.contexts, [name]: remaining },
    }
  })
}

/** Runs `work` in one process at a time per purpose. */
export async function withConfigLock<T>(host: Host, purpose: string, work: () => Promise<T>): Promise<T> {
  const file = configFile(host)
  try {
    fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
    const isRetriable = (error: unknown): boolean => error instanceof LockedError
    return await retry(() => withLockFile(`${file}.${purpose}.lock`, work), { policy: lockPolicy, isRetriable })
  } catch (error) {
    if (error instanceof LockedError)
      throw new Failure(`Process ${error.pid} has locked ${file} for over a minute`, 'End it, then try again')
    const { code } = error as NodeJS.ErrnoException
    if (!unwritable.has(code ?? '')) throw error
    throw new Failure(`Cannot write ${file} (${code})`, 'Check the folder, or choose another with XDG_CONFIG_HOME')
  }
}

const unwritable = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST', 'ENOENT', 'ENOSPC'])

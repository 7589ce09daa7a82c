// A temporary folder that is renamed to its target when it is complete. Its name identifies the process, so that
// folders of killed processes can be removed.
import fs from 'node:fs/promises'
import path from 'node:path'
import { ifAbsent, syncFolder } from './files.ts'
import { stampOf } from './processes.ts'

interface Temporary extends AsyncDisposable {
  readonly path: string
  /** If `target` exists, it is kept unless `replace` is set, and this folder is removed. */
  become(target: string, options?: { readonly replace?: boolean }): Promise<void>
}

/** A stamp of the process follows the pid. */
const pattern = /^\..+\.(\d+)-(\w+)\.[a-zA-Z0-9]{6}$/

export async function makeTemporary(folder: string, name: string): Promise<Temporary> {
  await fs.mkdir(folder, { recursive: true })
  const made = await fs.mkdtemp(path.join(folder, `.${name}.${process.pid}-${await stampOf(process.pid)}.`))
  return {
    path: made,
    become: async (target, { replace = false } = {}) => {
      await syncFolder(made)
      await fs.chmod(made, 0o755)
      if (replace) await fs.rename(target, `${made}.old`).catch(ifAbsent(undefined))
      await fs.rename(made, target).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
      })
      await syncFolder(folder)
    },
    [Symbol.asyncDispose]: async () => {
      await remove(made)
      await remove(`${made}.old`)
    },
  }
}

/** Removes the folders of ended processes. */
export async function removeStale(folder: string): Promise<void> {
  for (const name of await fs.readdir(folder).catch(ifAbsent<string[]>([]))) {
    const [, pid, stamp] = pattern.exec(name.replace(/\.old$/, '')) ?? []
    if (pid !== undefined && (await stampOf(Number(pid))) !== stamp) await remove(path.join(folder, name))
  }
}

/** Retries, because a child of a killed process may still write. */
const remove = (folder: string): Promise<void> =>
  fs.rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })

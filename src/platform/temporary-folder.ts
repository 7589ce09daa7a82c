// A folder that becomes the result by one rename, or goes. Its name says which process makes it, so that the next build
// removes what a killed one left, and leaves alone what a living one is at.
import fs from 'node:fs/promises'
import path from 'node:path'
import { readFileIfPresent, syncFolder } from './files.ts'

interface Temporary extends AsyncDisposable {
  readonly path: string
  /** Takes the place of `target`. Where another was faster, that one stays, unless it is to be replaced. */
  become(target: string, options?: { readonly replace?: boolean }): Promise<void>
}

const pattern = /^\..+\.(\d+)-(\d+)\.[a-zA-Z0-9]{6}$/

export async function makeTemporary(folder: string, name: string): Promise<Temporary> {
  await fs.mkdir(folder, { recursive: true })
  const made = await fs.mkdtemp(path.join(folder, `.${name}.${process.pid}-${await startOf(process.pid)}.`))
  return {
    path: made,
    become: async (target, { replace = false } = {}) => {
      await syncFolder(made)
      await fs.chmod(made, 0o755)
      if (replace) await setAside(target, `${made}.old`)
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

async function setAside(target: string, aside: string): Promise<void> {
  await fs.rename(target, aside).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
}

/** Removes what processes that are no more have left in a folder. */
export async function removeStale(folder: string): Promise<void> {
  const names = await fs.readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  for (const name of names) {
    const [, pid, start] = pattern.exec(name.replace(/\.old$/, '')) ?? []
    if (pid !== undefined && (await startOf(Number(pid))) !== start) await remove(path.join(folder, name))
  }
}

/** A child of a killed build may still be writing for a moment: hence the retries. */
const remove = (folder: string): Promise<void> =>
  fs.rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })

/** When a process started, in ticks since the host did: pids come again, the pair does not. Undefined for the dead. */
async function startOf(pid: number): Promise<string | undefined> {
  const text = await readFileIfPresent(`/proc/${pid}/stat`)
  return text?.slice(text.lastIndexOf(')') + 2).split(' ')[19]
}

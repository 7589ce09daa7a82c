// Stores the SSH host key of a VM in one file per VM and disk, so that a new VM with the same name does not look like an
// attack.
import fs from 'node:fs'
import { userFolder } from '../../../connect/folders.ts'
import type { Host } from '../../../host.ts'

/** The oldest files beyond this number are removed, because VMs are short-lived. */
const maxFiles = 500

/** Returns the file for a disk; undefined without a writable folder. */
export function knownHostsFile(host: Pick<Host, 'env'>, disk: string): string | undefined {
  const config = userFolder(host, 'CONFIG')
  if (!config) return undefined
  const folder = `${config}/known-hosts`
  try {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    keepNewest(folder)
  } catch {
    return undefined
  }
  return `${folder}/${encodeURIComponent(disk)}`
}

function keepNewest(folder: string): void {
  const names = fs.readdirSync(folder)
  if (names.length < maxFiles) return
  const files = names.map((name) => {
    const file = `${folder}/${name}`
    return { file, changedMs: fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0 }
  })
  files.sort((a, b) => b.changedMs - a.changedMs)
  for (const { file } of files.slice(maxFiles / 2)) fs.rmSync(file, { force: true })
}

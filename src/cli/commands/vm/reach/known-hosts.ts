// Where the key of a VM's SSH server is kept: a file for each VM, by its uid. A VM that is deployed again under the same
// name is another one, and its new key no reason for alarm.
import fs from 'node:fs'
import type { Host } from '../../../host.ts'

/** Older ones go: VMs come and go by the thousand. */
const maxFiles = 500

/** Nothing where there is no place for it. */
export function knownHostsFile({ env }: Pick<Host, 'env'>, uid: string): string | undefined {
  const config = env.XDG_CONFIG_HOME || (env.HOME && `${env.HOME}/.config`)
  if (!config) return undefined
  const folder = `${config}/svc3/known-hosts`
  try {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    keepNewest(folder)
  } catch {
    return undefined // not writable: as if there were none
  }
  return `${folder}/${encodeURIComponent(uid)}`
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

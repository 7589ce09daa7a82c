// The folder that a guest sees as "svc3" among its shared files, read-only: its metadata and its first-boot script, as what other
// guests read at http://169.254.169.254.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { VmSpec } from '../driver.ts'

const guestFolder = (folder: string): string => path.join(folder, 'guest')
export const scriptFile = (folder: string): string => path.join(guestFolder(folder), 'userdata')

/** Returns tart's option. The folder itself stays, because a running guest may have it open. */
export async function writeGuestFolder(folder: string, { metadata, facts, userdata }: VmSpec): Promise<string> {
  const values = Object.entries({ ...metadata, ...facts })
  const names = values.map(([key]) => key.toLowerCase())
  const odd = values.find(([key], index) => !isFileName(key) || names.indexOf(names[index] ?? '') < index)?.[0]
  if (odd !== undefined)
    throw new Error(`metadata key ${JSON.stringify(odd)} cannot be a file beside the others on a Mac; use another key`)
  const target = path.join(guestFolder(folder), 'metadata')
  await removeSecrets(folder)
  await fs.mkdir(target, { recursive: true, mode: 0o700 })
  for (const [key, value] of values) await fs.writeFile(path.join(target, key), value, { mode: 0o600 })
  if (userdata !== undefined) await fs.writeFile(scriptFile(folder), Buffer.from(userdata, 'base64'), { mode: 0o600 })
  return `--dir=svc3:${guestFolder(folder)}:ro`
}

/** tart's options for what the VM may use of its host. `allowed`: folders that the operator lets guests have. */
export async function hostOptions(
  { directories = [], nested, rosetta }: VmSpec,
  allowed: readonly string[],
): Promise<readonly string[]> {
  const roots = await Promise.all(allowed.map((root) => fs.realpath(root).catch(() => undefined)))
  const shares = directories.map(async (directory) => {
    const [name, wanted = '', mode] = directory.split(':')
    // tart gets the path without links, so that a link in a shared folder leads no guest out of it.
    const real = await fs.realpath(wanted).catch(() => '')
    const isInside = roots.some((root) => root !== undefined && `${real}/`.startsWith(`${root}/`))
    if (!isInside || /[:,]/.test(real))
      throw new Error(`guests may not have folder ${wanted} of this host; its operator allows it in apple.directories`)
    return `--dir=${name}:${real}${mode === 'ro' ? ':ro' : ''}`
  })
  return [
    ...(await Promise.all(shares)),
    ...(nested ? ['--nested'] : []),
    ...(rosetta === undefined ? [] : [`--rosetta=${rosetta}`]),
  ]
}

const isFileName = (key: string): boolean => /^[\w. -]{1,128}$/.test(key) && !/^\.{1,2}$/.test(key)

export async function removeSecrets(folder: string): Promise<void> {
  for (const file of [path.join(guestFolder(folder), 'metadata'), scriptFile(folder)])
    await fs.rm(file, { recursive: true, force: true })
}

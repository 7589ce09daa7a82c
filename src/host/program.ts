// The copy of the program that a service runs: `<folder>/<version>-<digest>/`, and a link `current` to one of them. The
// link is replaced atomically, so a service starts the old program or the new one. The previous copy stays for rollback.
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { succeeds } from '../platform/succeeds.ts'

const link = 'current'
/** The parts of the package that a service needs. */
const parts = ['package.json', 'bin', 'dist'] as const

export interface Installed {
  readonly version: string
  /** The copy that `current` led to before. Undefined after the first installation. */
  readonly before: string | undefined
  readonly now: string
}

export class NotBuilt extends Error {
  override readonly name = 'NotBuilt'
}

/** The path of the copied Node, below the folder of copies. */
export const ownNode = path.posix.join(link, 'bin', 'node')

interface InstallationSource {
  readonly packageDir: string
  /** The folder of copies. */
  readonly folder: string
  /** The Node to copy, too, if it may be deleted: that of a checkout, or of a user. */
  readonly node: string | undefined
}

export async function installProgram({ packageDir, folder, node }: InstallationSource): Promise<Installed> {
  const { version } = JSON.parse(await fs.readFile(path.join(packageDir, 'package.json'), 'utf8')) as {
    version: string
  }
  const now = `${version}-${await digestOf(path.join(packageDir, 'dist'), node && process.version)}`
  await fs.mkdir(folder, { recursive: true, mode: 0o755 })
  const target = path.join(folder, now)
  if (!(await succeeds(fs.access(target)))) {
    const draft = `${target}.${process.pid}.tmp`
    await fs.rm(draft, { recursive: true, force: true })
    try {
      await fs.mkdir(draft, { mode: 0o755 })
      for (const part of parts)
        await fs.cp(path.join(packageDir, part), path.join(draft, part), {
          recursive: true,
          // A relative link then points into the copy.
          verbatimSymlinks: true,
          // The compile cache belongs to the Node of this user.
          filter: (source) => path.relative(packageDir, source) !== path.join('dist', 'cache'),
        })
      if (node !== undefined) await fs.copyFile(node, path.join(draft, 'bin', 'node'))
      await openToAll(draft)
      await fs.rename(draft, target)
    } finally {
      await fs.rm(draft, { recursive: true, force: true })
    }
  }
  const before = await currentProgram(folder)
  await pointTo(folder, now)
  await removeOthers(folder, [now, before ?? now])
  return { version, before, now }
}

export const currentProgram = (folder: string): Promise<string | undefined> =>
  fs.readlink(path.join(folder, link)).catch(() => undefined)

/** Replaces the link `current` atomically. */
export async function pointTo(folder: string, name: string): Promise<void> {
  const draft = path.join(folder, `${link}.${process.pid}.tmp`)
  await fs.rm(draft, { force: true })
  await fs.symlink(name, draft)
  await fs.rename(draft, path.join(folder, link))
}

export const versionOf = (name: string): string => name.replace(/-[0-9a-f]{12}$/, '')

async function removeOthers(folder: string, kept: readonly string[]): Promise<void> {
  for (const entry of await fs.readdir(folder, { withFileTypes: true }))
    if (entry.isDirectory() && /-[0-9a-f]{12}(\.\d+\.tmp)?$/.test(entry.name) && !kept.includes(entry.name))
      await fs.rm(path.join(folder, entry.name), { recursive: true, force: true })
}

async function digestOf(dist: string, nodeVersion = ''): Promise<string> {
  const names = await fs.readdir(dist, { recursive: true, withFileTypes: true }).catch(() => [])
  const files = names
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(dist, path.join(entry.parentPath, entry.name)))
    .filter((file) => !file.startsWith(`cache${path.sep}`))
    .sort()
  if (!files.includes('svc3.cjs')) throw new NotBuilt(`No built program in ${dist}`)
  const hash = createHash('sha256').update(nodeVersion)
  for (const file of files) {
    const bytes = await fs.readFile(path.join(dist, file))
    hash.update(`${file}\0${bytes.length}\0`).update(bytes)
  }
  return hash.digest('hex').slice(0, 12)
}

/** Makes files readable to all whatever the umask is, because the service's user has to read them. */
async function openToAll(folder: string): Promise<void> {
  await fs.chmod(folder, 0o755)
  for (const entry of await fs.readdir(folder, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name)
    const isProgram = entry.isDirectory() || ((await fs.stat(file)).mode & 0o100) !== 0
    await fs.chmod(file, isProgram ? 0o755 : 0o644)
  }
}

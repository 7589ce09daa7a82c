// The Debian packages of an image. A private apt finds, downloads and verifies them without touching the machine's state,
// and they are cached, so that a second build needs no network.
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { readFileIfPresent, syncFolder, writeFileAtomically } from '../../src/platform/files.ts'
import { makeTemporary } from '../../src/platform/temporary-folder.ts'
import { aptConfiguration, preferences } from './apt.ts'
import type { Architecture } from './architectures.ts'
import { bootPackage } from './firmware.ts'
import type { Guest } from './images.ts'
import { run } from './programs.ts'
import { machineSources } from './sources.ts'

const isLibrary = (name: string): boolean => /^(lib|zlib)/.test(name)

/** The ordinary kernel: the one for clouds has no e1000, no AHCI and no display. */
const kernelPrefix = 'linux-image-'
const kernelOf = (architecture: Architecture): string => `${kernelPrefix}${architecture}`

/** Packages with a common folder. The kernel, most of the bytes, is shared by all images. */
interface PackageSet {
  readonly name: string
  readonly wanted: readonly string[]
}

const setsOf = ({ kind, architecture, packages }: Guest): readonly PackageSet[] => [
  { name: `packages-kernel-${architecture}`, wanted: [kernelOf(architecture)] },
  { name: `packages-${kind}-${architecture}`, wanted: [...packages, bootPackage(architecture)] },
]

interface Manifest {
  /** The requested packages. A cache for other packages is not used. */
  readonly wish: string
  readonly files: readonly { readonly name: string; readonly sha256: string }[]
}
const manifestFile = 'packages.json'

interface Packages {
  readonly kernel: string
  /** Absolute paths of all packages but the kernel. */
  readonly userland: readonly string[]
}

interface PackageOptions {
  readonly folder: string
  readonly guest: Guest
  readonly signal: AbortSignal
  readonly progress: (message: string) => void
}

export async function fetchPackages(options: PackageOptions): Promise<Packages> {
  const { folder, guest } = options
  const sets = setsOf(guest)
  const cached = await Promise.all(sets.map((set) => readCache(folder, set)))
  const missing = sets.filter((_, index) => !cached[index])
  if (missing.length > 0) await download(missing, options)
  const [[kernel] = [], userland = []] = await Promise.all(
    sets.map(async (set, index) => cached[index] ?? (await readCache(folder, set))),
  )
  if (kernel !== undefined && userland.length > 0) return { kernel, userland }
  throw new Error(`the packages in ${folder} are not those that were downloaded; remove them and try again`)
}

/** Absolute paths; undefined unless all files exist and have the digests that apt verified. */
async function readCache(folder: string, { name, wanted }: PackageSet): Promise<string[] | undefined> {
  const kept = path.join(folder, name)
  const text = await readFileIfPresent(path.join(kept, manifestFile))
  if (text === undefined) return undefined
  const { wish, files } = JSON.parse(text) as Manifest
  if (wish !== wanted.join(' ')) return undefined
  for (const { name, sha256 } of files) if ((await digest(path.join(kept, name))) !== sha256) return undefined
  return files.map(({ name }) => path.join(kept, name))
}

async function digest(file: string): Promise<string | undefined> {
  const bytes = await fs.readFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  return bytes && createHash('sha256').update(bytes).digest('hex')
}

async function download(sets: readonly PackageSet[], options: PackageOptions): Promise<void> {
  const { signal, progress, folder } = options
  const { architecture } = options.guest
  await using state = await makeTemporary(folder, `apt-${architecture}`)
  const configuration = path.join(state.path, 'apt.conf')
  const sources = await machineSources()
  if (sources.list + sources.stanzas === '')
    throw new Error('/etc/apt names no package source; the built-in images are made from those of Debian')
  for (const name of ['state/lists/partial', 'cache/archives/partial', 'sources'])
    await fs.mkdir(path.join(state.path, name), { recursive: true })
  await fs.writeFile(configuration, aptConfiguration(state.path, architecture))
  await fs.writeFile(path.join(state.path, 'status'), '')
  await fs.writeFile(path.join(state.path, 'preferences'), preferences)
  await fs.writeFile(path.join(state.path, 'sources/machine.list'), sources.list)
  await fs.writeFile(path.join(state.path, 'sources/machine.sources'), sources.stanzas)

  progress(`asking Debian's package list for ${architecture}`)
  await run('apt-get', ['-c', configuration, '-qq', 'update'], { signal })
  const names = sets.flatMap(({ wanted }) => wanted)
  const flags = ['recommends', 'suggests', 'conflicts', 'breaks', 'replaces', 'enhances'].map((kind) => `--no-${kind}`)
  const { output } = await run('apt-cache', ['-c', configuration, 'depends', '--recurse', ...flags, ...names], {
    signal,
  })
  const graph = readDependencies(output.toString())
  const chosen = sets.map((set) => ({ set, packages: withLibraries(set.wanted, graph) }))
  const all = chosen.flatMap(({ packages }) => packages)
  progress(`downloading ${all.length} packages for ${architecture}`)
  const downloads = path.join(state.path, 'downloads')
  await fs.mkdir(downloads)
  await run('apt-get', ['-c', configuration, '-qq', 'download', ...all], { signal, folder: downloads })
  for (const { set, packages } of chosen) await keep(set, packages, downloads, folder)
}

/** Moves the packages of a set to its folder, completely or not at all. */
async function keep(set: PackageSet, packages: readonly string[], downloads: string, folder: string): Promise<void> {
  await using temporary = await makeTemporary(folder, set.name)
  const files: Manifest['files'][number][] = []
  for (const name of (await fs.readdir(downloads)).sort()) {
    if (!packages.includes(name.split('_')[0] ?? '')) continue
    files.push({ name, sha256: (await digest(path.join(downloads, name))) ?? '' })
    await fs.rename(path.join(downloads, name), path.join(temporary.path, name))
  }
  const manifest: Manifest = { wish: set.wanted.join(' '), files }
  await writeFileAtomically(path.join(temporary.path, manifestFile), `${JSON.stringify(manifest, undefined, 2)}\n`)
  await syncFolder(temporary.path)
  // Of two concurrent builds, the second one keeps what the first may already be reading.
  if (!(await readCache(folder, set))) await temporary.become(path.join(folder, set.name), { replace: true })
}

/** `apt-cache depends --recurse` prints names at the margin and their dependencies indented below. */
export function readDependencies(text: string): Map<string, string[]> {
  const graph = new Map<string, string[]>()
  let current: string[] = []
  for (const line of text.split('\n')) {
    const dependency = /^[ |]+(?:Pre)?Depends: ([^<\s]+)$/.exec(line)?.[1]
    if (dependency !== undefined) current.push(dependency)
    else if (/^[^\s<|]+$/.test(line)) {
      current = []
      graph.set(line, current)
    }
  }
  return graph
}

type Graph = ReadonlyMap<string, readonly string[]>

export function withLibraries(roots: readonly string[], graph: Graph): string[] {
  const found = new Set(roots.map((name) => (name.startsWith(kernelPrefix) ? kernelOfTheDay(name, graph) : name)))
  for (const name of found) for (const next of graph.get(name) ?? []) if (isLibrary(next)) found.add(next)
  return [...found]
}

/** Debian's linux-image-ARCHITECTURE is empty and depends on the current kernel. */
function kernelOfTheDay(name: string, graph: Graph): string {
  const kernel = graph.get(name)?.find((next) => next.startsWith(kernelPrefix))
  if (kernel !== undefined) return kernel
  throw new Error(`this machine's package sources have no ${name}; the built-in images are made from Debian's packages`)
}

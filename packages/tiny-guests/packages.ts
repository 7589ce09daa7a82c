// The Debian packages of an image: found and downloaded by apt with a private state, so that the machine's own stays as
// it is, checked by apt's signatures, and kept, so that a second build needs no network.
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { readFileIfPresent, syncFolder, writeFileAtomically } from '../../src/platform/files.ts'
import { makeTemporary } from '../../src/platform/temporary-folder.ts'
import { aptConfiguration, preferences } from './apt.ts'
import type { Architecture } from './architectures.ts'
import { bootPackage } from './firmware.ts'
import { run } from './programs.ts'
import { machineSources } from './sources.ts'

/** What the guest is made of. Their libraries come along; other dependencies (perl, python, debconf) do not. */
const wanted = [
  'busybox-static',
  'dropbear-bin',
  'openssh-sftp-server',
  'e2fsprogs',
  'fdisk',
  'util-linux',
  'cloud-guest-utils',
  'sudo',
] as const
const wantedFor = (architecture: Architecture): string[] => [...wanted, bootPackage(architecture)]
const isLibrary = (name: string): boolean => /^(lib|zlib)/.test(name)

/** The ordinary kernel, not the one for clouds: that has no e1000, no AHCI and no display. */
const kernelOf = (architecture: Architecture): string => `linux-image-${architecture}`

interface Manifest {
  /** What was asked for: a cache for another wish is no cache. */
  readonly wish: string
  readonly kernel: string
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
  readonly architecture: Architecture
  readonly signal: AbortSignal
  readonly progress: (message: string) => void
}

export async function fetchPackages(options: PackageOptions): Promise<Packages> {
  const kept = path.join(options.folder, `packages-${options.architecture}`)
  const wish = [kernelOf(options.architecture), ...wantedFor(options.architecture)].join(' ')
  const cached = await readCache(kept, wish)
  if (cached) return cached
  await using temporary = await makeTemporary(options.folder, `packages-${options.architecture}`)
  const manifest = await download(temporary.path, wish, options)
  await writeFileAtomically(path.join(temporary.path, manifestFile), `${JSON.stringify(manifest, undefined, 2)}\n`)
  // Of two builds at once, the second one to come here leaves what the first may already be reading.
  if (!(await readCache(kept, wish))) await temporary.become(kept, { replace: true })
  const packages = await readCache(kept, wish)
  if (!packages) throw new Error(`the packages in ${kept} are not those that were downloaded; remove it and try again`)
  return packages
}

/** Undefined unless everything is there and as it was when apt had checked it. */
async function readCache(folder: string, wish: string): Promise<Packages | undefined> {
  const text = await readFileIfPresent(path.join(folder, manifestFile))
  if (text === undefined) return undefined
  const manifest = JSON.parse(text) as Manifest
  if (manifest.wish !== wish) return undefined
  for (const { name, sha256 } of manifest.files)
    if ((await digest(path.join(folder, name))) !== sha256) return undefined
  const isKernel = (name: string): boolean => name.startsWith(`${manifest.kernel}_`)
  const names = manifest.files.map(({ name }) => name)
  const kernel = names.find(isKernel)
  if (kernel === undefined) return undefined
  return {
    kernel: path.join(folder, kernel),
    userland: names.filter((name) => !isKernel(name)).map((name) => path.join(folder, name)),
  }
}

async function digest(file: string): Promise<string | undefined> {
  const bytes = await fs.readFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  return bytes && createHash('sha256').update(bytes).digest('hex')
}

async function download(folder: string, wish: string, options: PackageOptions): Promise<Manifest> {
  const { architecture, signal, progress } = options
  await using state = await makeTemporary(options.folder, `apt-${architecture}`)
  const configuration = path.join(state.path, 'apt.conf')
  const sources = await machineSources()
  if (sources.list + sources.stanzas === '')
    throw new Error('/etc/apt names no package source; the tiny images are made from those of Debian')
  for (const name of ['state/lists/partial', 'cache/archives/partial', 'sources'])
    await fs.mkdir(path.join(state.path, name), { recursive: true })
  await fs.writeFile(configuration, aptConfiguration(state.path, architecture))
  await fs.writeFile(path.join(state.path, 'status'), '')
  await fs.writeFile(path.join(state.path, 'preferences'), preferences)
  await fs.writeFile(path.join(state.path, 'sources/machine.list'), sources.list)
  await fs.writeFile(path.join(state.path, 'sources/machine.sources'), sources.stanzas)

  progress(`asking Debian's package list for ${architecture}`)
  await run('apt-get', ['-c', configuration, '-qq', 'update'], { signal })
  const names = [kernelOf(architecture), ...wantedFor(architecture)]
  const flags = ['recommends', 'suggests', 'conflicts', 'breaks', 'replaces', 'enhances'].map((kind) => `--no-${kind}`)
  const { output } = await run('apt-cache', ['-c', configuration, 'depends', '--recurse', ...flags, ...names], {
    signal,
  })
  const graph = readDependencies(output.toString())
  const kernel = (graph.get(kernelOf(architecture)) ?? []).find((name) => name.startsWith('linux-image-'))
  if (kernel === undefined)
    throw new Error(
      `this machine's package sources have no ${kernelOf(architecture)}; the tiny images are made from Debian's packages`,
    )
  const packages = [kernel, ...withLibraries(wantedFor(architecture), graph)]
  progress(`downloading ${packages.length} packages for ${architecture}`)
  await run('apt-get', ['-c', configuration, '-qq', 'download', ...packages], { signal, folder })
  const files: Manifest['files'][number][] = []
  for (const name of (await fs.readdir(folder)).sort())
    files.push({ name, sha256: (await digest(path.join(folder, name))) ?? '' })
  await syncFolder(folder)
  return { wish, kernel, files }
}

/** `apt-cache depends --recurse`: names at the margin, what they depend on indented under them. */
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

export function withLibraries(roots: readonly string[], graph: ReadonlyMap<string, readonly string[]>): string[] {
  const found = new Set<string>(roots)
  for (const name of found) for (const next of graph.get(name) ?? []) if (isLibrary(next)) found.add(next)
  return [...found]
}

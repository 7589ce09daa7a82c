// The kernel image in the form that boots fastest, and its modules with the tables of modprobe, which Debian generates at
// installation.
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import type { Architecture } from './architectures.ts'
import { unpack } from './deb.ts'
import { run } from './programs.ts'
import { Tree } from './tree.ts'

export interface Kernel {
  readonly release: string
  /** As Debian ships it, for a boot loader on the disk. */
  readonly shipped: Buffer
  /** For QEMU's -kernel. */
  readonly image: Buffer
  readonly modules: ReadonlyMap<string, Module>
}

interface Module {
  /** Below /lib/modules/RELEASE. */
  readonly path: string
  readonly data: Buffer
  readonly needs: readonly string[]
  readonly aliases: readonly string[]
}

export async function readKernel(
  deb: string,
  architecture: Architecture,
  names: readonly string[],
  signal: AbortSignal,
): Promise<Kernel> {
  const tree = new Tree()
  const isModule = /^usr\/lib\/modules\/([^/]+)\/(.*\/([^/]+)\.ko(?:\.xz)?)$/
  // Dependencies are known only after reading, so all modules that may be needed are read.
  await unpack(
    deb,
    tree,
    (path) => path.startsWith('boot/vmlinuz-') || (isModule.test(path) && isForGuests(path)),
    signal,
  )
  const all = new Map<string, { path: string; data: Uint8Array }>()
  let shipped: Buffer | undefined
  let release = ''
  for (const [path, entry] of tree.sorted()) {
    if (entry.kind !== 'file') continue
    if (path.startsWith('boot/')) shipped = Buffer.from(entry.data)
    const [, version = '', file = '', name = ''] = isModule.exec(path) ?? []
    if (name === '') continue
    release = version
    all.set(canonical(name), { path: file, data: entry.data })
  }
  if (!shipped) throw new Error(`${deb} has no kernel in it; remove it and build the image again`)
  const modules = new Map<string, Module>()
  const waiting = names.map(canonical)
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const found = all.get(name)
    // Built in, or not available for this architecture.
    if (!found || modules.has(name)) continue
    const module = await readModule(found.path, found.data, signal)
    modules.set(name, module)
    waiting.push(...module.needs)
  }
  return { release, shipped, image: await imageOf(shipped, architecture, signal), modules }
}

/** Sound, wireless, cameras and so on are most of a kernel's modules, and VMs have none. */
const isForGuests = (path: string): boolean =>
  !/\/(sound|wireless|media|iio|infiniband|staging|bluetooth|amd\/amdgpu|nouveau|radeon|i915)\//.test(path)

const canonical = (name: string): string => name.replaceAll('-', '_')

async function readModule(path: string, packed: Uint8Array, signal: AbortSignal): Promise<Module> {
  const isPacked = path.endsWith('.xz')
  const data = unsigned(isPacked ? (await run('xz', ['-dc'], { signal, input: packed })).output : Buffer.from(packed))
  const needs = informationOf(data, 'depends').flatMap((list) => list.split(','))
  return {
    path: isPacked ? path.slice(0, -3) : path,
    data,
    needs: needs.filter((name) => name !== '').map(canonical),
    aliases: informationOf(data, 'alias'),
  }
}

const signatureEnd = '~Module signature appended~\n'
const signatureInfoBytes = 12

/**
 * Removes Debian's signature. The kernel would hash the module and discard the result, because its certificates are not
 * loaded (see initcall_blacklist). This saves an emulated processor a third of a second.
 */
export function unsigned(module: Buffer): Buffer {
  const info = module.length - signatureEnd.length - signatureInfoBytes
  if (info < 0 || module.toString('latin1', info + signatureInfoBytes) !== signatureEnd) return module
  return module.subarray(0, info - module.readUInt32BE(info + 8))
}

/** The values of a key in a module's .modinfo section, which has key=value between zero bytes. */
export function informationOf(data: Buffer, key: string): string[] {
  const values: string[] = []
  const start = Buffer.from(`\0${key}=`)
  for (let at = data.indexOf(start); at >= 0; at = data.indexOf(start, at + 1))
    values.push(data.toString('latin1', at + start.length, data.indexOf(0, at + 1)))
  return values
}

/** Adds modules and modprobe's tables (modules.dep, modules.alias) to a tree. */
export function addModules(tree: Tree, kernel: Kernel, names: Iterable<string>): void {
  const chosen = new Set([...names].map(canonical))
  for (const name of chosen) for (const next of kernel.modules.get(name)?.needs ?? []) chosen.add(next)
  const folder = `usr/lib/modules/${kernel.release}`
  const dependencies: string[] = []
  const aliases: string[] = []
  for (const name of [...chosen].sort()) {
    const module = kernel.modules.get(name)
    if (!module) continue
    tree.file(`${folder}/${module.path}`, module.data)
    dependencies.push(`${module.path}: ${allNeeds(name, kernel).join(' ')}`.trim())
    aliases.push(...module.aliases.map((alias) => `alias ${alias} ${name}`))
  }
  tree.file(`${folder}/modules.dep`, `${dependencies.join('\n')}\n`)
  tree.file(`${folder}/modules.alias`, `${aliases.join('\n')}\n`)
}

/** Paths, nearest first: modprobe loads them from the end. */
function allNeeds(name: string, kernel: Kernel): string[] {
  const order: string[] = []
  const visit = (current: string): void => {
    for (const next of kernel.modules.get(current)?.needs ?? []) {
      const module = kernel.modules.get(next)
      if (!module) continue
      visit(next)
      if (!order.includes(module.path)) order.push(module.path)
    }
  }
  visit(name)
  return order.reverse()
}

interface Packing {
  readonly magic: Buffer
  readonly open: (packed: Buffer, signal: AbortSignal) => Promise<Buffer>
}
// Except for gzip, the compressed kernel is followed by its size in four bytes.
const packings: readonly Packing[] = [
  {
    magic: Buffer.from('fd377a585a00', 'hex'),
    open: async (input, signal) => (await run('xz', ['-dc', '--single-stream'], { signal, input })).output,
  },
  { magic: Buffer.from('28b52ffd', 'hex'), open: async (packed) => zstdDecompressSync(packed.subarray(0, -4)) },
  { magic: Buffer.from('1f8b0800', 'hex'), open: async (packed) => gunzipSync(packed) },
]

/**
 * On amd64 the ELF file inside the compressed image: QEMU starts it without firmware (PVH), and an emulated processor need
 * not decompress it, which takes seconds. Other formats are used unchanged.
 */
async function imageOf(shipped: Buffer, architecture: Architecture, signal: AbortSignal): Promise<Buffer> {
  if (architecture !== 'amd64') return shipped
  const packed = payloadOf(shipped)
  const packing = packed && packings.find(({ magic }) => packed.subarray(0, magic.length).equals(magic))
  return packed && packing ? packing.open(packed, signal) : shipped
}

/** The position of the compressed kernel in a bzImage: Linux's x86 boot protocol, 2.08 and later. */
function payloadOf(image: Buffer): Buffer | undefined {
  if (image.toString('latin1', 0x202, 0x206) !== 'HdrS' || image.readUInt16LE(0x206) < 0x208) return undefined
  const start = ((image[0x1f1] || 4) + 1) * 512 + image.readUInt32LE(0x248)
  return image.subarray(start, start + image.readUInt32LE(0x24c))
}

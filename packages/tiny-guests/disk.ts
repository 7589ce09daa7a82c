// The image's disk: a partition table, the EFI partition, and an ext4 file system, made from trees without mounting anything.
import fs from 'node:fs/promises'
import path from 'node:path'
import { rootLabel } from './architectures.ts'
import { writeFat } from './fat.ts'
import { run } from './programs.ts'
import { type Entry, type Tree, typeBits } from './tree.ts'

const mebibyte = 1024 * 1024
export const diskBytes = 1024 * mebibyte
const efiStartBytes = mebibyte
const rootStartBytes = 16 * mebibyte
const efiBytes = rootStartBytes - efiStartBytes
const rootBytes = diskBytes - rootStartBytes - mebibyte
const blockBytes = 4096

// Fixed, so that the same packages give the same disk and digest on every machine.
const time = '1700000000'
const ids = {
  disk: '5C3D1F2A-7E11-4B0C-9B1E-000000000000',
  bios: '5C3D1F2A-7E11-4B0C-9B1E-00000000000E',
  efi: '5C3D1F2A-7E11-4B0C-9B1E-00000000000F',
  root: '5C3D1F2A-7E11-4B0C-9B1E-000000000001',
  fileSystem: '5c3d1f2a-7e11-4b0c-9b1e-000000000002',
  hashes: '5c3d1f2a-7e11-4b0c-9b1e-000000000003',
} as const

const types = {
  biosBoot: '21686148-6449-6E6F-744E-656564454649',
  efiSystem: 'C12A7328-F81F-11D2-BA4B-00A0C93EC93B',
  linux: '0FC63DAF-8483-4772-8E79-3D69D8477DE4',
} as const
const sectors = (bytes: number): number => bytes / 512

/** The root partition is the last one, so that it can grow. For sfdisk. */
const partitions = `label: gpt
label-id: ${ids.disk}
first-lba: 34
14: start=34, size=${sectors(efiStartBytes) - 34}, type=${types.biosBoot}, uuid=${ids.bios}, name="bios"
15: start=${sectors(efiStartBytes)}, size=${sectors(efiBytes)}, type=${types.efiSystem}, uuid=${ids.efi}, name="efi"
1: start=${sectors(rootStartBytes)}, size=${sectors(rootBytes)}, type=${types.linux}, uuid=${ids.root}, name="root"
`

/** Listed because defaults differ between versions, and boot loaders must read it. */
const features = [
  'none', 'has_journal', 'ext_attr', 'resize_inode', 'dir_index', 'filetype', 'extent', '64bit', 'flex_bg',
  'sparse_super', 'large_file', 'huge_file', 'dir_nlink', 'extra_isize', 'metadata_csum',
].join(',') // biome-ignore format: a list to read

/** The size to which the file system can grow while it is in use. */
const largestBytes = 1024 * 1024 * mebibyte

interface Contents {
  readonly root: Tree
  readonly efi: Tree
}

/** Creates `file`. Temporary files are beside it. */
export async function makeDisk(file: string, { root, efi }: Contents, signal: AbortSignal): Promise<void> {
  const source = `${file}.root`
  await writeTree(source, root, signal)
  const handle = await fs.open(file, 'wx', 0o644)
  try {
    await handle.truncate(diskBytes)
  } finally {
    await handle.close()
  }
  const extended = `offset=${rootStartBytes},resize=${largestBytes / blockBytes},lazy_itable_init=0,lazy_journal_init=0,hash_seed=${ids.hashes},root_owner=0:0`
  const environment = { MKE2FS_CONFIG: '/dev/null', E2FSPROGS_FAKE_TIME: time, SOURCE_DATE_EPOCH: time }
  const args = [
    '-q',
    '-F',
    '-b',
    `${blockBytes}`,
    '-I',
    '256',
    '-i',
    '16384',
    '-m',
    '0',
    '-J',
    'size=8',
    '-O',
    features,
  ]
  const made = ['-L', rootLabel, '-U', ids.fileSystem, '-E', extended, '-d', source, file, `${rootBytes / 1024}k`]
  await run('mke2fs', [...args, ...made], { signal, environment })
  await setOwners(file, root, signal)
  await run('sfdisk', ['--quiet', '--no-reread', '--no-tell-kernel', file], { signal, input: partitions })
  await writeFat(file, efi, { offsetBytes: efiStartBytes, sizeBytes: efiBytes, label: 'TINY-EFI', time, signal })
  await fs.rm(source, { recursive: true })
}

/** Owners and special modes are set later: here they would need root and put setuid programs on the host. */
async function writeTree(folder: string, tree: Tree, signal: AbortSignal): Promise<void> {
  await fs.mkdir(folder, { mode: 0o755 })
  for (const [name, entry] of tree.sorted()) {
    signal.throwIfAborted()
    const target = path.join(folder, name)
    if (entry.kind === 'folder') await fs.mkdir(target, { mode: 0o755 })
    else if (entry.kind === 'link') await fs.symlink(entry.target, target)
    else if (entry.kind === 'file') await fs.writeFile(target, entry.data, { mode: 0o644 })
    else throw new Error(`/${name}: devices are the guest's business`)
  }
}

/** Changes the finished file system, which needs no root. */
async function setOwners(file: string, tree: Tree, signal: AbortSignal): Promise<void> {
  const set = (name: string, entry: Entry): string[] =>
    Object.entries({
      uid: `${entry.uid ?? 0}`,
      gid: `${entry.gid ?? 0}`,
      mode: `0${(typeBits[entry.kind] | entry.mode).toString(8)}`,
      ...fixedTimes,
    }).map(([field, value]) => `set_inode_field "/${name}" ${field} ${value}`)
  const commands = [`set_current_time @${time}`, ...tree.sorted().flatMap(([name, entry]) => set(name, entry))]
  const { problems } = await run('debugfs', ['-w', '-f', '-', `${file}?offset=${rootStartBytes}`], {
    signal,
    input: `${commands.join('\n')}\n`,
  })
  // debugfs reports failures in its output only; without failures it prints its version.
  const failure = problems.split('\n').find((line) => line !== '' && !line.startsWith('debugfs '))
  if (failure !== undefined) throw new Error(`debugfs could not set the owners of the image's files: ${failure}`)
}

const fixedTimes = Object.fromEntries(['atime', 'ctime', 'mtime', 'crtime'].map((field) => [field, `@${time}`]))

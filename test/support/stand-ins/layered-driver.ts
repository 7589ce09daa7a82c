// A driver whose disks are real and whose guests are not: overlays by qemu-img, written to by qemu-io on a test's word,
// frozen like those of a real VM. All of it is in files, so it outlives an agent that is killed.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import type { Recipe } from '../../../src/agent/images/recipes.ts'
import type { Capture, Driver, Handle, VmSpec } from '../../../src/drivers/driver.ts'
import { readFileIfPresent, writeFileAtomically } from '../../../src/platform/files.ts'

const execute = promisify(execFile)

interface Disk {
  readonly base: string
  readonly image: string
  readonly bytes: number
  readonly isRunning: boolean
  /** The last one is written to; the others are frozen. */
  readonly layers: readonly string[]
  readonly captures: readonly Capture[]
}

const stateOf = (folder: string): string => path.join(folder, 'disk.json')
const read = async (folder: string): Promise<Disk | undefined> => {
  const text = await readFileIfPresent(stateOf(folder))
  return text === undefined ? undefined : (JSON.parse(text) as Disk)
}
const required = async (folder: string): Promise<Disk> => {
  const disk = await read(folder)
  if (!disk) throw new Error(`there is no disk in ${folder}`)
  return disk
}
const write = (folder: string, disk: Disk): Promise<void> => writeFileAtomically(stateOf(folder), JSON.stringify(disk))
const layerFile = (folder: string, id: string): string => path.join(folder, `${id}.qcow2`)

async function addLayer(folder: string, backing: string, format: 'raw' | 'qcow2', bytes: number): Promise<string> {
  const id = `l${process.pid}-${performance.now().toString(36).replace('.', '')}`
  const options = ['create', '-q', '-f', 'qcow2', '-F', format, '-b', backing, layerFile(folder, id), String(bytes)]
  await execute('qemu-img', options)
  return id
}

/** What a guest does: writes these bytes, zeros a range, or gives it back. */
export interface GuestWrite {
  readonly offset: number
  readonly bytes: Buffer | { readonly zeros: number }
}

export async function writeAsGuest(folder: string, writes: readonly GuestWrite[]): Promise<void> {
  const { layers } = await required(folder)
  const commands: string[] = []
  for (const [index, { offset, bytes }] of writes.entries()) {
    const file = path.join(folder, `guest-${index}`)
    if (Buffer.isBuffer(bytes)) {
      await fs.writeFile(file, bytes)
      commands.push('-c', `write -q -s ${file} ${offset} ${bytes.length}`)
    } else commands.push('-c', `write -q -z ${offset} ${bytes.zeros}`)
  }
  await execute('qemu-io', ['-f', 'qcow2', ...commands, layerFile(folder, layers.at(-1) ?? '')])
  for (const index of writes.keys()) await fs.rm(path.join(folder, `guest-${index}`), { force: true })
}

export function layeredDriver(): Driver {
  const setRunning = async ({ folder }: Handle, isRunning: boolean): Promise<void> => {
    const disk = await read(folder)
    if (disk) await write(folder, { ...disk, isRunning })
  }
  return {
    name: 'layered',
    probe: async () => ({ ok: true, version: 'layered', architectures: ['amd64', 'arm64'], gpus: 0 }),
    async create({ uid, image }: VmSpec, folder) {
      if (!(await read(folder))) {
        await fs.mkdir(folder, { recursive: true })
        const bytes = image.virtualSizeBytes
        const layers = [await addLayer(folder, image.disk, 'raw', bytes)]
        await write(folder, { base: image.digest, image: image.disk, bytes, isRunning: false, layers, captures: [] })
      }
      return { version: 1, driver: 'layered', uid, folder }
    },
    start: (handle) => setRunning(handle, true).then(() => ({})),
    stop: (handle) => setRunning(handle, false),
    destroy: ({ folder }) => fs.rm(folder, { recursive: true, force: true }),
    async inspect({ folder }) {
      const disk = await read(folder)
      return { state: disk ? (disk.isRunning ? 'running' : 'stopped') : 'absent' }
    },
    follow: () => () => undefined,
    close: async () => undefined,
    capturing: {
      async capture({ folder }, _vm, { id, withMemory }) {
        const disk = await required(folder)
        const known = disk.captures.find((each) => each.id === id)
        if (known) return known
        const memory = path.join(folder, `${id}.memory`)
        if (withMemory) await fs.writeFile(memory, `memory of ${id} `.repeat(20_000))
        const next = await addLayer(folder, layerFile(folder, disk.layers.at(-1) ?? ''), 'qcow2', disk.bytes)
        const capture: Capture = {
          id,
          base: disk.base,
          layers: disk.layers.map((layer) => ({ id: layer, file: layerFile(folder, layer) })),
          virtualSizeBytes: disk.bytes,
          ...(withMemory && { memory: { file: memory, description: { hypervisor: 'layered', cpu: 1 } } }),
        }
        await write(folder, { ...disk, layers: [...disk.layers, next], captures: [...disk.captures, capture] })
        return capture
      },
      async release({ folder }, id) {
        const disk = await read(folder)
        if (!disk) return
        await write(folder, { ...disk, captures: disk.captures.filter((each) => each.id !== id) })
        await fs.rm(path.join(folder, `${id}.memory`), { force: true })
      },
      list: async ({ folder }) => (await read(folder))?.captures ?? [],
    },
  }
}

/** A raw disk that is there already, in a file. */
export const diskRecipe = (file: string, bytes: number): Recipe => ({
  async find() {
    if (!existsSync(file)) return undefined
    const boot = { kind: 'firmware', firmware: 'uefi' } as const
    return {
      name: 'disk',
      digest: `disk:${path.basename(file)}`,
      disk: file,
      format: 'raw',
      virtualSizeBytes: bytes,
      boot,
    }
  },
  make: async () => {
    throw new Error('it is there')
  },
})

// A driver with real disks and no guests: overlays by qemu-img, written by qemu-io on a test's command, captured like
// those of a real VM. Its state is in files, so it outlives a killed agent.
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
  readonly isSuspended?: boolean
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

/** A guest's write: data, zeros for a range, or a discard. */
export interface GuestWrite {
  readonly offset: number
  readonly bytes: Buffer | { readonly zeros: number }
}

/** The active layer, on top of all others. */
export const topLayer = async (folder: string): Promise<string> =>
  layerFile(folder, (await required(folder)).layers.at(-1) ?? '')

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
  const busy = new Map<string, Promise<unknown>>()
  /** One at a time per VM, so that no other work writes in between. */
  const alone = <T>(folder: string, work: () => Promise<T>): Promise<T> => {
    const result = (busy.get(folder) ?? Promise.resolve()).then(work)
    busy.set(
      folder,
      result.catch(() => undefined),
    )
    return result
  }
  const set = ({ folder }: Handle, power: Pick<Disk, 'isRunning' | 'isSuspended'>): Promise<void> =>
    alone(folder, async () => {
      const disk = await read(folder)
      if (disk) await write(folder, { ...disk, isSuspended: false, ...power })
    })
  const fresh = async ({ image, diskBytes = 0 }: VmSpec, folder: string) => {
    const bytes = Math.max(image.virtualSizeBytes, diskBytes)
    const layers = [await addLayer(folder, image.disk, 'raw', bytes)]
    return { base: image.digest, image: image.disk, bytes, isRunning: false, layers }
  }
  return {
    name: 'layered',
    probe: async () => ({ ok: true, version: 'layered', architectures: ['amd64', 'arm64'] }),
    create: (vm, folder) =>
      alone(folder, async () => {
        if (!(await read(folder))) {
          await fs.mkdir(folder, { recursive: true })
          await write(folder, { ...(await fresh(vm, folder)), captures: [] })
        }
        return { version: 1, driver: 'layered', uid: vm.uid, folder }
      }),
    start: (handle) => set(handle, { isRunning: true }).then(() => ({})),
    stop: (handle) => set(handle, { isRunning: false }),
    destroy: ({ folder }) => alone(folder, () => fs.rm(folder, { recursive: true, force: true })),
    async inspect({ folder }) {
      const disk = await read(folder)
      if (!disk) return { state: 'absent' }
      return { state: disk.isSuspended ? 'suspended' : disk.isRunning ? 'running' : 'stopped' }
    },
    follow: () => () => undefined,
    close: async () => undefined,
    suspension: {
      suspend: (handle) => set(handle, { isRunning: true, isSuspended: true }),
      resume: (handle) => set(handle, { isRunning: true }),
    },
    resizing: {
      grow: ({ folder }, bytes) =>
        alone(folder, async (): Promise<undefined> => {
          const disk = await required(folder)
          await execute('qemu-img', ['resize', '-q', '-f', 'qcow2', await topLayer(folder), String(bytes)])
          await write(folder, { ...disk, bytes })
        }),
      diskBytes: async ({ folder }) => (await required(folder)).bytes,
    },
    reverting: {
      revert: ({ folder }, vm) =>
        alone(folder, async () => {
          const { captures } = await required(folder)
          await write(folder, { ...(await fresh(vm, folder)), captures })
        }),
      base: async ({ folder }) => (await required(folder)).base,
    },
    capturing: {
      capture: ({ folder }, _vm, { id, withMemory }) =>
        alone(folder, async () => {
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
        }),
      release: ({ folder }, id) =>
        alone(folder, async () => {
          const disk = await read(folder)
          if (!disk) return
          await write(folder, { ...disk, captures: disk.captures.filter((each) => each.id !== id) })
          await fs.rm(path.join(folder, `${id}.memory`), { force: true })
        }),
      list: async ({ folder }) => (await read(folder))?.captures ?? [],
    },
  }
}

/** An existing raw disk. */
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

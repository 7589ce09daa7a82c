// The service that a model is compared with: its API, its disks, and the processes that may be killed.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { restoreDisk } from '../../../src/images/pack/restore.ts'
import { readManifest } from '../../../src/images/pack/stored-manifests.ts'
import { contentIn } from '../rigs/content-folder.ts'
import type { Mortal } from './kills.ts'
import type { Disk, Power, Write } from './model.ts'

const execute = promisify(execFile)

export interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  readonly body: any
}

export interface World extends AsyncDisposable {
  readonly architecture: 'amd64' | 'arm64'
  /** A folder for the test. */
  readonly root: string
  /** The folder with the content of images. */
  readonly content: string
  /** The folder with a folder for each VM, by uid. */
  readonly vms: string
  /** Where VMs may be pushed to. */
  readonly registry?: string
  /** Undefined without a response. */
  call(method: string, where: string, body?: object, headers?: Record<string, string>): Promise<Answer | undefined>
  /** Processes that may be killed; `revive` starts them again. */
  readonly mortals: Readonly<Record<string, () => Mortal>>
  revive(name: string): Promise<void>
  /** The disk of a VM, as qemu-img takes it. */
  disk(uid: string): Promise<string>
  /** The state of a VM in which its disk can be written. */
  readonly writable: Power
  /** Before any kill. */
  upload(image: string, disk: Buffer): Promise<void>
  /** The guest reacts to its power button, if it has one. */
  isUp?(uid: string): Promise<void>
  /** The process of a VM, if it has one. */
  processOf?(uid: string): number | undefined
  /** The pids of VMs' processes; absent if VMs have none. */
  processes?(): readonly number[]
  /** What no VM, image or capture needs. */
  leftovers(): Promise<readonly string[]>
  /** The logs of killable processes, latest last, and their files. */
  evidence(): Promise<string>
  /** The store has the content of these images, and nothing else. */
  hasOnly(digests: readonly string[]): Promise<void>
}

/** Bytes, followed by zeros. */
export async function assertSame(root: string, disk: Disk, found: string, what: string): Promise<void> {
  const expected = path.join(root, `expected-${process.hrtime.bigint()}`)
  await fs.writeFile(expected, disk.bytes)
  try {
    await execute('qemu-img', ['compare', '-U', '-q', '-f', 'raw', ...formatOf(found), expected, found])
  } catch (error) {
    assert.fail(`${what} is not what it must be: ${String((error as { stdout?: string }).stdout)}${String(error)}`)
  } finally {
    await fs.rm(expected)
  }
}

/** A file is raw. */
const formatOf = (found: string): string[] => (found.startsWith('json:') ? [] : ['-F', 'raw'])

export async function writeTo(disk: string, writes: readonly Write[]): Promise<void> {
  const commands = writes.flatMap(({ offset, length, byte }) => ['-c', `write -q -P ${byte} ${offset} ${length}`])
  await execute('qemu-io', [...commands, disk])
}

/** The image with that digest has this disk, with every byte checked. */
export async function assertImage(world: World, digest: string, disk: Disk, what: string): Promise<void> {
  const source = contentIn(world.content)
  const file = path.join(world.root, `restored-${process.hrtime.bigint()}`)
  try {
    await restoreDisk(await readManifest(source, digest), source, file)
    await assertSame(world.root, disk, file, what)
  } finally {
    await fs.rm(file, { force: true })
  }
}

/** The end of a log file; empty if there is none. */
export async function endOf(file: string, bytes = 400_000): Promise<string> {
  const text = await fs.readFile(file, 'utf8').catch(() => '')
  return text.slice(-bytes)
}

/** The agent's records about its VMs and captures. */
export async function notesIn(node: string): Promise<string> {
  const names = await fs.readdir(node, { recursive: true }).catch(() => [])
  const notes = names.filter((name) => /^(vms\/[^/]+|captures)\/[^/]+\.json$/.test(name)).toSorted()
  const texts = notes.map(async (name) => `${name}: ${await endOf(path.join(node, name))}`)
  return (await Promise.all(texts)).join('\n')
}

// The service that a model of VMs is held against: what it is asked, how its disks are looked at, who of it may die.
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
  /** A folder for the test itself. */
  readonly root: string
  /** Where the content of images is. */
  readonly content: string
  /** The folder with one folder for each VM, by its uid. */
  readonly vms: string
  /** Where VMs may be pushed to. */
  readonly registry?: string
  /** Undefined when there was no answer. */
  call(method: string, where: string, body?: object, headers?: Record<string, string>): Promise<Answer | undefined>
  /** Who may be killed. Whoever is killed is started again by `revive`. */
  readonly mortals: Readonly<Record<string, () => Mortal>>
  revive(name: string): Promise<void>
  /** The disk of a VM, as qemu-img is told of it. */
  disk(uid: string): Promise<string>
  /** In which state of a VM its disk can be written to. */
  readonly writable: Power
  /** Before anybody is killed. */
  upload(image: string, disk: Buffer): Promise<void>
  /** It hears its power button, where it has one. */
  isUp?(uid: string): Promise<void>
  /** The process of a VM, where it has one. */
  processOf?(uid: string): number | undefined
  /** The processes of VMs, by their pids; nothing where VMs have none. */
  processes?(): readonly number[]
  /** What there is that no VM, image or capture needs. */
  leftovers(): Promise<readonly string[]>
  /** What those who may be killed have logged, the latest last, and what they have written down. */
  evidence(): Promise<string>
  /** The store has what these images need, and nothing else. */
  hasOnly(digests: readonly string[]): Promise<void>
}

/** Bytes, and zeros behind them. */
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

/** Where it is a file, it is raw. */
const formatOf = (found: string): string[] => (found.startsWith('json:') ? [] : ['-F', 'raw'])

export async function writeTo(disk: string, writes: readonly Write[]): Promise<void> {
  const commands = writes.flatMap(({ offset, length, byte }) => ['-c', `write -q -P ${byte} ${offset} ${length}`])
  await execute('qemu-io', [...commands, disk])
}

/** The image of that digest in the store has this disk, every byte of it checked. */
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

/** The end of a file of a log; empty where there is none. */
export async function endOf(file: string, bytes = 400_000): Promise<string> {
  const text = await fs.readFile(file, 'utf8').catch(() => '')
  return text.slice(-bytes)
}

/** The notes of an agent about its VMs and captures. */
export async function notesIn(node: string): Promise<string> {
  const names = await fs.readdir(node, { recursive: true }).catch(() => [])
  const notes = names.filter((name) => /^(vms\/[^/]+|captures)\/[^/]+\.json$/.test(name)).toSorted()
  const texts = notes.map(async (name) => `${name}: ${await endOf(path.join(node, name))}`)
  return (await Promise.all(texts)).join('\n')
}

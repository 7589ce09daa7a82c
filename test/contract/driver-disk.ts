// The disk of a VM without a guest: written to through QEMU itself, as its disk device does, and read back from its files.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { BaseImage, Capture, Handle } from '../../src/drivers/driver.ts'
import { connectQmp } from '../../src/drivers/qemu/control/qmp.ts'
import { runtimeFolder } from '../../src/drivers/qemu/control/run.ts'
import { qmpSocket } from '../../src/drivers/qemu/control/sockets.ts'
import { diskNode } from '../../src/drivers/qemu/disks/disks.ts'
import { exec } from '../../src/platform/exec.ts'

const mib = 2 ** 20

/** A MiB of one letter at so many MiB, flushed. No driver may hold the VM's control socket. */
export const writeDisk = (handle: Handle, letter: string, atMib: number): Promise<void> =>
  atDisk(handle, [`write -P ${letter.charCodeAt(0)} ${atMib}M 1M`, 'flush'])

/** Throws where QEMU does not find that letter in all of that MiB. The same holds. */
export const requireOnDisk = (handle: Handle, letter: string, atMib: number): Promise<void> =>
  atDisk(handle, [`read -P ${letter.charCodeAt(0)} ${atMib}M 1M`])

async function atDisk({ folder }: Handle, commands: readonly string[]): Promise<void> {
  const qmp = await connectQmp(qmpSocket(runtimeFolder(folder)), 60_000)
  try {
    const [device] = (await qmp.execute('query-block')) as { qdev: string }[]
    for (const command of commands) {
      const line = `qemu-io -d ${device?.qdev} "${command}"`
      const said = String(await qmp.execute('human-monitor-command', { 'command-line': line }, 60_000))
      // What went well is told to its log.
      if (said !== '') throw new Error(`QEMU did not ${command}: ${said}`)
    }
  } finally {
    qmp.close()
    await qmp.closed
  }
}

/** One letter for each of the first MiB up to the first of zeros. */
export async function lettersOf(node: unknown, folder: string): Promise<string> {
  const file = path.join(folder, `read-${crypto.randomUUID()}.raw`)
  await exec('qemu-img', ['convert', '-U', '-O', 'raw', `json:${JSON.stringify(node)}`, file])
  const handle = await fs.open(file, 'r')
  let letters = ''
  for (let at = 0; ; at++) {
    const { buffer } = await handle.read(Buffer.alloc(mib), 0, mib, at * mib)
    const [first = 0] = buffer
    if (!buffer.equals(Buffer.alloc(mib, first))) throw new Error(`MiB ${at} is torn`)
    if (first === 0) break
    letters += String.fromCharCode(first)
  }
  await handle.close()
  await fs.rm(file)
  return letters
}

export const lettersOnDisk = async ({ folder }: Handle): Promise<string> => lettersOf(await diskNode(folder), folder)

/** Of what was captured. */
export function captureNode({ layers }: Capture, image: BaseImage): unknown {
  const base: unknown = { driver: image.format, file: { driver: 'file', filename: image.disk } }
  return layers.reduce(
    (backing, { file }) => ({ driver: 'qcow2', file: { driver: 'file', filename: file }, backing }),
    base,
  )
}

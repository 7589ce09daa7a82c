// A VM that resumes from the memory of its image against the cold boot of the same image: from the first call of the
// driver until its SSH server speaks.
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { Architecture } from '../src/api/architecture.ts'
import type { Capture, VmSpec } from '../src/drivers/driver.ts'
import { QemuDriver } from '../src/drivers/qemu/driver.ts'
import { exec } from '../src/platform/exec.ts'
import { captureNode } from '../test/contract/driver-disk.ts'
import { openGuest } from '../test/support/guests/guest.ts'
import { inTurns, sized, sshAnswers } from './measure.ts'
import { type BenchRow, compared } from './row.ts'
import { architectures, specOf, tinyIn } from './tiny.ts'

const driver = new QemuDriver()
const signal = () => AbortSignal.timeout(120_000)

const specify = (image: VmSpec['image'], architecture: Architecture, isCold: boolean) =>
  specOf(image, { architecture, cpu: 1, memoryMiB: 256, isCold })

/** `told`: gets how long its guest took to confirm who it is. */
async function toSsh(
  folder: string,
  { sshPort, ...vm }: Awaited<ReturnType<typeof specOf>>,
  told: number[],
): Promise<number> {
  const startMs = performance.now()
  const handle = await driver.create(vm, folder)
  try {
    const { note, toldMs } = await driver.start(handle, vm, signal())
    if (note !== undefined) throw new Error(note)
    if (toldMs !== undefined) told.push(toldMs)
    await sshAnswers(sshPort)
    return performance.now() - startMs
  } finally {
    await driver.destroy(handle)
  }
}

/** A guest that has settled, captured with its memory. */
async function save(folder: string, { sshPort, ...vm }: Awaited<ReturnType<typeof specOf>>): Promise<Capture> {
  const handle = await driver.create(vm, folder)
  await driver.start(handle, vm, signal())
  const guest = await openGuest({ ip: vm.ip, ssh: sshPort }, { user: 'root' })
  await guest.run('until grep -q "rc.late: done" /run/rc.late.log; do sleep 1; done; sync', 60_000)
  guest[Symbol.dispose]()
  const capture = await driver.capturing.capture(handle, vm, { id: 'bench', withMemory: true }, signal())
  await driver.stop(handle, { graceSeconds: 0 })
  return capture
}

async function resumed(architecture: Architecture): Promise<BenchRow[]> {
  const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-resume-'))
  try {
    const base = await tinyIn(root, architecture)
    const capture = await save(path.join(root, 'source'), await specify(base, architecture, true))
    const disk = path.join(root, 'saved.raw')
    await exec('qemu-img', ['convert', '-O', 'raw', `json:${JSON.stringify(captureNode(capture, base))}`, disk])
    const memory = capture.memory && { memory: capture.memory }
    const image = { ...base, name: 'saved', digest: 'sha256:saved', disk, ...memory }
    const told: number[] = []
    const boot = async (name: string, isCold: boolean): Promise<number> =>
      toSsh(path.join(root, name), await specify(image, architecture, isCold), told)
    const figures = await inTurns(
      { rounds: sized(7, 1) },
      (round) => boot(`warm-${round}`, false),
      (round) => boot(`cold-${round}`, true),
    )
    const what = `${architecture} VM from an image with memory to SSH answering`
    // The goal is for processors that are not emulated: nothing is promised of others.
    const whole = {
      what: `${architecture} guest from memory to its confirming who it is`,
      reference: 'the goal',
      unit: 'ms',
    }
    return [
      compared({ what, reference: 'its cold boot', unit: 'ms', atMost: 0.25 }, ...figures),
      compared(
        whole,
        told,
        told.map(() => 100),
      ),
    ]
  } finally {
    await driver.close()
    await fs.rm(root, { recursive: true, force: true })
  }
}

export async function bench(): Promise<BenchRow[]> {
  const rows: BenchRow[] = []
  for (const architecture of architectures) rows.push(...(await resumed(architecture)))
  return rows
}

// A VM that goes on from the memory of its image against the cold boot of the same image: from the first call of the driver
// until its SSH server speaks. Both in turns on one machine.
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { tinyImage } from '../packages/tiny-guests/build.ts'
import type { Architecture } from '../src/api/architecture.ts'
import type { Capture, VmSpec } from '../src/drivers/driver.ts'
import { QemuDriver } from '../src/drivers/qemu/driver.ts'
import { exec } from '../src/platform/exec.ts'
import { captureNode } from '../test/contract/driver-disk.ts'
import { greeting, openGuest, seedTiny } from '../test/support/guests/guest.ts'
import { freePort } from '../test/support/tools/free-port.ts'
import { type BenchRow, median, printRows } from './row.ts'

const rounds = 7
const driver = new QemuDriver()
const signal = () => AbortSignal.timeout(120_000)

async function sshAnswers(port: number): Promise<void> {
  const heard = Promise.withResolvers<void>()
  const late = setTimeout(() => heard.reject(new Error(`no SSH at port ${port}`)), 120_000)
  // Tries overlap, because an early one may hang.
  const timer = setInterval(
    () => void greeting('127.0.0.1', port, 3_000).then((text) => text?.startsWith('SSH-') && heard.resolve()),
    250,
  )
  await heard.promise.finally(() => {
    clearInterval(timer)
    clearTimeout(late)
  })
}

async function specify(image: VmSpec['image'], architecture: Architecture, isCold: boolean): Promise<VmSpec> {
  const forwards = [{ protocol: 'tcp' as const, hostPort: await freePort(), guestPort: 22 }]
  const rest = { metadata: {}, netBoost: true, legacyIO: false, ip: '127.0.0.1' }
  return {
    uid: crypto.randomUUID(),
    name: 'bench',
    architecture,
    cpu: 1,
    memoryMiB: 256,
    image,
    forwards,
    isCold,
    ...rest,
  }
}

async function toSsh(folder: string, vm: VmSpec): Promise<number> {
  const startMs = performance.now()
  const handle = await driver.create(vm, folder)
  try {
    const { note } = await driver.start(handle, vm, signal())
    if (note !== undefined) throw new Error(note)
    await sshAnswers(vm.forwards[0]?.hostPort ?? 0)
    return performance.now() - startMs
  } finally {
    await driver.destroy(handle)
  }
}

/** A guest that has settled, captured with its memory. */
async function save(folder: string, vm: VmSpec): Promise<{ capture: Capture; tookMs: number }> {
  const handle = await driver.create(vm, folder)
  await driver.start(handle, vm, signal())
  const place = { ip: vm.ip, ssh: vm.forwards[0]?.hostPort ?? 0 }
  const guest = await openGuest(place, { user: 'root' })
  await guest.run('until grep -q done /run/rc.late.log; do sleep 1; done; sync', 60_000)
  guest[Symbol.dispose]()
  const startMs = performance.now()
  const capture = await driver.capturing.capture(handle, vm, { id: 'bench', withMemory: true }, signal())
  const tookMs = performance.now() - startMs
  await driver.stop(handle, { graceSeconds: 0 })
  return { capture, tookMs }
}

async function resumed(architecture: Architecture): Promise<BenchRow> {
  const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-resume-'))
  try {
    await seedTiny(root, [architecture])
    const tiny = await tinyImage(root, architecture)
    if (!tiny) throw new Error(`there is no tiny-${architecture}`)
    const at = (name: string) => path.join(root, `tiny-${architecture}`, name)
    const boot = { ...tiny.boot, kernel: at(tiny.boot.kernel), initrd: at(tiny.boot.initrd) }
    const base = { ...tiny, name: 'tiny', disk: at(tiny.disk), boot }
    const { capture, tookMs } = await save(path.join(root, 'source'), await specify(base, architecture, true))
    const disk = path.join(root, 'saved.raw')
    await exec('qemu-img', ['convert', '-O', 'raw', `json:${JSON.stringify(captureNode(capture, base))}`, disk])
    const image = {
      ...base,
      name: 'saved',
      digest: 'sha256:saved',
      disk,
      ...(capture.memory && { memory: capture.memory }),
    }
    const times = { ours: [] as number[], cold: [] as number[] }
    for (let round = 0; round < rounds; round++) {
      times.ours.push(await toSsh(path.join(root, `warm-${round}`), await specify(image, architecture, false)))
      times.cold.push(await toSsh(path.join(root, `cold-${round}`), await specify(image, architecture, true)))
    }
    const [ours, reference] = [median(times.ours), median(times.cold)]
    const name = `${architecture} VM from an image with memory to SSH answering (captured in ${tookMs.toFixed(0)} ms; reference: its cold boot)`
    return { name, ours, reference, unit: 'ms', ratio: ours / reference, target: 0.25, better: 'lower' }
  } finally {
    await driver.close()
    await fs.rm(root, { recursive: true, force: true })
  }
}

export async function resumeBench(): Promise<BenchRow[]> {
  if (os.platform() !== 'linux') return []
  return [await resumed('amd64'), await resumed('arm64')]
}

if (import.meta.main) printRows(await resumeBench())

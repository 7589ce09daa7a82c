// Deploy and save with the images of the cluster in a registry, beside the same with them in the server's folder: real
// processes of server, node and registry on one machine, in turns. The guests' disks are real; the guests are not.
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { makeFolder } from '../test/support/processes/dev-server.ts'
import { startRegistry } from '../test/support/processes/registry.ts'
import { ClusterRig } from '../test/support/rigs/cluster-rig.ts'
import { writeAsGuest } from '../test/support/stand-ins/layered-driver.ts'
import { type BenchRow, median, printRows } from './row.ts'

const mebi = 2 ** 20
const diskBytes = Number(process.env.BENCH_DISK_BYTES ?? 256 * mebi)
const changedBytes = diskBytes / 4
const rounds = Number(process.env.BENCH_ROUNDS ?? 3)

const works = ['upload', 'deploy', 'save', 'deployAgain'] as const
type Figures = Record<(typeof works)[number], number[]>
const none = (): Figures => ({ upload: [], deploy: [], save: [], deployAgain: [] })

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await work()
  return (performance.now() - startMs) / 1_000
}

async function round(rig: ClusterRig, index: number, figures: Figures): Promise<void> {
  const [image, vm, saved] = [`disk-${index}`, `vm-${index}`, `saved-${index}`]
  const disk = Buffer.alloc(diskBytes)
  randomBytes(diskBytes / 2).copy(disk)
  figures.upload.push(await seconds(() => rig.upload(image, disk)))
  // What the server has in its cache of it would be gone by the time of a usual deployment.
  await fs.rm(path.join(rig.data, 'content-cache', 'blobs'), { recursive: true, force: true })
  await rig.restart()
  figures.deploy.push(await seconds(() => rig.deploy(vm, image)))
  await writeAsGuest(rig.vmFolder(vm), [{ offset: 0, bytes: randomBytes(changedBytes) }])
  figures.save.push(
    await seconds(async () => {
      await rig.call('POST', `/vms/${vm}/save`, { imageName: saved })
      await rig.isIn(saved, 'Ready')
    }),
  )
  await rig.isAtRest(vm)
  // The node has few cores.
  await rig.call('DELETE', `/vms/${vm}`)
  figures.deployAgain.push(await seconds(() => rig.deploy(`${vm}-again`, saved, vm)))
  await rig.call('DELETE', `/vms/${vm}-again`)
}

const mebibytes = (bytes: number): string => `${bytes / mebi} MiB`

const words: Readonly<Record<keyof Figures, string>> = {
  upload: `Upload of an image of ${mebibytes(diskBytes)}, half data`,
  deploy: 'Deploy of it on a node that has nothing of it',
  save: `Save of a VM that changed ${mebibytes(changedBytes)}`,
  deployAgain: 'Deploy of what was saved on a node that has it',
}

/** A registry has each byte once more on its way; nobody should wait for it more than twice as long. */
const target = 2

export async function imagePlacesBench(): Promise<BenchRow[]> {
  const root = await makeFolder()
  const registry = await startRegistry({ folder: path.join(root, 'registry') })
  try {
    const address = `oci+http://${registry.host}/bench/images`
    await using folder = await ClusterRig.make('amd64', { logLevel: 'silent' })
    await using inRegistry = await ClusterRig.make('amd64', { logLevel: 'silent', images: { address } })
    for (const rig of [folder, inRegistry]) await rig.startAgent()
    const [reference, ours] = [none(), none()]
    for (let index = 0; index < rounds; index += 1) {
      await round(folder, index, reference)
      await round(inRegistry, index, ours)
    }
    return works.map((work): BenchRow => {
      const ratios = ours[work].map((value, index) => value / (reference[work][index] ?? Number.NaN))
      return {
        name: `images in a registry: ${words[work]}, beside a folder`,
        ours: median(ours[work]),
        reference: median(reference[work]),
        unit: 's',
        ratio: median(ratios),
        target,
        better: 'lower',
      }
    })
  } finally {
    await registry.kill()
    await fs.rm(root, { recursive: true, force: true })
  }
}

if (import.meta.main) printRows(await imagePlacesBench())

// Deploy and save with the images of the cluster in a registry, beside the same with them in the server's folder: real
// processes of server, node and registry on one machine, in turns. The guests' disks are real; the guests are not.
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { makeFolder } from '../test/support/processes/dev-server.ts'
import { startRegistry } from '../test/support/processes/registry.ts'
import { ClusterRig } from '../test/support/rigs/cluster-rig.ts'
import { writeAsGuest } from '../test/support/stand-ins/layered-driver.ts'
import { msOf, sized } from './measure.ts'
import { type BenchRow, compared } from './row.ts'

const mebi = 2 ** 20
const diskBytes = sized(256, 8) * mebi
const changedBytes = diskBytes / 4
const rounds = sized(3, 1)

const works = ['upload', 'deploy', 'save', 'deployAgain'] as const
type Figures = Record<(typeof works)[number], number[]>
const none = (): Figures => ({ upload: [], deploy: [], save: [], deployAgain: [] })

const seconds = async (work: () => Promise<unknown>): Promise<number> => (await msOf(work)) / 1_000

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

const words: Readonly<Record<keyof Figures, string>> = {
  upload: 'Images in a registry: upload of an image of 256 MiB, half data',
  deploy: 'Deploy of it on a node that has nothing of it',
  save: 'Save of a VM that changed 64 MiB',
  deployAgain: 'Deploy of what was saved on a node that has it',
}

/** With a registry each byte is sent once more; the wait must not be more than twice as long. */
const atMost = 2

export async function bench(): Promise<BenchRow[]> {
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
    return works.map((work) => {
      const about = { what: words[work], reference: "images in the server's folder", unit: 's', atMost }
      return compared(about, ours[work], reference[work])
    })
  } finally {
    await registry.kill()
    await fs.rm(root, { recursive: true, force: true })
  }
}

// The content of images that were pulled from registries, by the digest in the registry: a small file each, beside the images,
// so that they are known after a restart and to other agents of the host.
import fs from 'node:fs/promises'
import path from 'node:path'
import { digestPattern } from '../../images/format/format.ts'
import { ifAbsent, readJsonFile, writeFileAtomically } from '../../platform/files.ts'

export interface PulledImage {
  /** `host/repository@sha256:…` of the first pull. */
  readonly reference: string
  /** How users named it. Absent in old files. */
  readonly names?: readonly string[]
  /** The digest of the manifest in svc3's format. */
  readonly content: string
  /** The size of the disk. */
  readonly sizeBytes: number
  /** Manifest and chunks were made on this node; no registry has them. */
  readonly isUnpacked: boolean
}

export interface PulledImages {
  find(reference: string): Promise<PulledImage | undefined>
  remember(image: PulledImage): Promise<void>
  /** Finds an image by its content, among those that this agent knows. */
  of(content: string): PulledImage | undefined
}

export async function openPulledImages(imageFolder: string): Promise<PulledImages> {
  const folder = path.join(imageFolder, 'pulled')
  const byContent = new Map<string, PulledImage>()

  const read = (name: string): Promise<PulledImage | undefined> =>
    readJsonFile(
      path.join(folder, name),
      (image) => typeof image.reference === 'string' && digestPattern.test(image.content),
    )
  for (const name of await fs.readdir(folder).catch(ifAbsent<string[]>([]))) {
    const image = await read(name)
    if (image) byContent.set(image.content, image)
  }

  return {
    find: (reference) => read(fileOf(reference)),
    async remember(image) {
      await fs.mkdir(folder, { recursive: true, mode: 0o700 })
      await writeFileAtomically(path.join(folder, fileOf(image.reference)), `${JSON.stringify(image)}\n`)
      byContent.set(image.content, image)
    },
    of: (content) => byContent.get(content),
  }
}

/** Names the file by the digest alone, because the same image may have several names. */
function fileOf(reference: string): string {
  const digest = reference.slice(reference.indexOf('@') + 1)
  if (digestPattern.test(digest)) return `${digest.replace(':', '-')}.json`
  throw new Error(`"${reference.slice(0, 200)}" has no digest; update the agent or the server`)
}

// Which cluster a repository belongs to, in a tag. A second cluster would delete images that it does not know.
import { digestOf } from '../../images/format/manifest.ts'
import { RegistryError } from '../artifact/errors.ts'
import { ociManifestType, parseOciManifest, rawManifest } from '../artifact/oci-manifest.ts'
import { once } from '../artifact/target.ts'
import type { Repository } from '../registry/registry.ts'

export class ForeignImagesError extends Error {
  override readonly name = 'ForeignImagesError'
}

const tag = 'svc3-cluster'
const annotation = 'io.svc3.cluster'
const empty = Buffer.from('{}')
const blob = { mediaType: 'application/vnd.oci.empty.v1+json', digest: digestOf(empty), size: empty.length }

export async function repositoryOwner(repository: Repository, signal?: AbortSignal): Promise<string | undefined> {
  try {
    const { annotations } = parseOciManifest(await repository.resolve(tag, signal))
    return annotations[annotation] ?? 'another program'
  } catch (error) {
    if (error instanceof RegistryError && error.fault === 'notFound') return undefined
    throw error
  }
}

/** Claims an unused repository. Throws if it belongs to another cluster. */
export async function claim(repository: Repository, cluster: string, signal?: AbortSignal): Promise<void> {
  const owner = await repositoryOwner(repository, signal)
  if (owner === cluster) return
  if (owner !== undefined) throw foreign(repository, owner)
  await repository.put(blob, { open: () => once(empty) }, { signal })
  await repository.finish(markOf(cluster), tag, signal)
  // Another cluster may have claimed it at the same time.
  const now = await repositoryOwner(repository, signal)
  if (now !== cluster) throw foreign(repository, now ?? 'nobody')
}

function markOf(cluster: string) {
  const mark = {
    schemaVersion: 2,
    mediaType: ociManifestType,
    artifactType: 'application/vnd.svc3.cluster.v1',
    config: blob,
    layers: [blob],
    annotations: { [annotation]: cluster },
  }
  return rawManifest(ociManifestType, Buffer.from(JSON.stringify(mark)))
}

const foreign = (repository: Repository, owner: string): ForeignImagesError =>
  new ForeignImagesError(`${repository.name} has the images of another cluster (${owner}): choose another prefix`)

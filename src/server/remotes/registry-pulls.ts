// Pulls from registries into the cluster's image store. Like pulls from remotes, they run in the background. They
// resume after a restart, because fetched content stays in the store.
import type { ContentStore } from '../../images/content/content.ts'
import { putManifest, readManifest } from '../../images/pack/stored-manifests.ts'
import { imageDestination } from '../../oci/artifact/image-target.ts'
import type { ArtifactSource } from '../../oci/artifact/target.ts'
import { copy } from '../../oci/copy.ts'
import { inspectImage } from '../../oci/inspect.ts'
import { openRegistry } from '../../oci/registry/registry.ts'
import { waitingLine } from '../../oci/registry/waiting.ts'
import { isImageReference } from '../../rules/image-reference.ts'
import type { RegistryPull } from '../../store/records/fleet-records.ts'
import { type Imported, type ImportOptions, storedBytes } from '../images/contents.ts'
import type { NewImage } from '../images/store.ts'
import { findCredentials, loginFor, type RegistryServices, referenceOf } from './registries.ts'
import { findRegistryImage } from './registry-images.ts'
import type { Remotes } from './remotes.ts'

/** Whether `wanted` is a reference of a registry. `remote/name` is an item of a remote if a remote has that name. */
export function isFromRegistry({ remotes }: { readonly remotes: Remotes }, wanted: string): boolean {
  const [first = '', ...rest] = wanted.split('/')
  const isHost = /^[a-z0-9[]/i.test(first)
  return isImageReference(wanted) && isHost && !(rest.length === 1 && remotes.source(first) !== undefined)
}

/** The record of a pull. Its default name is the last part of the repository. */
export async function registryPullOf(services: RegistryServices, wanted: string, namespace: string): Promise<NewImage> {
  const reference = referenceOf(wanted, 'pull')
  const found = await findRegistryImage(services, reference, { namespace })
  const { pinned, digest, architecture, sizeBytes, storedBytes: bytes } = found
  return {
    name: reference.repository.slice(reference.repository.lastIndexOf('/') + 1),
    description: '',
    architecture,
    sizeBytes,
    state: 'Updating',
    progress: { percent: 0, bytes: 0 },
    source: reference.text,
    sourceType: 'remote',
    pull: { reference: pinned, namespace, bytes, sha256: digest.slice('sha256:'.length) },
  }
}

/** Callers must hold off the collector. */
export async function takeFromRegistry(
  services: RegistryServices & { readonly content: ContentStore },
  { reference: text, namespace }: RegistryPull,
  options: ImportOptions,
): Promise<Imported> {
  const reference = referenceOf(text, 'pull')
  const login = await loginFor(services, reference, findCredentials(services.collections, namespace, reference))
  const registry = openRegistry({ ...login, onWaiting: (waiting) => options.waits(waitingLine(waiting)) })
  try {
    return await takeFrom(registry.repository(reference.repository), reference.target, services, options)
  } finally {
    registry.close()
  }
}

export async function takeFrom(
  source: ArtifactSource,
  digest: string,
  { content: store }: { readonly content: ContentStore },
  { architecture, signal, progress }: ImportOptions,
): Promise<Imported> {
  const report = (bytes: number, of: number): void =>
    progress({ percent: Math.min(99, Math.floor((100 * bytes) / Math.max(1, of))), bytes })
  const found = await inspectImage(source, digest, { signal, limits: { architecture } })
  const content = found.ours
    ? await copy(
        { target: source, reference: found.raw.digest },
        { target: imageDestination(store) },
        { signal, onProgress: ({ bytesDone, bytesTotal }) => report(bytesDone, bytesTotal) },
      ).then((copied) => copied.digest)
    : await found
        .pack(store, { signal, onProgress: ({ bytes, of }) => report(bytes, of) })
        .then((manifest) => putManifest(store, manifest, signal))
  const manifest = await readManifest(store, content, signal)
  const spaceUsedBytes = ((await store.size(content)) ?? 0) + storedBytes(manifest)
  const { virtualSizeBytes: sizeBytes, os } = manifest
  return { content, sizeBytes, spaceUsedBytes, ...(os && { os }) }
}

// Sends an image to an OCI registry, straight from this node: what the registry lacks, and the manifest last. Cut off, the
// next try sends the rest. Credentials are asked for when they are needed, and kept nowhere.
import type { RegistryLogin } from '../api/captures.ts'
import type { ContentStore } from '../images/content.ts'
import { copy } from '../oci/copy.ts'
import { imageSource } from '../oci/image-target.ts'
import { openRegistry } from '../oci/registry.ts'
import { parseImageReference } from '../rules/image-reference.ts'
import type { CaptureProgress } from './captures.ts'

export interface PushOptions {
  readonly login: RegistryLogin
  readonly store: ContentStore
  readonly signal: AbortSignal
  progress(progress: CaptureProgress): void
}

/** Returns the digest of the manifest in the registry. */
export async function push(content: string, text: string, options: PushOptions): Promise<string> {
  const { login, store, signal, progress } = options
  const parsed = parseImageReference(text, 'push')
  if (!parsed.ok) throw new Error(`${parsed.problem}; ${parsed.hint}`)
  const { repository, target } = parsed.reference
  const registry = openRegistry(login)
  try {
    const { digest } = await copy(
      { target: imageSource(store), reference: content },
      { target: registry.repository(repository), reference: target },
      {
        signal,
        onProgress: ({ bytesTotal, bytesDone, bytesSkipped }) =>
          progress({
            percent: bytesTotal === 0 ? 0 : Math.min(99, (100 * bytesDone) / bytesTotal),
            bytes: bytesDone,
            phase: 'sending',
            bytesTotal,
            bytesSkipped,
          }),
      },
    )
    return digest
  } finally {
    registry.close()
  }
}

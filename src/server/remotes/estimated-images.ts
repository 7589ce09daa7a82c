// Looks up a registry image to estimate when a new VM would start, with a shorter timeout than a deployment. Results
// are cached for a minute, because the form of the console requests an estimate for every change of a field.
import type { Architecture } from '../../api/architecture.ts'
import { ApiError } from '../../api/errors.ts'
import { findCredentials, type RegistryServices, referenceOf } from './registries.ts'
import { findRegistryImage, type RegistryImage } from './registry-images.ts'

interface ImageRequest {
  readonly namespace: string
  readonly image: string
  readonly architecture: Architecture
}

/** The image, or why the registry cannot be reached now. */
type EstimatedImage = { readonly found: RegistryImage } | { readonly problem: string }

const waitMs = 5_000
const cacheMs = 60_000
const maxCached = 200

/** The returned function throws the error with which a deployment would be refused. */
export function createEstimatedImages(services: RegistryServices): (request: ImageRequest) => Promise<EstimatedImage> {
  const cache = new Map<string, { readonly found: RegistryImage; readonly untilMs: number }>()

  return async ({ namespace, image, architecture }) => {
    const reference = referenceOf(image, 'pull')
    // Other credentials may see other images.
    const stored = findCredentials(services.collections, namespace, reference)
    const key = JSON.stringify([namespace, reference.text, architecture, stored?.rev])
    const cached = cache.get(key)
    if (cached && performance.now() < cached.untilMs) return { found: cached.found }
    try {
      const found = await findRegistryImage(services, reference, { namespace, architecture, waitMs })
      cache.delete(key)
      cache.set(key, { found, untilMs: performance.now() + cacheMs })
      const [oldest] = cache.keys()
      if (cache.size > maxCached && oldest !== undefined) cache.delete(oldest)
      return { found }
    } catch (error) {
      if (error instanceof ApiError && error.reason === 'ServiceUnavailable') return { problem: error.message }
      throw error
    }
  }
}

// Looks up a registry image for an estimate: what a deployment would find there, with a shorter timeout, cached for a
// minute because a form asks again whenever a field changes.
import type { Architecture } from '../../api/architecture.ts'
import { ApiError } from '../../api/errors.ts'
import { findCredentials, type RegistryServices, referenceOf } from './registries.ts'
import { findRegistryImage, type RegistryImage } from './registry-images.ts'

interface AskedImage {
  readonly namespace: string
  readonly image: string
  readonly architecture: Architecture
}

/** Or why the registry could not be asked, which may be otherwise when the VM is deployed. */
type Estimated = { readonly found: RegistryImage } | { readonly problem: string }

const waitMs = 5_000
const rememberedMs = 60_000
const maxRemembered = 200

/** Throws what a deployment would be refused with. */
export function createEstimatedImages(services: RegistryServices): (asked: AskedImage) => Promise<Estimated> {
  const known = new Map<string, { readonly found: RegistryImage; readonly untilMs: number }>()

  return async ({ namespace, image, architecture }) => {
    const reference = referenceOf(image, 'pull')
    // Other credentials may see other images.
    const stored = findCredentials(services.collections, namespace, reference)
    const key = JSON.stringify([namespace, reference.text, architecture, stored?.rev])
    const remembered = known.get(key)
    if (remembered && performance.now() < remembered.untilMs) return { found: remembered.found }
    try {
      const found = await findRegistryImage(services, reference, { namespace, architecture, waitMs })
      known.delete(key)
      known.set(key, { found, untilMs: performance.now() + rememberedMs })
      const [oldest] = known.keys()
      if (known.size > maxRemembered && oldest !== undefined) known.delete(oldest)
      return { found }
    } catch (error) {
      if (error instanceof ApiError && error.reason === 'ServiceUnavailable') return { problem: error.message }
      throw error
    }
  }
}

// Resolves an image reference to a manifest, with the credentials of the namespace. A namespace therefore gets no image
// from a node's cache that the registry would refuse it.
import type { Architecture } from '../../api/architecture.ts'
import { ApiError, type ErrorOptions, invalidField, type Reason } from '../../api/errors.ts'
import { RegistryError, type RegistryFault } from '../../oci/artifact/errors.ts'
import { inspectImage } from '../../oci/inspect.ts'
import { openRegistry } from '../../oci/registry/registry.ts'
import { retryPolicies } from '../../platform/retry.ts'
import { type ImageReference, noCredentials } from '../../rules/image-reference.ts'
import type { ImageRecord } from '../../store/records/fleet-records.ts'
import { findCredentials, loginFor, type RegistryServices } from './registries.ts'

export interface RegistryImage {
  /** `host/repository@sha256:…` */
  readonly pinned: string
  readonly digest: string
  readonly architecture: Architecture
  readonly os: ImageRecord['os']
  readonly sizeBytes: number
  readonly storedBytes: number
}

/** Short, because a user is waiting. */
const timeoutMs = 15_000
const retryAfterSeconds = 10

interface LookupOptions {
  readonly namespace: string
  /** Other architectures are refused. */
  readonly architecture?: Architecture
  readonly waitMs?: number
}

export async function findRegistryImage(
  services: RegistryServices,
  reference: ImageReference,
  { namespace, architecture, waitMs = timeoutMs }: LookupOptions,
): Promise<RegistryImage> {
  const stored = findCredentials(services.collections, namespace, reference)
  const login = await loginFor(services, reference, stored)
  const late = AbortSignal.timeout(waitMs)
  const signal = AbortSignal.any([late, services.ending])
  // An administrator has typed the address of stored credentials.
  const mayBeMistyped = stored === undefined
  const registry = openRegistry({ ...login, retry: retryPolicies.lookup, idleMs: waitMs, mayBeMistyped })
  try {
    const limits = architecture && { architecture }
    const source = registry.repository(reference.repository)
    const options = { architecture: architecture ?? 'arm64', signal, ...(limits && { limits }) }
    const found = await inspectImage(source, reference.target, options)
    return {
      pinned: `${reference.registry}/${reference.repository}@${found.raw.digest}`,
      digest: found.raw.digest,
      architecture: found.architecture,
      os: found.os,
      sizeBytes: found.virtualSizeBytes,
      storedBytes: found.storedBytes,
    }
  } catch (error) {
    if (error instanceof RegistryError)
      throw refusalOf(error, reference, { namespace, hasStored: stored !== undefined })
    if (!late.aborted) throw error
    throw new ApiError(
      'ServiceUnavailable',
      `${about(reference)}: the registry did not answer within ${waitMs / 1_000} s`,
      {
        hint: 'Try again when the registry answers',
        retryAfterSeconds,
      },
    )
  } finally {
    registry.close()
  }
}

/** How each fault is reported to the caller. */
const reasons: Readonly<Record<RegistryFault, Reason>> = {
  address: 'Invalid',
  insecure: 'Invalid',
  plain: 'Invalid',
  invalid: 'Invalid',
  unknownHost: 'Invalid',
  unreachable: 'Invalid',
  tooLarge: 'Invalid',
  notFound: 'NotFound',
  untrusted: 'Conflict',
  unauthorized: 'Conflict',
  forbidden: 'Conflict',
  refused: 'Conflict',
  session: 'ServiceUnavailable',
  rateLimited: 'ServiceUnavailable',
  unavailable: 'ServiceUnavailable',
}

const wantsCredentials = new Set<RegistryFault>(['unauthorized', 'forbidden'])

function refusalOf(
  error: RegistryError,
  reference: ImageReference,
  { namespace, hasStored }: { readonly namespace: string; readonly hasStored: boolean },
): ApiError {
  const { fault, problem, hint, setting } = error
  const options = { kind: 'images', name: reference.text.slice(0, 200) }
  if (!hasStored && wantsCredentials.has(fault)) {
    const missing = noCredentials(reference, namespace)
    const message = `${about(reference)}: the registry requires credentials. ${missing.problem}`
    return new ApiError('Conflict', message, { ...options, hint: missing.hint })
  }
  if (fault === 'plain') return withoutTls(reference, namespace, { ...options, hasStored })
  const refused = fault === 'unauthorized' ? ` with the credentials of ${namespace}` : ''
  const message = `${about(reference)}${refused}: ${fault === 'notFound' ? `not found: ${problem}` : problem}`
  const reason = reasons[fault]
  return new ApiError(reason, message, {
    ...options,
    hint,
    ...(setting !== undefined && { adminHint: `Set ${setting} to true in config.json of the server, and restart it` }),
    ...(reason === 'Invalid' && { causes: [invalidField('image', message)] }),
    ...(reason === 'ServiceUnavailable' && { retryAfterSeconds }),
  })
}

/** Plain HTTP has to be allowed by an administrator, in the credentials for the registry. */
function withoutTls(
  reference: ImageReference,
  namespace: string,
  { hasStored, ...options }: ErrorOptions & { readonly hasStored: boolean },
): ApiError {
  const { problem, hint } = noCredentials(reference, namespace, { isPlain: true, hasStored })
  const message = `${about(reference)}: the registry does not use HTTPS. ${problem} that allow plain HTTP`
  return new ApiError('Conflict', message, { ...options, hint })
}

const about = ({ text }: ImageReference): string => `Image ${text}`

// Access to the registry of a reference: which stored credentials apply, and the error if there are none.
import fs from 'node:fs/promises'
import { ApiError, invalid, invalidField } from '../../api/errors.ts'
import type { RegistryLogin } from '../../api/nodes/captures.ts'
import type { Secrets } from '../../auth/secrets.ts'
import { RegistryError } from '../../oci/artifact/errors.ts'
import { openRegistry, type Registry } from '../../oci/registry/registry.ts'
import { retryPolicies } from '../../platform/retry.ts'
import { credentialFor, type ImageReference, noCredentials, parseImageReference } from '../../rules/image-reference.ts'
import { parseRegistryServer } from '../../rules/registry-server.ts'
import type { Collections, RegistryCredentialRecord } from '../../store/records/collections.ts'
import type { Entry } from '../../store/store.ts'
import type { Settings } from '../config/settings.ts'

type CredentialRecords = Pick<Collections, 'registryCredentials'>

export interface RegistryServices {
  readonly collections: CredentialRecords
  readonly secrets: Secrets
  readonly settings: Pick<Settings, 'registries'>
  /** Aborted when pending requests have to end. */
  readonly ending: AbortSignal
}

/** The uses of references, each with the field that errors name. */
const uses = {
  push: { field: 'imageReference', kind: 'pushjobs' },
  pull: { field: 'image', kind: 'images' },
} as const

/** Parses a reference, or throws Invalid. */
export function referenceOf(text: string, use: keyof typeof uses = 'push'): ImageReference {
  const parsed = parseImageReference(text, use)
  if (parsed.ok) return parsed.reference
  const { field, kind } = uses[use]
  throw invalid(kind, [invalidField(field, parsed.problem)], parsed.hint)
}

/**
 * The key of the credentials for a registry. It does not depend on their scheme, and is the https address because earlier
 * versions, whose keys were addresses, stored nearly all credentials there.
 */
export const credentialKey = (stored: CredentialRecords['registryCredentials'], namespace: string, registry: string) =>
  stored.key(namespace, `https://${registry}`)

/** The registry of stored credentials. Unlike the fields of their record, their key cannot have been altered. */
export function registryIn(key: string): string {
  const address = decodeURIComponent(key.split('/').at(-1) ?? '')
  const parsed = parseRegistryServer(address)
  return parsed.ok ? parsed.registry : address
}

export function findCredentials(
  { registryCredentials }: CredentialRecords,
  namespace: string,
  reference: ImageReference,
): Entry<RegistryCredentialRecord> | undefined {
  const all = registryCredentials.list(namespace)
  const found = credentialFor(
    reference,
    all.map(({ value }) => value),
  )
  return all.find(({ value }) => value === found)
}

export function requireCredentials(
  stored: CredentialRecords,
  namespace: string,
  reference: ImageReference,
): Entry<RegistryCredentialRecord> {
  const found = findCredentials(stored, namespace, reference)
  if (found) return found
  throw missingCredentials(reference, namespace)
}

/** Throws Conflict if none are stored. The hint has the command that stores them, also for a registry without TLS. */
export async function requirePushCredentials(
  services: RegistryServices,
  namespace: string,
  reference: ImageReference,
): Promise<void> {
  if (findCredentials(services.collections, namespace, reference)) return
  throw missingCredentials(reference, namespace, { isPlain: await speaksPlainHttp(services, reference) })
}

function missingCredentials(reference: ImageReference, namespace: string, how?: { isPlain: boolean }): ApiError {
  const { problem, hint } = noCredentials(reference, namespace, how)
  return new ApiError('Conflict', problem, { kind: 'registrycredentials', name: reference.registry, hint })
}

const lookMs = 3_000

/** Whether the registry answers without TLS. Returns false if it cannot be reached. */
async function speaksPlainHttp(
  services: Pick<RegistryServices, 'secrets' | 'settings' | 'ending'>,
  reference: ImageReference,
): Promise<boolean> {
  let registry: Registry | undefined
  try {
    registry = openRegistry({
      ...(await loginFor(services, reference, undefined)),
      retry: retryPolicies.lookup,
      idleMs: lookMs,
    })
    await registry.ping({ signal: AbortSignal.any([AbortSignal.timeout(lookMs), services.ending]) })
    return false
  } catch (error) {
    return error instanceof RegistryError && error.fault === 'plain'
  } finally {
    registry?.close()
  }
}

/** Includes the decrypted password. */
export async function loginFor(
  services: Pick<RegistryServices, 'secrets' | 'settings'>,
  reference: ImageReference,
  stored: Entry<RegistryCredentialRecord> | undefined,
): Promise<RegistryLogin> {
  const { secrets, settings } = services
  const { allowPrivate = false, allowLoopback = false, ca } = settings.registries
  const { registry } = reference
  const file = Object.hasOwn(ca, registry) ? ca[registry] : undefined
  return {
    server: stored?.value.server ?? `https://${registry}`,
    ...(stored && {
      credentials: { username: stored.value.username, password: secrets.open(stored.key, stored.value) },
    }),
    allowInsecure: stored?.value.allowInsecure ?? false,
    policy: { allowPrivate, allowLoopback },
    ...(file !== undefined && { ca: await readAuthority(file, registry) }),
  }
}

const readAuthority = (file: string, registry: string): Promise<string> =>
  fs.readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const message = `Cannot read the CA certificate ${file} of registry ${registry} (${error.code})`
    const hint = 'Correct registries.ca in config.json, or make the file readable'
    throw new ApiError('Conflict', message, { kind: 'registrycredentials', name: registry, hint, cause: error })
  })

// How the registry of a reference is reached: which stored credentials are used with it, and what is said where there are
// none.
import fs from 'node:fs/promises'
import type { RegistryLogin } from '../api/captures.ts'
import { ApiError, invalid } from '../api/errors.ts'
import { credentialFor, type ImageReference, noCredentials, parseImageReference } from '../rules/image-reference.ts'
import type { Collections, RegistryCredentialRecord } from '../store/collections.ts'
import type { Entry } from '../store/store.ts'
import type { Services } from './services.ts'

type Stored = Pick<Collections, 'registryCredentials'>

/** What references are wanted for: which form they may have, and which field of which records they are. */
const uses = {
  push: { field: 'imageReference', kind: 'pushjobs' },
  pull: { field: 'image', kind: 'images' },
} as const

/** Throws what is wrong with it. */
export function referenceOf(text: string, use: keyof typeof uses = 'push'): ImageReference {
  const parsed = parseImageReference(text, use)
  if (parsed.ok) return parsed.reference
  const { field, kind } = uses[use]
  throw invalid(kind, [{ field, reason: 'FieldValueInvalid', message: parsed.problem }], parsed.hint)
}

export function findCredentials(
  { registryCredentials }: Stored,
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

/** Throws where there are none: true now, and an administrator can change it. */
export function requireCredentials(
  stored: Stored,
  namespace: string,
  reference: ImageReference,
): Entry<RegistryCredentialRecord> {
  const found = findCredentials(stored, namespace, reference)
  if (found) return found
  const { problem, hint } = noCredentials(reference, namespace)
  throw new ApiError('Conflict', problem, { kind: 'registrycredentials', name: reference.registry, hint })
}

/** With the password: for the program that is about to use it, and for nobody else. */
export async function loginFor(
  services: Pick<Services, 'secrets' | 'settings' | 'plainHttp' | 'collections'>,
  reference: ImageReference,
  stored: Entry<RegistryCredentialRecord> | undefined,
): Promise<RegistryLogin> {
  const { secrets, settings, plainHttp } = services
  const { allowPrivate = plainHttp, allowLoopback = plainHttp, ca } = settings.registries
  const { registry } = reference
  const file = Object.hasOwn(ca, registry) ? ca[registry] : undefined
  return {
    server: stored?.value.server ?? `https://${registry}`,
    ...(stored && {
      credentials: { username: stored.value.username, password: secrets.open(stored.key, stored.value) },
    }),
    allowInsecure: stored?.value.allowInsecure ?? false,
    policy: { allowPrivate, allowLoopback },
    ...(file !== undefined && { ca: await fs.readFile(file, 'utf8') }),
  }
}

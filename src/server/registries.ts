// Which stored credentials a reference to an image is used with, and what is said where there are none.
import { ApiError, invalid } from '../api/errors.ts'
import type { Secrets } from '../auth/secrets.ts'
import { credentialFor, type ImageReference, noCredentials, parseImageReference } from '../rules/image-reference.ts'
import type { Collections, RegistryCredentialRecord } from '../store/collections.ts'
import type { Entry } from '../store/store.ts'

export interface RegistryLogin {
  readonly server: string
  readonly username: string
  readonly password: string
  readonly allowInsecure: boolean
}

type Stored = Pick<Collections, 'registryCredentials'>

/** Throws what is wrong with it, as a fault of the field `imageReference`. */
export function referenceOf(text: string, use: 'push' | 'pull' = 'push', field = 'imageReference'): ImageReference {
  const parsed = parseImageReference(text, use)
  if (parsed.ok) return parsed.reference
  throw invalid('pushjobs', [{ field, reason: 'FieldValueInvalid', message: parsed.problem }], parsed.hint)
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
export function credentialsFor(
  { secrets, ...stored }: Stored & { readonly secrets: Secrets },
  namespace: string,
  reference: ImageReference,
): RegistryLogin {
  const { key, value } = requireCredentials(stored, namespace, reference)
  const { server, username, allowInsecure } = value
  return { server, username, password: secrets.open(key, value), allowInsecure }
}

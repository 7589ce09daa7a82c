// The records that svc3 keeps, one line a kind: what it is called in the store, and what it holds.
import { Collection } from './collection.ts'
import type { Store } from './store.ts'
import { View } from './view.ts'

export interface NamespaceRecord {
  readonly name: string
  readonly customPods: boolean
  readonly createdAt: string
}

/** One key per registry and namespace: the store itself keeps it at one set (founding document 2.1, rule 1). */
export interface RegistryCredentialRecord {
  readonly server: string
  readonly username: string
  readonly allowInsecure: boolean
  readonly createdAt: string
  readonly updatedAt: string
  readonly updatedBy: string
  /** The request that wrote it, so that a repeated request recognises its own work after a crash. */
  readonly requestKey?: string
  /** What that request did, and so which answer it got. */
  readonly isReplacement?: boolean
  /** The password, sealed and bound to all of the above. */
  readonly sealed: string
}

export interface SigningKeyRecord {
  readonly kid: string
  readonly createdAt: string
  readonly sealed: string
}

/** The first answer to a request that carried an Idempotency-Key. */
export interface AnswerRecord {
  readonly fingerprint: string
  readonly status: number
  readonly body: string
  readonly createdAt: string
}

const kinds = {
  namespaces: kind<NamespaceRecord>('/namespaces/'),
  registryCredentials: kind<RegistryCredentialRecord>('/registry-credentials/'),
  signingKeys: kind<SigningKeyRecord>('/signing-keys/'),
  answers: kind<AnswerRecord>('/answers/'),
}

export type Collections = { readonly [Name in keyof typeof kinds]: ReturnType<(typeof kinds)[Name]> } & AsyncDisposable

/** Opens every collection and waits until each has read what is there. */
export async function openCollections(store: Store, signal?: AbortSignal): Promise<Collections> {
  const opened = Object.entries(kinds).map(([name, open]) => [name, open(store)] as const)
  await Promise.all(opened.map(([, collection]) => collection.view.synced(signal)))
  const close = async (): Promise<void> => {
    await Promise.all(opened.map(([, collection]) => collection.view.close()))
  }
  return {
    ...(Object.fromEntries(opened) as unknown as Omit<Collections, typeof Symbol.asyncDispose>),
    [Symbol.asyncDispose]: close,
  }
}

/** For whoever asks how all of them are. */
export const viewsOf = (collections: Collections): readonly View<unknown>[] =>
  Object.keys(kinds).map((name) => collections[name as keyof typeof kinds].view as View<unknown>)

function kind<T>(prefix: string) {
  return (store: Store): Collection<T> => new Collection(store, new View<T>(store, prefix), prefix)
}

// The namespace of a request: aliases become the real name, and what does not exist is refused before anything runs.
import { type ApiError, notFound } from '../api/errors.ts'
import { timestamp } from '../platform/clock.ts'
import { defaultNamespace } from '../rules/names.ts'
import { isFault } from '../store/store.ts'
import type { Services } from './services.ts'

export const missingNamespace = (name: string): ApiError =>
  notFound('namespaces', name, 'svc3 namespace list shows those that you may use')

/** The default namespace is always there. */
export async function ensureDefaultNamespace({
  collections,
  clock,
}: Pick<Services, 'collections' | 'clock'>): Promise<void> {
  if (collections.namespaces.get('', defaultNamespace)) return
  try {
    await collections.namespaces.create('', defaultNamespace, {
      name: defaultNamespace,
      customPods: false,
      createdAt: timestamp(clock.now()),
    })
  } catch (error) {
    if (!isFault(error, 'AlreadyExists')) throw error
  }
}

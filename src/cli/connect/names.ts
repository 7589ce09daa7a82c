// Fetches names from the service for suggestions and completion: with a short timeout and the current token, without
// renewing a login or asking a question.

import { isListed, type ListedNoun, nouns } from '../../api/nouns.ts'
import { base, inNamespace, type Operation } from '../../api/operation.ts'
import type { listVms } from '../../api/vms/vms.ts'
import type { Host } from '../host.ts'
import { chooseNamespace, findConnection } from './connection.ts'
import { withKubeNamespace } from './kube-namespace.ts'
import { openClient } from './session.ts'

type LiveNames = ListedNoun | 'tags'
export const isLive = (names: string): names is LiveNames => names === 'tags' || isListed(names)

/** The list operation of a noun without its schemas, because loading all operations would delay completion. */
function listOf(noun: ListedNoun): typeof listVms {
  const path = `${noun === 'namespaces' ? base : inNamespace}/${nouns[noun].list}`
  const list: Pick<Operation, 'id' | 'method' | 'path' | 'status'> = { id: noun, method: 'GET', path, status: 200 }
  return list as typeof listVms
}

interface NamesRequest {
  readonly kind: LiveNames
  /** The option --namespace. */
  readonly namespace: string | undefined
  readonly timeoutMs: number
}

/** Throws if the service does not answer in time. */
export async function liveNames(host: Host, { kind, namespace, timeoutMs }: NamesRequest): Promise<string[]> {
  const connection = await withKubeNamespace(host, findConnection(host))
  const client = openClient(host, connection, { timeoutMs, attempts: 1 })
  const params = { namespace: chooseNamespace(host, namespace, connection) }
  const noun = kind === 'tags' ? 'nodes' : kind
  const items = await client.listAll(listOf(noun), { params, signal: AbortSignal.timeout(timeoutMs) })
  const field = kind === 'tags' ? 'orkaTags' : kind === 'registry-credentials' ? nouns[kind].nameField : 'name'
  const names = (items as readonly unknown[] as readonly Record<string, string | string[]>[]).flatMap(
    (item) => item[field] ?? [],
  )
  return [...new Set(names)].sort()
}

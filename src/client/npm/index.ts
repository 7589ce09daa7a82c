// `svc3/client`, the client of the npm package: a method for every operation of the table, carried by fetch. It is the
// client of the command line and of the console; this file adds names, defaults and optional parameters.
import { ApiError } from '../../api/errors.ts'
import { publishedOperations } from '../../api/index.ts'
import { type Operation, paramNames } from '../../api/operation.ts'
import type { getVmLogs } from '../../api/vms/vms.ts'
import { callUntilDone } from '../call-until-done.ts'
import { type CallInput, createClient as createCore, type ListOperation, type RawInput, randomKey } from '../client.ts'
import { fetchTransport } from '../fetch.ts'
import { followLogs } from '../follow-logs.ts'
import { createRevision } from '../revision.ts'
import { ConnectionError } from '../transport.ts'
import { watch as watchList } from '../watch.ts'
import type * as declared from './declared.ts'
import { hasMethod } from './offered.ts'

/** Input of the methods: path parameters and all others in one object. */
type Flat = Omit<RawInput, 'params'> & { readonly [param: string]: unknown; readonly resourceVersion?: string }

export { ApiError, ConnectionError }

const table = new Map(publishedOperations.map((operation) => [operation.id, operation]))
const logs = known('getVmLogs') as typeof getVmLogs
const readMs = 30_000
/** Deployments and the like answer when they are done; the service gives up after ten minutes unless told otherwise. */
const changeMs = 660_000
const never = new AbortController().signal

export const createClient: typeof declared.createClient = (options) => {
  const { url, namespace = 'svc-default', retry = true, timeoutMs } = options
  const fetch = options.fetch ?? ((address, init) => globalThis.fetch(address, init))
  const shared = {
    baseUrl: url,
    token: options.token,
    transport: fetchTransport({ fetch }),
    revision: createRevision(),
  }
  const once = createCore({ ...shared, retry: { attempts: 1 } })
  const core = retry ? createCore(shared) : once

  const inputFor = (operation: Operation, flat: Flat = {}): RawInput => {
    const { query, body, signal, idempotencyKey } = flat
    const given = paramNames(operation.path).map((name) => [name, flat[name] ?? defaults(operation)[name]] as const)
    const params = Object.fromEntries(given.map(([name, value]) => [name, String(value ?? '')]))
    const limitMs = flat.timeoutMs ?? timeoutMs ?? defaultMs(operation, body)
    return { params, query, body, signal, timeoutMs: limitMs, ...(idempotencyKey && { idempotencyKey }) }
  }
  const defaults = ({ path }: Operation): Readonly<Record<string, string>> =>
    path.includes('{namespace}/') ? { namespace } : {}

  const call = async (operation: Operation, flat?: Flat): Promise<unknown> => {
    const input = inputFor(operation, flat)
    if (!isPost(operation) || !retry) return await core.call(operation, input as CallInput<Operation>)
    const { idempotencyKey = randomKey(), timeoutMs: limitMs = changeMs } = input
    return await callUntilDone(once, operation, { ...input, idempotencyKey } as never, limitMs)
  }

  const watch = (id: string, flat: Flat = {}): AsyncGenerator<unknown> => {
    const { signal = never, resourceVersion } = flat
    const list = known(id) as ListOperation
    const input = inputFor(list, flat) as CallInput<ListOperation>
    return watchList(core, list, input, { signal, ...(resourceVersion !== undefined && { resourceVersion }) })
  }

  async function* stream(id: string, flat: Flat): AsyncGenerator<Uint8Array> {
    const operation = known(id)
    const input = inputFor(operation, flat)
    const { follow, tail } = (input.query ?? {}) as { follow?: boolean; tail?: number }
    if (id !== logs.id || !follow) return yield* (await core.open(operation, input)).body
    const { namespace: place = '', vm = '' } = input.params ?? {}
    yield* followLogs(core, { operation: logs, namespace: place, vm, tail, signal: input.signal ?? never })
  }

  const listAll = (id: string, flat?: Flat): Promise<unknown[]> =>
    core.listAll(known(id) as ListOperation, inputFor(known(id), flat) as CallInput<ListOperation>)

  const methods = publishedOperations
    .filter(hasMethod)
    .map((operation) => [operation.id, (flat?: Flat) => call(operation, flat)] as const)
  // The declarations are generated from the same table.
  return { ...Object.fromEntries(methods), listAll, watch, stream } as unknown as declared.Client
}

const isPost = (operation: Operation): operation is Operation & { readonly method: 'POST' } =>
  operation.method === 'POST'

function known(id: string): Operation {
  const found = table.get(id)
  if (!found) throw new TypeError(`Unknown operation ${id}`)
  return found
}

/** Returns the limit of a call: a minute more than the timeout in minutes that the body of a deployment may have. */
function defaultMs({ method }: Operation, body: unknown): number {
  if (method === 'GET') return readMs
  const minutes = Number((body as { timeout?: unknown } | undefined)?.timeout ?? 0)
  return Math.max(changeMs, (minutes + 1) * 60_000)
}

// Invokes an operation of the table, from an HTTP route, the 2.4.x gateway or a multiplexed watch, with the same
// permission, namespace, schemas, expected version, handler and event.
import { ApiError } from '../../api/errors.ts'
import { allOperations } from '../../api/index.ts'
import { type Operation, paramNames } from '../../api/operation.ts'
import type { Principal } from '../../auth/principal.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import type { Collections } from '../../store/records/collections.ts'
import { recordChange, uidBefore } from '../gate/audit.ts'
import { type DeniedServices, denied } from '../gate/authenticate.ts'
import { type VersionServices, versionGuard } from '../gate/expected-version.ts'
import { missingNamespace } from '../gate/namespace.ts'
import { withinRecordLimits } from '../gate/record-limits.ts'
import { realSelector } from '../gate/spelling.ts'
import { Answer } from '../http/answer.ts'
import { bodyValidator, queryValidator, type Validator } from '../http/validate.ts'
import { computedList } from '../lists/computed-lists.ts'
import type { Listing } from '../lists/listing.ts'
import { ListRenderer } from '../lists/lists.ts'
import type { Call, Handlers } from './handlers.ts'

export interface InvokeServices extends DeniedServices, VersionServices {
  readonly collections: Collections
  readonly clock: Clock
  readonly log: Log
}

interface OperationInput {
  readonly principal: Principal | undefined
  /** The name of the namespace, or empty. */
  readonly namespace: string
  readonly params: Readonly<Record<string, string>>
  readonly query?: unknown
  readonly body?: unknown
}

interface Outcome {
  readonly status: number
  readonly value: unknown
}

type AnyHandler = (call: Call<Operation>) => unknown
export type ListedOperation = Operation & { item: NonNullable<Operation['item']> }

export class Operations {
  readonly #services: InvokeServices
  readonly #known: ReadonlyMap<string, ReturnType<typeof prepared>>

  constructor(services: InvokeServices, table: Handlers) {
    this.#services = services
    this.#known = new Map(allOperations.map((operation) => [operation.id, prepared(operation, table, services)]))
  }

  /** Throws if the caller may not, the namespace does not exist, or a schema does not match. */
  admit(operation: Operation, { principal, namespace, params, query, body }: OperationInput): Call<Operation> {
    const { hasNamespace, validateBody, validateQuery } = this.#of(operation)
    const refusal = denied(operation, principal, namespace, this.#services)
    if (refusal) throw refusal
    if (operation.body) check(validateBody, withoutUnset(body), 'body')
    if (operation.query) check(validateQuery, query, 'querystring')
    if (hasNamespace && !this.#services.collections.namespaces.get('', namespace)) throw missingNamespace(namespace)
    return {
      params: hasNamespace ? { ...params, namespace } : params,
      query: query as undefined,
      body: body as undefined,
      principal: principal as Call<Operation>['principal'],
      now: this.#services.clock.now(),
      requestKey: undefined,
      signal: undefined,
      caller: undefined,
      upload: undefined,
    }
  }

  /** Calls the handler of a list, stream, download or connection, which changes nothing. */
  open(operation: Operation, call: Call<Operation>): unknown {
    return this.#of(operation).handler(call)
  }

  list(
    operation: ListedOperation,
    call: Call<Operation>,
  ): { readonly listing: Listing<unknown>; readonly lists: ListRenderer } {
    const known = this.#of(operation)
    known.lists ??= new ListRenderer(operation, known.real)
    return { listing: known.handler(call) as Listing<unknown>, lists: known.lists }
  }

  /** For all other operations: runs the handler while the record has the expected version, and writes the event. */
  async invoke(operation: Operation, call: Call<Operation>, requestId: string): Promise<Outcome> {
    const { handler, guarded, computed } = this.#of(operation)
    computed?.check(call.query)
    let isRecorded: boolean = false
    const uid = uidBefore(this.#services, operation, call.params)
    const accepted = async (answer: unknown): Promise<void> => {
      isRecorded = true
      // With the time of the request, so that events of controllers about this change come later.
      await this.#record(operation, call, { requestId, answer, at: call.now, uid })
      await call.accepted?.(answer)
    }
    const result = await guarded(call, () =>
      withinRecordLimits(this.#services.collections, operation, call.principal, async () =>
        handler({ ...call, accepted }),
      ),
    )
    const [status, value] = result instanceof Answer ? [result.status, result.value] : [operation.status, result]
    const isUnchanged = result instanceof Answer && result.isUnchanged
    if (operation.involves && !isRecorded && !isUnchanged)
      await this.#record(operation, call, { requestId, answer: value, at: this.#services.clock.now(), uid })
    return { status, value: computed ? computed.page(value, call.query) : value }
  }

  /** The change is already made, so a failure is only logged. */
  async #record(
    operation: Operation,
    call: Call<Operation>,
    made: Pick<Parameters<typeof recordChange>[1], 'requestId' | 'answer' | 'at' | 'uid'>,
  ): Promise<void> {
    try {
      await recordChange(this.#services, { operation, ...call, ...made })
    } catch (error) {
      const fields = { requestId: made.requestId, operation: operation.id, actor: call.principal?.name ?? '' }
      this.#services.log.error('failed to record an event', fields, error)
    }
  }

  #of({ id }: Operation): ReturnType<typeof prepared> {
    const known = this.#known.get(id)
    if (!known) throw new Error(`there is no operation ${id}`)
    return known
  }
}

function prepared(operation: Operation, table: Handlers, services: InvokeServices) {
  const { id, path, body = {}, query = {} } = operation
  const real = (selector: string): string => realSelector(services, id, selector)
  return {
    handler: table[id as keyof Handlers] as unknown as AnyHandler,
    hasNamespace: path.includes('{namespace}'),
    validateBody: bodyValidator(body),
    validateQuery: queryValidator(query),
    guarded: versionGuard(operation, services),
    real,
    computed: computedList(operation, real),
    lists: undefined as ListRenderer | undefined,
  }
}

/** Throws an error in the form of Fastify's validation errors. */
function check(validate: Validator, value: unknown, validationContext: string): void {
  if (validate(value)) return
  const { errors: validation } = validate
  throw Object.assign(new Error(`the ${validationContext} is not valid`), { validation, validationContext })
}

/** Removes null fields from the body itself. */
function withoutUnset(body: unknown): unknown {
  if (typeof body === 'object' && body !== null && !Array.isArray(body))
    for (const [name, value] of Object.entries(body))
      if (value === null || value === undefined) delete (body as Record<string, unknown>)[name]
  return body
}

const lists = allOperations
  .filter((operation): operation is ListedOperation => operation.item !== undefined)
  .map((operation) => ({
    operation,
    names: paramNames(operation.path),
    form: new RegExp(`^${operation.path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '([^/]+)')}$`),
  }))

/** The list that a path names, and the parameters of the path. */
export function listAt(path: string): { operation: ListedOperation; params: Record<string, string> } {
  for (const { operation, names, form } of lists) {
    const match = form.exec(path)
    if (!match) continue
    const params = names.map((name, index) => [name, decoded(match[index + 1] as string)])
    return { operation, params: Object.fromEntries(params) }
  }
  throw new ApiError('NotFound', 'Path not found: no such list', { hint: 'See /api/v1/swagger' })
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw new ApiError('BadRequest', 'The path is not a valid URL', { hint: 'Percent-encode special characters' })
  }
}

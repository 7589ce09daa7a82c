// Carries out operations of the table for a legacy request, as their routes would: the same permission, schema, handler
// and event.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { BodyOf, ItemOf, Operation, ParamsOf, QueryOf, ResponseOf } from '../../api/operation.ts'
import { mayCall } from '../../rules/permissions.ts'
import { recordChange } from '../gate/audit.ts'
import { forbidden, unauthorized } from '../gate/authenticate.ts'
import { missingNamespace } from '../gate/namespace.ts'
import { Answer, type Call, type Handlers, type Listing } from '../handlers.ts'
import { refusalOf } from '../http/refusals.ts'
import { validatorCompiler } from '../http/validate.ts'
import type { Services } from '../services.ts'
import { sendDownload } from '../transfer/downloads.ts'
import { openUpload } from '../transfer/uploads.ts'
import { markMade } from './headers.ts'
import { inLegacyWords } from './names.ts'

type AnyHandler = (call: Call<Operation>) => unknown

export interface Input<O extends Operation> {
  readonly params?: Omit<ParamsOf<O>, 'namespace'>
  readonly body?: BodyOf<O>
  readonly query?: QueryOf<O>
  readonly hurry?: AbortSignal
}

/** What a legacy call works with: one request, as its caller. */
export interface Performer {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  run<O extends Operation>(operation: O, input?: Input<O>): Promise<ResponseOf<O>>
  list<O extends Operation>(operation: O): ItemOf<O>[]
  /** The answer is the file itself. */
  download(operation: Operation, params: Readonly<Record<string, string>>): Promise<FastifyReply>
}

export function createPerformers(services: Services, table: Handlers) {
  const validators = new Map<string, ReturnType<typeof validatorCompiler>>()
  const validatorOf = ({ id, method, path, body = {} }: Operation) => {
    const known = validators.get(id) ?? validatorCompiler({ schema: body, method, url: path, httpPart: 'body' })
    validators.set(id, known)
    return known
  }

  return (request: FastifyRequest, reply: FastifyReply): Performer => {
    const { namespace, principal } = request

    const callOf = (operation: Operation, input: Input<Operation>): [AnyHandler, Call<Operation>] => {
      if (!principal) throw unauthorized()
      if (!mayCall(services.roles.roleOf(principal, namespace), operation.allow)) throw forbidden(operation, namespace)
      const isInside = operation.path.includes('{namespace}')
      if (isInside && !services.collections.namespaces.get('', namespace)) throw missingNamespace(namespace)
      const params: Record<string, string> = { ...input.params, ...(isInside && { namespace }) }
      markMade(reply, operation.path, namespace, params)
      const call: Call<Operation> = {
        params,
        query: (operation.query ? (input.query ?? {}) : undefined) as undefined,
        body: checkedBody(operation, input.body) as undefined,
        principal: principal as Call<Operation>['principal'],
        now: services.clock.now(),
        requestKey: undefined,
        signal: undefined,
        caller: undefined,
        hurry: input.hurry,
        upload: operation.isUpload
          ? (openUpload(operation, request, reply, services.uploads) as unknown as undefined)
          : undefined,
      }
      return [table[operation.id as keyof Handlers] as unknown as AnyHandler, call]
    }

    function checkedBody(operation: Operation, body: unknown): unknown {
      if (!operation.body) return undefined
      const value = withoutUnset(body ?? {})
      const validate = validatorOf(operation)
      if (validate(value) === true) return value
      throw Object.assign(new Error('the body is not valid'), {
        validation: (validate as { errors?: unknown }).errors,
        validationContext: 'body',
      })
    }

    const record = (operation: Operation, call: Call<Operation>, answer: unknown): Promise<void> =>
      recordChange(services, { operation, requestId: request.id, ...call, answer }).catch((error: unknown) => {
        const fields = { requestId: request.id, operation: operation.id, actor: principal?.name ?? '' }
        services.log.error('a change could not be recorded as an event', fields, error)
      })

    async function carryOut(operation: Operation, input: Input<Operation>): Promise<[Call<Operation>, unknown]> {
      try {
        const [handler, call] = callOf(operation, input)
        return [call, await handler(call)]
      } catch (error) {
        throw inLegacyWords(operation.id, refusalOf(error))
      }
    }

    return {
      request,
      reply,
      async run(operation, input = {}) {
        const [call, result] = await carryOut(operation, input as Input<Operation>)
        const value = result instanceof Answer ? result.value : result
        if (!(result instanceof Answer && result.isUnchanged)) await record(operation, call, value)
        return value as never
      },
      list(operation) {
        const [handler, call] = callOf(operation, {})
        const { collection, scope, item, visible } = handler(call) as Listing<never>
        const items = collection.view.range(encodeURIComponent(scope)).map(item)
        return visible ? items.filter((each) => visible(each)) : items
      },
      async download(operation, params) {
        const [handler, call] = callOf(operation, { params: params as never })
        return sendDownload(operation, request, reply, services, () => handler(call))
      },
    }
  }
}

function withoutUnset(body: object): object {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))
}

// Calls operations for a legacy request like their routes, with the same permissions, schemas, handlers and events.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { BodyOf, ItemOf, Operation, ParamsOf, QueryOf, ResponseOf } from '../../api/operation.ts'
import { refusalOf } from '../http/refusals.ts'
import type { Listing } from '../lists/listing.ts'
import type { Call } from '../operations/handlers.ts'
import type { ListedOperation, Operations } from '../operations/invoke.ts'
import { type DownloadServices, sendDownload } from '../transfer/downloads.ts'
import { answerSlices } from '../transfer/pieces.ts'
import { openUpload, type Uploads } from '../transfer/uploads.ts'
import { inLegacyWords } from './names.ts'

export interface PerformServices extends DownloadServices {
  readonly uploads: Uploads
}

interface Input<O extends Operation> {
  readonly params?: Omit<ParamsOf<O>, 'namespace'>
  readonly body?: BodyOf<O>
  readonly query?: QueryOf<O>
  readonly expedite?: AbortSignal
}

/** Calls operations for one request, as its caller. */
export interface Performer {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  run<O extends Operation>(operation: O, input?: Input<O>): Promise<ResponseOf<O>>
  list<O extends Operation>(operation: O): Promise<ItemOf<O>[]>
  /** Answers with a file. */
  download(operation: Operation, params: Readonly<Record<string, string>>): Promise<FastifyReply>
}

export function createPerformers(services: PerformServices, operations: Operations) {
  return (request: FastifyRequest, reply: FastifyReply): Performer => {
    const { namespace, principal } = request

    const admit = (operation: Operation, input: Input<Operation>): Call<Operation> => {
      const hasNamespace = operation.path.includes('{namespace}')
      const params = { ...input.params, ...(hasNamespace && { namespace }) } as Record<string, string>
      const query = operation.query ? (input.query ?? {}) : undefined
      const body = operation.body ? { ...(input.body as object | undefined) } : undefined
      // The first call of an operation names the records of the Link header.
      request.legacyParams = { ...params, ...request.legacyParams }
      const upload = operation.isUpload && openUpload(operation, request, reply, services.uploads)
      return {
        ...operations.admit(operation, { principal, namespace, params, query, body }),
        expedite: input.expedite,
        upload: upload as undefined,
      }
    }

    return {
      request,
      reply,
      async run(operation, input = {}) {
        try {
          const call = admit(operation, input as Input<Operation>)
          return (await operations.invoke(operation, call, request.id)).value as never
        } catch (error) {
          throw inLegacyWords(operation.id, refusalOf(error))
        }
      },
      async list(operation) {
        const { listing } = operations.list(operation as unknown as ListedOperation, admit(operation, {}))
        const { collection, scope, item, visible } = listing as Listing<never>
        const items: never[] = []
        const others = answerSlices()
        for (const entry of collection.list(scope)) {
          const each = item(entry)
          if (!visible || visible(each)) items.push(each)
          await others()
        }
        return items
      },
      async download(operation, params) {
        const call = admit(operation, { params: params as never })
        return sendDownload(operation, request, reply, services, () => operations.open(operation, call))
      },
    }
  }
}

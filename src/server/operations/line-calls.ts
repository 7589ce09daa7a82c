// Calls of operations by lines on a connection that agents keep open, instead of HTTP requests: with the same limits,
// validation, handlers, refusals, metrics and log lines.
import { randomUUID } from 'node:crypto'
import { ApiError } from '../../api/errors.ts'
import { allOperations } from '../../api/index.ts'
import { type AgentAnswer, type AgentCall, isCallable } from '../../api/nodes/agent-connection.ts'
import type { Operation } from '../../api/operation.ts'
import type { Principal } from '../../auth/principal.ts'
import { type DeniedServices, denied } from '../gate/authenticate.ts'
import type { RateLimits } from '../gate/limits.ts'
import { type ObserveServices, recordRequest } from '../http/observe.ts'
import { parseText } from '../http/parse-body.ts'
import { logFailure, refusalOf } from '../http/refusals.ts'
import { type Render, renderer } from '../http/render.ts'
import type { Operations } from './invoke.ts'

export interface LineCallServices extends ObserveServices, DeniedServices {
  readonly limits: RateLimits
  /** Only where several servers share the store. */
  readonly staleness?: { readonly lost: AbortSignal; readonly undecided: Promise<void> | undefined } | undefined
}

type Send = (line: string) => void

interface Known {
  readonly operation: Operation
  readonly render: Render
  readonly isCallable: boolean
}

const known: ReadonlyMap<string, Known> = new Map(
  allOperations.map((operation) => [
    operation.id,
    { operation, render: renderer(operation.response), isCallable: isCallable(operation) },
  ]),
)

export class LineCalls {
  readonly #services: LineCallServices
  readonly #operations: () => Operations

  constructor(services: LineCallServices, operations: () => Operations) {
    this.#services = services
    this.#operations = operations
  }

  /** Sends one answer, now or later. Returns undefined for a line that is not a call. */
  take(line: string, principal: Principal, send: Send): Promise<void> | undefined {
    const call = callOf(line)
    return call && this.#answer(call, principal, send)
  }

  async #answer({ id, operation: name, body }: AgentCall, principal: Principal, send: Send): Promise<void> {
    const startMs = performance.now()
    const requestId = randomUUID()
    const found = known.get(name)
    let answer: AgentAnswer
    try {
      const { undecided } = this.#services.staleness ?? {}
      if (undecided) await undecided
      const { operation, render } = this.#admit(name, found, principal)
      const asked = { principal, namespace: '', params: {}, body: body ?? {} }
      const operations = this.#operations()
      const { status, value } = await operations.invoke(operation, operations.admit(operation, asked), requestId)
      answer = { type: 'ANSWER', id, status }
      send(`${JSON.stringify(answer).slice(0, -1)},"body":${render(value)}}\n`)
    } catch (error) {
      answer = this.#refuse(id, error, { requestId, route: found?.operation.path ?? '' })
      send(`${JSON.stringify(answer)}\n`)
    }
    if (found)
      recordRequest(this.#services, {
        requestId,
        principal,
        method: found.operation.method,
        route: found.operation.path,
        operation: found.operation.id,
        status: answer.status,
        tookMs: performance.now() - startMs,
      })
  }

  #admit(name: string, found: Known | undefined, principal: Principal): Known {
    const { limits, staleness } = this.#services
    staleness?.lost.throwIfAborted()
    const rateLimited = limits.charge({ ip: '' }, principal, name)
    if (rateLimited) throw rateLimited
    if (!found) throw new ApiError('NotFound', `Unknown operation "${name.slice(0, 100)}"`, { hint: sameVersion })
    const refusal = denied(found.operation, principal, '', this.#services)
    if (refusal) throw refusal
    if (!found.isCallable)
      throw new ApiError('BadRequest', `Operation ${name} needs an HTTP request`, { hint: sameVersion })
    return found
  }

  #refuse(id: number, error: unknown, fields: { requestId: string; route: string }): AgentAnswer {
    const refusal = refusalOf(error)
    const { code: status } = refusal
    const { retryAfterSeconds } = refusal.options
    logFailure(this.#services.log, refusal, fields)
    const again = retryAfterSeconds !== undefined && { retryAfterSeconds }
    return { type: 'ANSWER', id, status, body: refusal.toStatus(fields.requestId), ...again }
  }
}

const sameVersion = 'Run the same version of agent and server'

function callOf(line: string): AgentCall | undefined {
  try {
    const call = parseText(line) as Partial<AgentCall> | null
    return Number.isSafeInteger(call?.id) && typeof call?.operation === 'string' ? (call as AgentCall) : undefined
  } catch {
    return undefined
  }
}

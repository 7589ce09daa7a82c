// Calling an operation from the page: whether it is under way, what went wrong, field by field.
import { useMutation } from '@tanstack/react-query'
import { ApiError } from '../../src/api/errors.ts'
import type { Operation, ResponseOf } from '../../src/api/operation.ts'
import type { RawInput } from '../../src/client/client.ts'
import { ConnectionError } from '../../src/client/transport.ts'
import { client } from './client.ts'
import { lookAgain } from './session.ts'

export interface Act<O extends Operation> {
  run(input: RawInput): Promise<ResponseOf<O> | undefined>
  readonly isBusy: boolean
  readonly error: unknown
  reset(): void
}

/** A refusal for want of a session opens the login, and leaves everything else as it is. */
export function noticeRefusal(error: unknown): void {
  if (error instanceof ApiError && error.code === 401) void lookAgain()
}

/** The operation's types are checked where a form makes the input: here is one path for all of them. */
export const callOperation = async <O extends Operation>(operation: O, input: RawInput): Promise<ResponseOf<O>> =>
  (await (client.call as (operation: Operation, input: RawInput) => Promise<unknown>)(
    operation,
    input,
  )) as ResponseOf<O>

export function useAct<O extends Operation>(operation: O, onDone?: (answer: ResponseOf<O>) => void): Act<O> {
  const { mutateAsync, isPending, error, reset } = useMutation({
    mutationFn: (input: RawInput) => callOperation(operation, input),
    onSuccess: (answer) => onDone?.(answer),
    onError: noticeRefusal,
  })
  return { run: (input) => mutateAsync(input).catch(() => undefined), isBusy: isPending, error, reset }
}

export interface Told {
  readonly message: string
  readonly hint: string | undefined
  readonly requestId: string | undefined
  /** What is wrong with which field. */
  readonly fields: ReadonlyMap<string, string>
}

export function tellError(error: unknown): Told {
  if (error instanceof ApiError) {
    const fields = new Map(
      (error.options.causes ?? []).map(({ field, message }) => [field.split('.')[0] ?? '', message]),
    )
    return { message: error.message, hint: error.options.hint, requestId: error.requestId, fields }
  }
  const hint = error instanceof ConnectionError ? error.hint : undefined
  return {
    message: error instanceof Error ? error.message : String(error),
    hint,
    requestId: undefined,
    fields: new Map(),
  }
}

// Calling operations from React: an action with what went wrong field by field, and an answer that is no list and cannot
// be watched.
import { useMutation, useQuery } from '@tanstack/react-query'
import { ApiError } from '../../src/api/errors.ts'
import type { Operation, ResponseOf } from '../../src/api/operation.ts'
import type { RawInput } from '../../src/client/client.ts'
import { ConnectionError } from '../../src/client/transport.ts'
import { client } from './client.ts'
import { checkSession } from './session.ts'

interface Action {
  run(input: RawInput): void
  readonly isBusy: boolean
  readonly error: unknown
}

/** A refusal for want of a session opens the login, and leaves everything else as it is. */
export function noticeRefusal(error: unknown): void {
  if (error instanceof ApiError && error.code === 401) void checkSession()
}

/** The operation's types are checked where a form makes the input: here is one path for all of them. */
export const callOperation = async <O extends Operation>(operation: O, input: RawInput): Promise<ResponseOf<O>> =>
  (await (client.call as (operation: Operation, input: RawInput) => Promise<unknown>)(
    operation,
    input,
  )) as ResponseOf<O>

export function useAction<O extends Operation>(operation: O, onDone: (answer: ResponseOf<O>) => void): Action {
  const { mutate, isPending, error } = useMutation({
    mutationFn: (input: RawInput) => callOperation(operation, input),
    onSuccess: onDone,
    onError: noticeRefusal,
  })
  return { run: mutate, isBusy: isPending, error }
}

interface Answer<T> {
  readonly data: T | undefined
  readonly error: unknown
  readonly isPending: boolean
}

/** Asked for once or, where it is measured (charts, counters), every few seconds. */
export function useAnswer<O extends Operation>(operation: O, input: RawInput, everyMs?: number): Answer<ResponseOf<O>> {
  const { data, error, isPending } = useQuery({
    queryKey: [operation.id, input.params, input.query],
    queryFn: ({ signal }) => callOperation(operation, { ...input, signal }),
    ...(everyMs !== undefined && { refetchInterval: everyMs }),
  })
  return { data, error, isPending }
}

interface Problem {
  readonly message: string
  readonly hint: string | undefined
  readonly requestId: string | undefined
  /** What is wrong with which field. */
  readonly fields: ReadonlyMap<string, string>
}

export function problemOf(error: unknown): Problem {
  if (error instanceof ApiError) {
    const fields = new Map(
      (error.options.causes ?? []).map(({ field, message }) => [field.split('.')[0] ?? '', message]),
    )
    return { message: error.message, hint: error.options.hint, requestId: error.requestId, fields }
  }
  return {
    message: error instanceof Error ? error.message : String(error),
    hint: error instanceof ConnectionError ? error.hint : undefined,
    requestId: undefined,
    fields: new Map(),
  }
}

// React hooks for calling operations: useAction for changes, useAnswer for reads that have no watch.
import { useCallback, useMemo, useState, useSyncExternalStore } from 'react'
import { ApiError } from '../../src/api/errors.ts'
import type { Operation, ResponseOf } from '../../src/api/operation.ts'
import type { RawInput } from '../../src/client/client.ts'
import { ConnectionError } from '../../src/client/transport.ts'
import { client } from './client.ts'
import { onReconnect } from './connection.ts'
import { type AnswerState, PolledAnswer } from './polled-answer.ts'
import { checkSession } from './session.ts'

interface Action {
  run(input: RawInput): void
  readonly isBusy: boolean
  readonly error: unknown
}

/** A 401 opens the login dialog over the page. */
export function noticeRefusal(error: unknown): void {
  if (error instanceof ApiError && error.code === 401) void checkSession()
}

/** Forms check the input against the operation's own type. This function accepts any operation, so it casts. */
export const callOperation = async <O extends Operation>(operation: O, input: RawInput): Promise<ResponseOf<O>> =>
  (await (client.call as (operation: Operation, input: RawInput) => Promise<unknown>)(
    operation,
    input,
  )) as ResponseOf<O>

export function useAction<O extends Operation>(operation: O, onDone: (answer: ResponseOf<O>) => void): Action {
  const [state, setState] = useState<Omit<Action, 'run'>>({ isBusy: false, error: undefined })
  const run = async (input: RawInput): Promise<void> => {
    setState({ isBusy: true, error: undefined })
    try {
      onDone(await callOperation(operation, input))
      setState({ isBusy: false, error: undefined })
    } catch (error) {
      noticeRefusal(error)
      setState({ isBusy: false, error })
    }
  }
  return { run: (input) => void run(input), ...state }
}

const answers = new Map<string, PolledAnswer<unknown>>()
const keptMs = 30_000

interface AnswerOptions {
  readonly everyMs?: number | undefined
  /** Skips the request, for example while a form is incomplete. */
  readonly isOff?: boolean
}

/**
 * The answer of a read: fetched when a component first uses it, when the tab becomes visible again, and every
 * `everyMs`.
 */
export function useAnswer<O extends Operation>(
  operation: O,
  input: RawInput,
  options: number | AnswerOptions = {},
): AnswerState<ResponseOf<O>> {
  const { everyMs, isOff = false } = typeof options === 'number' ? { everyMs: options } : options
  const key = JSON.stringify([operation.id, input.params, input.query, input.body])
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key says all that is in the input
  const answer = useMemo(() => {
    const ask = (signal: AbortSignal) => callOperation(operation, { ...input, signal })
    return (answers.get(key) ?? new PolledAnswer(ask, noticeRefusal)) as PolledAnswer<ResponseOf<O>>
  }, [key, operation])
  const subscribe = useCallback(
    (listener: () => void) => {
      if (isOff) return () => undefined
      answers.set(key, answer)
      const leave = answer.subscribe(listener)
      const stopAgain = onReconnect(() => void answer.again(performance.now()))
      const look = (): void => {
        if (!document.hidden) answer.refresh(performance.now())
      }
      look()
      document.addEventListener('visibilitychange', look)
      const timer =
        everyMs === undefined
          ? undefined
          : setInterval(() => document.hidden || void answer.again(performance.now()), everyMs)
      return () => {
        leave()
        stopAgain()
        document.removeEventListener('visibilitychange', look)
        clearInterval(timer)
        setTimeout(() => answer.isUsed || answers.delete(key), keptMs)
      }
    },
    [answer, key, everyMs, isOff],
  )
  return useSyncExternalStore(subscribe, answer.now)
}

/** Refetches every answer of an operation after a change made it stale. */
export function askAgain({ id }: Operation): void {
  for (const [key, answer] of answers) if (JSON.parse(key)[0] === id) void answer.again(performance.now())
}

interface Problem {
  readonly message: string
  readonly hint: string | undefined
  readonly requestId: string | undefined
  /** Messages by request field. */
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

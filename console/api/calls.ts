// React hooks for calling operations: useAction for changes, useAnswer and usePolled for reads that have no watch.
import { useEffect, useRef, useState } from 'react'
import { ApiError } from '../../src/api/errors.ts'
import type { Operation, ResponseOf } from '../../src/api/operation.ts'
import type { RawInput } from '../../src/client/client.ts'
import { ConnectionError } from '../../src/client/transport.ts'
import { client } from './client.ts'
import { onReconnect } from './connection.ts'
import { createListeners } from './listeners.ts'
import { checkSession } from './session.ts'

interface Action {
  run(input: RawInput): void
  readonly isBusy: boolean
  readonly error: unknown
}

/** Checks the session after a 401. If it has ended, the login dialog opens over the page. */
export function handleUnauthorized(error: unknown): void {
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
      handleUnauthorized(error)
      setState({ isBusy: false, error })
    }
  }
  return { run: (input) => void run(input), ...state }
}

interface Answer<T> {
  readonly data: T | undefined
  /** The error of the last attempt, if it failed. The data may then be stale. */
  readonly error: unknown
  /** Whether neither data nor an error has arrived yet. */
  readonly isPending: boolean
}

interface AnswerOptions {
  readonly everyMs?: number
  /** Skips the request, for example while a form is incomplete. */
  readonly isOff?: boolean
}

const stale = createListeners()
/** Fetches the answers on the page again, after a change that they show. */
export const refreshAnswers = stale.notify

const pending = { data: undefined, error: undefined, isPending: true } as const

/** Returns the answer of a read that has no watch. */
export const useAnswer = <O extends Operation>(operation: O, input: RawInput, options: AnswerOptions = {}) =>
  usePolled(
    JSON.stringify([operation.id, input.params, input.query, input.body]),
    (signal) => callOperation(operation, { ...input, signal }),
    options,
  )

/**
 * Returns the answer of `ask`, which is called at first, every `everyMs`, and whenever `key` changes, the tab becomes
 * visible, or the connection is back.
 */
export function usePolled<T>(
  key: string,
  ask: (signal: AbortSignal) => Promise<T>,
  { everyMs, isOff = false }: AnswerOptions = {},
): Answer<T> {
  const [state, setState] = useState<Answer<T> & { readonly key: string }>({ ...pending, key })
  const latest = useRef(ask)
  latest.current = ask
  useEffect(() => {
    if (isOff) return
    let running = new AbortController()
    const refresh = async (): Promise<void> => {
      if (document.hidden) return
      running.abort()
      running = new AbortController()
      const { signal } = running
      try {
        const data = await latest.current(signal)
        if (!signal.aborted) setState({ key, data, error: undefined, isPending: false })
      } catch (error) {
        if (signal.aborted) return
        handleUnauthorized(error)
        setState((before) => ({ key, data: before.key === key ? before.data : undefined, error, isPending: false }))
      }
    }
    const leave = [stale.subscribe(refresh), onReconnect(refresh)]
    document.addEventListener('visibilitychange', refresh)
    const timer = everyMs === undefined ? undefined : setInterval(refresh, everyMs)
    void refresh()
    return () => {
      for (const each of leave) each()
      document.removeEventListener('visibilitychange', refresh)
      clearInterval(timer)
      running.abort()
    }
  }, [key, everyMs, isOff])
  return state.key === key ? state : pending
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

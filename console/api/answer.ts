// An answer that is no list and cannot be watched, in React: asked for once, or, where it is measured (charts, counters),
// every few seconds.
import { useQuery } from '@tanstack/react-query'
import type { Operation, ResponseOf } from '../../src/api/operation.ts'
import type { RawInput } from '../../src/client/client.ts'
import { callOperation } from './act.ts'

export interface Answer<T> {
  readonly data: T | undefined
  readonly error: unknown
  readonly isPending: boolean
}

export function useAnswer<O extends Operation>(operation: O, input: RawInput, everyMs?: number): Answer<ResponseOf<O>> {
  const { data, error, isPending } = useQuery({
    queryKey: [operation.id, input.params, input.query],
    queryFn: ({ signal }) => callOperation(operation, { ...input, signal }),
    ...(everyMs !== undefined && { refetchInterval: everyMs }),
  })
  return { data, error, isPending }
}

// An answer that is no list and cannot be watched, in React. Where it is worked out from records that can be, those are
// watched and it is asked for again when they change; what is measured (charts, counters) is looked at every few seconds.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import type { Operation, ResponseOf } from '../../src/api/operation.ts'
import type { RawInput } from '../../src/client/client.ts'
import { callOperation } from './act.ts'

export interface Answer<T> {
  readonly data: T | undefined
  readonly error: unknown
  readonly isPending: boolean
}

export type When = readonly unknown[] | { readonly everyMs: number } | 'once'

/** `when` it is asked for again: what is live and changes with it, an interval, or never. */
export function useAnswer<O extends Operation>(operation: O, input: RawInput, when: When): Answer<ResponseOf<O>> {
  const queries = useQueryClient()
  const asked = JSON.stringify([operation.id, input.params, input.query])
  const everyMs = typeof when === 'object' && 'everyMs' in when ? when.everyMs : undefined
  const source = Array.isArray(when) ? when : undefined
  const { data, error, isPending } = useQuery({
    queryKey: [asked],
    queryFn: ({ signal }) => callOperation(operation, { ...input, signal }),
    ...(everyMs !== undefined && { refetchInterval: everyMs }),
  })
  useEffect(() => {
    if (source) void queries.invalidateQueries({ queryKey: [asked] })
  }, [queries, asked, source])
  return { data, error, isPending }
}

// The limits of what a namespace stores of each kind. They apply to every request of a person or program, in any API, but
// not to deletions, nor to what nodes and controllers write.
import { ApiError } from '../../api/errors.ts'
import type { Operation } from '../../api/operation.ts'
import type { Principal } from '../../auth/principal.ts'
import { sizeText } from '../../rules/sizes.ts'
import type { Collections } from '../../store/records/collections.ts'
import { recordLimitsOf } from '../../store/records/quotas.ts'
import { type OverLimit, withLimits } from '../../store/shares.ts'

const limitedCallers: ReadonlySet<string> = new Set(['user', 'serviceaccount'] satisfies Principal['kind'][])

export function withinRecordLimits<T>(
  collections: Pick<Collections, 'quotas'>,
  { method }: Pick<Operation, 'method'>,
  principal: Principal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (method === 'DELETE' || !limitedCallers.has(principal?.kind ?? '')) return work()
  return withLimits({ limitsOf: (namespace) => recordLimitsOf(collections, namespace), refusal }, work)
}

/** The kind of a collection's records in errors and in quotas. */
export const wireOf = (collection: string): string => collection.toLowerCase()

function refusal({
  kind: collection,
  namespace,
  exceeded,
  limits,
  records,
  bytes,
  requestedBytes,
}: OverLimit): ApiError {
  const kind = wireOf(collection)
  const amounts = {
    records: [`${records} of ${limits.records} ${kind} stored`, '--records N'],
    bytes: [
      `${sizeText(bytes)} of ${sizeText(limits.bytes)} of ${kind} stored; ${sizeText(requestedBytes)} requested`,
      '--record-size MIB',
    ],
  } as const
  const [amount, option] = amounts[exceeded]
  return new ApiError('Forbidden', `Forbidden: Quota of ${namespace} reached: ${amount}`, {
    kind,
    hint: `Delete some, or ask an administrator to raise the limit: svc3 quota set -n ${namespace} ${option}`,
  })
}

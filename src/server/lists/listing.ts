// The interface of a list: what it shows. Filters, paging, ETag and watch are shared, in lists.ts and watches.ts.
import type { Collection } from '../../store/collection.ts'
import type { Entry, Rev } from '../../store/store.ts'
import type { ExtraChanges } from './derived-changes.ts'

export interface Listing<I> {
  readonly collection: Collection<never>
  readonly scope: string
  readonly item: (entry: Entry<never>) => I
  /** When set: only these are shown to this caller. */
  visible?(item: I): boolean
  /** `visible` depends on the path and the items alone, not on the caller: the list's revision stands for what is shown. */
  readonly isCutByPath?: boolean
  /** Only what lies between these keys, without them: what is outside is not looked at. */
  readonly between?: { readonly after?: string | undefined; readonly before?: string | undefined }
  /** What `visible` depends on besides the items: when this changes, a watch ends and the caller lists again. */
  readonly visibleRev?: () => string
  /** Items show more than their records do: they are rendered for every answer. */
  readonly isDerived?: boolean
  /** When items change without their records: a watch sends those, too. */
  readonly extraChanges?: ExtraChanges
  /** The keys of those that changed so after a revision. Without it, whoever resumes a watch gets all items again. */
  readonly extraAfter?: (rev: Rev, signal: AbortSignal) => Promise<readonly string[]>
}

export function listing<T, I>(
  collection: Collection<T>,
  scope: string,
  item: (entry: Entry<T>) => I,
  visible?: (item: I) => boolean,
  visibleRev?: () => string,
): Listing<I> {
  return {
    collection,
    scope,
    item,
    ...(visible && { visible }),
    ...(visibleRev && { visibleRev }),
  } as unknown as Listing<I>
}

// What a list shows. Filters, paging, ETag and watch are the same for all lists, in lists.ts and watches.ts.
import type { Collection } from '../../store/collection.ts'
import type { Entry, Rev } from '../../store/store.ts'
import type { ExtraChanges } from './derived-changes.ts'

export interface Listing<I> {
  readonly collection: Collection<never>
  readonly scope: string
  readonly item: (entry: Entry<never>) => I
  /** The metadata that the caller may see. Default: that of the record. */
  meta?(entry: Entry<never>): object | undefined
  /** Limits the items to those that the caller may see. */
  visible?(item: I): boolean
  /** `visible` depends only on the path and the items, so the list's revision identifies what is shown. */
  readonly isCutByPath?: boolean
  /** Limits the list to keys between these two, exclusively. Other records are not read. */
  readonly between?: { readonly after?: string | undefined; readonly before?: string | undefined }
  /** The time from which on no item is missing, for kinds of which old ones are deleted. */
  readonly completeSince?: string | undefined
  /** The version of what `visible` depends on besides the items. When it changes, watches end; callers list again. */
  readonly visibleRev?: () => string
  /** Items show more than their records, so they are rendered for every answer. */
  readonly isDerived?: boolean
  /** Reports items that change without their records, for watches. */
  readonly extraChanges?: ExtraChanges
  /** The keys that `extraChanges` reported after a revision. Without this, a resumed watch sends all items again. */
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

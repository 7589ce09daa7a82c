// Records of images and ISOs: a collection for each, over the same content. A record becomes Ready by one
// compare-and-set after all content that it names is stored.
import {
  ApiError,
  alreadyExists,
  type Cause,
  conflict,
  invalid,
  invalidField,
  notFound,
  recordName,
  type Status,
  success,
} from '../../api/errors.ts'
import type { Image } from '../../api/images/images.ts'
import type { ContentStore } from '../../images/content/content.ts'
import { timestamp } from '../../platform/clock.ts'
import { defined } from '../../platform/defined.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { imageNameRule, isImageName } from '../../rules/image-names.ts'
import { type Caller, reasonAgainstChangingImage } from '../../rules/ownership.ts'
import type { Collection } from '../../store/collection.ts'
import { caughtUp, currentRev } from '../../store/records/caught-up.ts'
import type { Collections } from '../../store/records/collections.ts'
import { type ImageRecord, isProtected, isReady } from '../../store/records/fleet-records.ts'
import { isKept, type KeptImageVersion, restoredTo, versionsOf } from '../../store/records/image-versions.ts'
import { type Entry, ignoreLost, isFault, type Store } from '../../store/store.ts'
import { type Listing, listing } from '../lists/listing.ts'
import type { Download } from '../transfer/downloads.ts'
import type { ImageContents } from './contents.ts'
import { imageView, visibleDescription, visibleMeta, visibleVms, vmsText } from './image-view.ts'
import type { ImageUses } from './uses.ts'

interface ImageKind {
  readonly noun: 'images' | 'isos'
  readonly word: 'image' | 'ISO'
}

interface ImageStoreParts extends ImageKind {
  readonly collection: Collection<ImageRecord>
  readonly uses: ImageUses
  readonly contents: ImageContents
  /** The id of this server, if several servers share the records. */
  readonly server?: string | undefined
  /** Resolves when this server has seen what others have written so far. */
  caughtUp?(): Promise<void>
}

export interface RequestContext {
  readonly namespace: string
  readonly caller: Caller
  readonly now: Date
  readonly requestKey: string | undefined
}

export type NewImage = Omit<ImageRecord, 'owner' | 'createdAt' | 'updatedAt' | 'requestKey' | 'sourceNamespace'>
export interface CreatedImage {
  readonly entry: Entry<ImageRecord>
  /** An earlier try of the same request created it. */
  readonly isRepeated: boolean
}

export interface ImageServices {
  readonly collections: Collections
  readonly store: Store
  readonly imageUses: ImageUses
  readonly content: ContentStore
  /** Only where servers share a store. */
  readonly peers?: { readonly servers: { readonly id: string } } | undefined
}

/** The parts that are only needed if servers share a store. */
export function amongServers({
  peers,
  store,
  collections: { vms },
}: Pick<ImageServices, 'peers' | 'store' | 'collections'>): Pick<ImageStoreParts, 'server' | 'caughtUp'> {
  if (!peers) return {}
  return {
    server: peers.servers.id,
    caughtUp: async () => caughtUp(store, [vms.view], await currentRev(store), AbortSignal.timeout(5_000)),
  }
}

export class ImageStore {
  readonly #parts: ImageStoreParts

  constructor(parts: ImageStoreParts) {
    this.#parts = parts
  }

  view(entry: Entry<ImageRecord>, caller: Caller): Image {
    const { noun, uses } = this.#parts
    return imageView(entry, { noun, vms: uses.of(entry.value.name), caller })
  }

  /** Items also change with the VMs that use them. `visibleRev`: see `Roles.revFor`. */
  listed(caller: Caller, visibleRev: (() => string) | undefined): Listing<Image> {
    const { collection, uses } = this.#parts
    return {
      ...listing(collection, '', (entry) => this.view(entry, caller)),
      isDerived: true,
      meta: ({ value }: Entry<ImageRecord>) => visibleMeta(value, caller),
      // A caller with a new role sees more of images that have not changed.
      ...(visibleRev && { visibleRev }),
      extraChanges: (notify) => uses.subscribe((names) => notify(names.map((name) => collection.key('', name)))),
    }
  }

  existing(name: string): Entry<ImageRecord> {
    const { collection, noun } = this.#parts
    const entry = collection.get('', name)
    if (entry) return entry
    throw notFound(noun, name)
  }

  nameProblems(name: string, field = 'name'): Cause[] {
    if (isImageName(name)) return []
    const message = `${field} "${name.slice(0, 100)}" is invalid: ${imageNameRule}`
    return [invalidField(field, message)]
  }

  /** Refuses invalid fields, and a name that another request has taken. */
  refuse(causes: readonly Cause[], name: string, requestKey: string | undefined): void {
    if (causes.length > 0) throw invalid(this.#parts.noun, causes, 'Correct the fields in details.causes')
    const found = this.#parts.collection.get('', name)
    if (found && !isOf(found, requestKey)) throw this.#taken(found.value)
  }

  async create(record: NewImage, { namespace, caller, now, requestKey }: RequestContext): Promise<CreatedImage> {
    const { collection, server } = this.#parts
    const at = timestamp(now)
    const complete: ImageRecord = {
      ...record,
      owner: caller.name,
      createdAt: at,
      updatedAt: at,
      sourceNamespace: namespace,
      ...(requestKey !== undefined && { requestKey }),
      ...(record.sourceType === 'userUpload' && server !== undefined && { server }),
    }
    try {
      return { entry: await collection.create('', record.name, complete), isRepeated: false }
    } catch (error) {
      const found = collection.get('', record.name)
      if (!isFault(error, 'AlreadyExists') || !found) throw error
      // A repeated upload is refused while its first try runs. A capture or a pull continues without its request.
      const isUploading = found.value.state === 'Updating' && !found.value.capture && !found.value.pull
      if (isOf(found, requestKey) && !isUploading) return { entry: found, isRepeated: true }
      throw this.#taken(found.value)
    }
  }

  async copy(
    from: string,
    to: { name: string; description: string | undefined },
    context: RequestContext,
  ): Promise<CreatedImage> {
    const { collection, contents, noun } = this.#parts
    this.refuse(this.nameProblems(to.name), to.name, context.requestKey)
    const source = this.existing(from).value
    if (!isReady(source))
      throw this.#conflict(from, `is ${source.state} and cannot be copied`, 'Wait until it is Ready')
    const { architecture, os, sizeBytes, recipe, content, spaceUsedBytes, warning } = source
    const created = await this.create(
      {
        name: to.name,
        description:
          to.description ??
          `Copied from ${visibleDescription(source.description, context.caller) || source.name}`.slice(0, 1_024),
        architecture,
        sizeBytes,
        ...defined({ os, recipe, content, spaceUsedBytes, warning }),
        source: source.name,
        sourceType: 'local',
        ...(noun === 'images' && { parent: { image: source.name, version: source.version ?? 1 } }),
      },
      context,
    )
    failpoint('copy.recorded')
    // The content exists as long as the source does. If that was deleted, the collector may have deleted its content.
    // Content of another server is fetched, because the collector of that server may delete it.
    const isHeld = content === undefined || (!contents.isShared && collection.get('', from)?.value.content === content)
    const undo = (): Promise<unknown> => collection.delete(created.entry).catch(ignoreLost)
    const hold = (digest: string): Promise<boolean> =>
      contents.hold(digest).catch(async (error: unknown) => {
        await undo()
        throw error
      })
    if (isHeld || (await hold(content))) return created
    await undo()
    throw this.#conflict(from, 'was deleted in the meantime, or some of its content is lost', 'Upload it again')
  }

  describe(name: string, description: string, caller: Caller, now: Date): Promise<Entry<ImageRecord>> {
    return this.change(this.existing(name), (record) => {
      assertMayChange(this.#parts.noun, record, caller, 'change its description')
      return { ...record, description, updatedAt: timestamp(now) }
    })
  }

  /** Only administrators may change or delete a protected image. */
  protect(name: string, isOn: boolean, now: Date): Promise<Entry<ImageRecord>> {
    return this.change(this.existing(name), (record) => ({ ...record, protected: isOn, updatedAt: timestamp(now) }))
  }

  /** Makes an earlier version the next one. VMs keep the content that they were deployed from. */
  async restore(name: string, version: number, caller: Caller, now: Date): Promise<Entry<ImageRecord>> {
    const { contents } = this.#parts
    const entry = this.existing(name)
    const { content } = this.#restorable(entry.value, version, caller)
    // The collector keeps this content, but it may be lost in other ways.
    if (content !== undefined && !(await contents.hold(content)))
      throw this.#conflict(name, `has lost content of version ${version}`, 'Choose another version, or upload it again')
    return this.change(entry, (record) => restoredTo(record, this.#restorable(record, version, caller), timestamp(now)))
  }

  #restorable(record: ImageRecord, version: number, caller: Caller): KeptImageVersion {
    const { name } = record
    assertMayChange(this.#parts.noun, record, caller, 'restore it')
    if (!isReady(record))
      throw this.#conflict(name, `is ${record.state} and cannot be restored`, 'Wait until it is Ready')
    const versions = versionsOf(record)
    const found = versions.find((each) => each.version === version)
    if (found && isKept(found)) return found
    const available = versions.filter(isKept).map((each) => each.version)
    const hint =
      available.length > 0 ? `Choose one of ${available.join(', ')}` : 'It has no earlier version whose content is kept'
    if (version === (record.version ?? 1)) throw this.#conflict(name, `is at version ${version} now`, hint)
    throw this.#conflict(
      name,
      found ? `no longer has the content of version ${version}` : `has no version ${version}`,
      hint,
    )
  }

  async remove(name: string, caller: Caller): Promise<Status> {
    const { collection, uses, noun } = this.#parts
    assertMayChange(noun, this.existing(name).value, caller, 'delete it')
    // Another server may just have written a VM that uses it.
    await this.#parts.caughtUp?.()
    await collection.change(collection.key('', name), () => {
      const entry = this.existing(name)
      assertMayChange(noun, entry.value, caller, 'delete it')
      const users = uses.of(name)
      if (users.length > 0) {
        const hint = 'Delete these VMs first: svc3 vm delete NAME -n NAMESPACE'
        throw this.#conflict(name, `is used by ${vmsText(visibleVms(users, caller))}`, hint)
      }
      // Deleting the record ends a pull or a save. During a commit, a VM is being written to the image.
      const isEnded = entry.value.pull !== undefined || entry.value.capture?.kind === 'save'
      if (entry.value.state === 'Updating' && !isEnded)
        throw this.#conflict(name, 'is being written', 'Wait until it is Ready or Failed')
      return null
    })
    return success(`${recordName(noun, name)} deleted`, { kind: noun, name })
  }

  async download(name: string, format: 'raw' | 'qcow2' = 'raw'): Promise<Download> {
    const { contents } = this.#parts
    const { value } = this.existing(name)
    const { content, sizeBytes } = value
    if (!isReady(value)) throw this.#conflict(name, `is ${value.state}`, 'Wait until it is Ready')
    if (content === undefined)
      throw this.#conflict(
        name,
        'is built on the nodes and has no file on the server',
        'Save a VM of it as a new image, then download that',
      )
    const requireAll = (): Promise<void> => contents.requireDisk(content)
    if (format === 'qcow2') {
      const { bytes, range } = await contents.openQcow2(content)
      const file = name.endsWith('.qcow2') ? name : `${name}.qcow2`
      const read: Download['read'] = (from, to, signal) => range(from, to - from, signal)
      return { name: file, bytes, tag: `${content}-qcow2`, read, requireAll }
    }
    const read: Download['read'] = (start, end, signal) => contents.read(content, { start, end }, signal)
    const nextData = (offset: number): Promise<number> => contents.nextData(content, offset)
    return { name, bytes: sizeBytes, tag: content, read, requireAll, nextData }
  }

  /** Throws Conflict if the record was deleted and created again. */
  change(entry: Entry<ImageRecord>, next: (record: ImageRecord) => ImageRecord): Promise<Entry<ImageRecord>> {
    const { name, createdAt } = entry.value
    return this.#parts.collection.change(entry.key, () => {
      const { value } = this.existing(name)
      if (value.createdAt !== createdAt)
        throw this.#conflict(name, 'was replaced in the meantime', 'Reload and try again')
      return next(value)
    })
  }

  /** Deletes the record of failed work. */
  async forget({ key, value: { createdAt } }: Entry<ImageRecord>): Promise<void> {
    await this.#parts.collection.change(key, (record) =>
      record?.createdAt === createdAt && !isReady(record) ? null : undefined,
    )
  }

  #conflict(name: string, what: string, hint: string): ApiError {
    return conflict(this.#parts.noun, name, what, hint)
  }

  #taken({ name, state }: ImageRecord): ApiError {
    const { noun, word } = this.#parts
    const isBeingWritten = state === 'Updating'
    const hint = isBeingWritten
      ? `Another request is writing it; choose another name`
      : `Choose another name, or delete the ${word} first`
    return alreadyExists(noun, name, { hint })
  }
}

/**
 * Refuses callers who may not change an image or ISO. `change` completes "only administrators may …", and `instead` says
 * what the caller can do without the permission.
 */
export function assertMayChange(
  noun: ImageKind['noun'],
  record: ImageRecord,
  caller: Caller,
  change: string,
  instead = `work on a copy: svc3 ${noun === 'images' ? 'image' : 'iso'} copy ${record.name} NEW_NAME`,
): void {
  const { name, owner, sourceNamespace } = record
  const image = { owner, sourceNamespace, isProtected: noun === 'images' && isProtected(record) }
  const reason = reasonAgainstChangingImage(caller, image)
  if (!reason) return
  const word = noun === 'images' ? 'image' : 'ISO'
  const { why, whom } = refusals[reason]
  throw new ApiError('Forbidden', `Forbidden: ${word} ${name} ${why} may ${change}`, {
    kind: noun,
    name,
    hint: `Ask ${whom}, or ${instead}`,
  })
}

const refusals = {
  protected: { why: 'is protected; only administrators', whom: 'a cluster administrator' },
  foreign: {
    why: 'was made in another namespace; only its owner, people of that namespace and administrators',
    whom: 'its owner or a cluster administrator',
  },
} as const

const isOf = ({ value }: Entry<ImageRecord>, requestKey: string | undefined): boolean =>
  requestKey !== undefined && value.requestKey === requestKey

/**
 * Deletes records of uploads whose server died, because their files are lost. A server does this for itself when it
 * starts, and the leader for servers that do not return.
 */
export async function forgetUploads(
  { images, isos }: Pick<Collections, 'images' | 'isos'>,
  isRemoved: (server: string | undefined) => boolean,
): Promise<void> {
  for (const collection of [images, isos]) {
    for (const entry of collection.list()) {
      const { state, sourceType, content, server } = entry.value
      if (state === 'Updating' && sourceType === 'userUpload' && content === undefined && isRemoved(server))
        await collection.delete(entry).catch(ignoreLost)
    }
  }
}

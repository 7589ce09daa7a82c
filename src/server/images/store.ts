// Records of images and ISOs: a collection for each, over the same content. A record becomes Ready by one
// compare-and-set after all content that it names is stored, so it is never half there.
import {
  ApiError,
  alreadyExists,
  type Cause,
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
import { failpoint } from '../../platform/failpoint.ts'
import { imageNameRule, isImageName } from '../../rules/image-names.ts'
import { type Caller, mayCommitTo, reasonAgainstDeletingImage } from '../../rules/ownership.ts'
import type { Collection } from '../../store/collection.ts'
import { caughtUp, currentRev } from '../../store/records/caught-up.ts'
import type { Collections } from '../../store/records/collections.ts'
import { type ImageRecord, isProtected, isReady } from '../../store/records/fleet-records.ts'
import { isKept, type KeptImageVersion, restoredTo, versionsOf } from '../../store/records/image-versions.ts'
import { type Entry, ignoreLost, isFault, type Store } from '../../store/store.ts'
import { type Listing, listing } from '../lists/listing.ts'
import type { Download } from '../transfer/downloads.ts'
import type { ImageContents } from './contents.ts'
import { seenVms, shownDescription, shownImage, vmsText } from './shown-image.ts'
import type { ImageUses } from './uses.ts'

interface ImageKind {
  readonly noun: 'images' | 'isos'
  /** In messages. */
  readonly word: 'image' | 'ISO'
  /** The command of the command line. */
  readonly command: 'image' | 'iso'
}

export interface ImageStoreParts extends ImageKind {
  readonly collection: Collection<ImageRecord>
  readonly uses: ImageUses
  readonly contents: ImageContents
  /** The id of this one, where several servers share the records. */
  readonly server?: string | undefined
  /** Resolves when this server has seen what others have written until now. */
  caughtUp?(): Promise<void>
}

/** Who asks, from where, when, and by which request. */
export interface RequestContext {
  readonly namespace: string
  readonly caller: Caller
  readonly now: Date
  readonly requestKey: string | undefined
}

export type NewImage = Omit<ImageRecord, 'owner' | 'createdAt' | 'updatedAt' | 'requestKey' | 'sourceNamespace'>
export interface Made {
  readonly entry: Entry<ImageRecord>
  /** The same request had made it before. */
  readonly isRepeated: boolean
}

export interface ImageServices {
  readonly collections: Collections
  readonly store: Store
  /** Which VMs use which image. */
  readonly imageUses: ImageUses
  readonly content: ContentStore
  /** Only where servers share a store. */
  readonly peers?: { readonly servers: { readonly id: string } } | undefined
}

/** What an image store needs to know where other servers change the same records. */
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

  shown(entry: Entry<ImageRecord>, caller: Caller): Image {
    const { noun, uses } = this.#parts
    return shownImage(entry, { noun, vms: uses.of(entry.value.name), caller })
  }

  /** Also notifies when the users of one change, which its record does not show. `rolesRev`: see Roles. */
  listed(caller: Caller, rolesRev: () => string): Listing<Image> {
    const { collection, uses } = this.#parts
    return {
      ...listing(collection, '', (entry) => this.shown(entry, caller)),
      isDerived: true,
      // Whoever gets into a namespace sees more of images that have not changed.
      ...(caller.roleIn(undefined) !== 'admin' && { visibleRev: rolesRev }),
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

  /** Throws what can never be right, and a name that is taken by another request than this one. */
  refuse(causes: readonly Cause[], name: string, requestKey: string | undefined): void {
    if (causes.length > 0) throw invalid(this.#parts.noun, causes, 'Correct the fields in details.causes')
    const found = this.#parts.collection.get('', name)
    if (found && !isOf(found, requestKey)) throw this.#taken(found.value)
  }

  /** Names are unique by the key of the record, whoever else creates one at the same time. */
  async create(record: NewImage, { namespace, caller, now, requestKey }: RequestContext): Promise<Made> {
    const { collection, server } = this.#parts
    const at = timestamp(now)
    const whole: ImageRecord = {
      ...record,
      owner: caller.name,
      createdAt: at,
      updatedAt: at,
      sourceNamespace: namespace,
      ...(requestKey !== undefined && { requestKey }),
      ...(record.sourceType === 'userUpload' && server !== undefined && { server }),
    }
    try {
      return { entry: await collection.create('', record.name, whole), isRepeated: false }
    } catch (error) {
      const found = collection.get('', record.name)
      if (!isFault(error, 'AlreadyExists') || !found) throw error
      // Being taken in by this server: its request is still running. A capture or a pull continues by itself.
      const isUploading = found.value.state === 'Updating' && !found.value.capture && !found.value.pull
      if (isOf(found, requestKey) && !isUploading) return { entry: found, isRepeated: true }
      throw this.#taken(found.value)
    }
  }

  async copy(
    from: string,
    to: { name: string; description: string | undefined },
    asked: RequestContext,
  ): Promise<Made> {
    const { collection, contents, noun } = this.#parts
    this.refuse(this.nameProblems(to.name), to.name, asked.requestKey)
    const source = this.existing(from).value
    if (!isReady(source))
      throw this.#conflict(from, `is ${source.state} and cannot be copied`, 'Wait until it is Ready')
    const { architecture, os, sizeBytes, recipe, content, spaceUsedBytes, warning } = source
    const made = await this.create(
      {
        name: to.name,
        description:
          to.description ??
          `Copied from ${shownDescription(source.description, asked.caller) || source.name}`.slice(0, 1_024),
        architecture,
        ...(os && { os }),
        sizeBytes,
        ...(recipe !== undefined && { recipe }),
        ...(content !== undefined && { content }),
        ...(spaceUsedBytes !== undefined && { spaceUsedBytes }),
        ...(warning !== undefined && { warning }),
        source: source.name,
        sourceType: 'local',
        ...(noun === 'images' && { parent: { image: source.name, version: source.version ?? 1 } }),
      },
      asked,
    )
    failpoint('copy.recorded')
    // While the source is there, its content is. Had it gone meanwhile, the collector might have been quicker than we.
    // What is on the disk of another server is brought here first, where nobody else's collector can take it.
    const isHeld = content === undefined || (!contents.isShared && collection.get('', from)?.value.content === content)
    const takeBack = (): Promise<unknown> => collection.delete(made.entry).catch(ignoreLost)
    const hold = (digest: string): Promise<boolean> =>
      contents.hold(digest).catch(async (error: unknown) => {
        await takeBack()
        throw error
      })
    if (isHeld || (await hold(content))) return made
    await takeBack()
    throw this.#conflict(from, 'was deleted in the meantime, or some of its content is lost', 'Upload it again')
  }

  describe(name: string, description: string, now: Date): Promise<Entry<ImageRecord>> {
    return this.change(this.existing(name), (record) => ({ ...record, description, updatedAt: timestamp(now) }))
  }

  /** `isProtected`: only administrators delete it or commit to it. */
  protect(name: string, isOn: boolean, now: Date): Promise<Entry<ImageRecord>> {
    return this.change(this.existing(name), (record) => ({ ...record, protected: isOn, updatedAt: timestamp(now) }))
  }

  /** What an earlier version was becomes the next one. VMs keep what they were deployed from. */
  async restore(name: string, version: number, caller: Caller, now: Date): Promise<Entry<ImageRecord>> {
    const { contents } = this.#parts
    const entry = this.existing(name)
    const { content } = this.#restorable(entry.value, version, caller)
    // As long as its record keeps it, the collector does; it may have been lost otherwise, or before there were kept versions.
    if (content !== undefined && !(await contents.hold(content)))
      throw this.#conflict(name, `has lost content of version ${version}`, 'Choose another version, or upload it again')
    return this.change(entry, (record) => restoredTo(record, this.#restorable(record, version, caller), timestamp(now)))
  }

  #restorable(record: ImageRecord, version: number, caller: Caller): KeptImageVersion {
    const { name } = record
    if (!mayCommitTo(caller, { isProtected: isProtected(record) })) throw protectedImage(name, 'restore it')
    if (!isReady(record))
      throw this.#conflict(name, `is ${record.state} and cannot be restored`, 'Wait until it is Ready')
    const versions = versionsOf(record)
    const found = versions.find((each) => each.version === version)
    if (found && isKept(found)) return found
    const kept = versions.filter(isKept).map((each) => each.version)
    const hint =
      kept.length > 0 ? `Choose one of ${kept.join(', ')}` : 'It has no earlier version whose content is kept'
    if (version === (record.version ?? 1)) throw this.#conflict(name, `is at version ${version} now`, hint)
    throw this.#conflict(
      name,
      found ? `no longer has the content of version ${version}` : `has no version ${version}`,
      hint,
    )
  }

  async remove(name: string, caller: Caller): Promise<Status> {
    const { collection, uses, noun } = this.#parts
    this.#assertMayRemove(this.existing(name).value, caller)
    // A VM that another server has just written uses it, too.
    await this.#parts.caughtUp?.()
    await collection.change(collection.key('', name), () => {
      const entry = this.existing(name)
      this.#assertMayRemove(entry.value, caller)
      const users = uses.of(name)
      if (users.length > 0) {
        const hint = 'Delete these VMs first: svc3 vm delete NAME -n NAMESPACE'
        throw this.#conflict(name, `is used by ${vmsText(seenVms(users, caller))}`, hint)
      }
      // A pull and a save end when their record does; a commit would leave a VM that is being written into nothing.
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

  /** Changes a record until it succeeds, as long as it is the same one. */
  change(entry: Entry<ImageRecord>, next: (record: ImageRecord) => ImageRecord): Promise<Entry<ImageRecord>> {
    const { name, createdAt } = entry.value
    return this.#parts.collection.change(entry.key, () => {
      const { value } = this.existing(name)
      if (value.createdAt !== createdAt)
        throw this.#conflict(name, 'was replaced in the meantime', 'Reload and try again')
      return next(value)
    })
  }

  /** Rolls back what was not finished. */
  async forget({ key, value: { createdAt } }: Entry<ImageRecord>): Promise<void> {
    await this.#parts.collection.change(key, (record) =>
      record?.createdAt === createdAt && !isReady(record) ? null : undefined,
    )
  }

  #assertMayRemove(record: ImageRecord, caller: Caller): void {
    const { noun, word } = this.#parts
    const { name, owner, sourceNamespace } = record
    const image = { owner, sourceNamespace, isProtected: noun === 'images' && isProtected(record) }
    const reason = reasonAgainstDeletingImage(caller, image)
    if (!reason) return
    if (reason === 'protected') throw protectedImage(name, 'delete it')
    const who = 'only its owner, people of that namespace and administrators'
    throw new ApiError('Forbidden', `Forbidden: ${word} ${name} was made in another namespace; ${who} may delete it`, {
      kind: noun,
      name,
      hint: 'Ask its owner or a cluster administrator',
    })
  }

  #conflict(name: string, what: string, hint: string): ApiError {
    const { noun } = this.#parts
    return new ApiError('Conflict', `${recordName(noun, name)} ${what}`, { kind: noun, name, hint })
  }

  #taken({ name, state }: ImageRecord): ApiError {
    const { noun, word } = this.#parts
    const isWritten = state === 'Updating'
    const hint = isWritten
      ? `Another request is writing it; choose another name`
      : `Choose another name, or delete the ${word} first`
    return alreadyExists(noun, name, { hint })
  }
}

export const protectedImage = (name: string, what: 'delete it' | 'commit to it' | 'restore it'): ApiError =>
  new ApiError('Forbidden', `Forbidden: image ${name} is protected; only administrators may ${what}`, {
    kind: 'images',
    name,
    hint: `Ask a cluster administrator, or work on a copy: svc3 image copy ${name} NEW_NAME`,
  })

const isOf = ({ value }: Entry<ImageRecord>, requestKey: string | undefined): boolean =>
  requestKey !== undefined && value.requestKey === requestKey

/**
 * What a server that died was about to take in: its file is gone with it. A server does this for itself before it takes
 * requests; for one that does not come back, the others do.
 */
export async function forgetUploads(
  { images, isos }: Pick<Collections, 'images' | 'isos'>,
  isGone: (server: string | undefined) => boolean,
): Promise<void> {
  for (const collection of [images, isos]) {
    for (const entry of collection.list()) {
      const { state, sourceType, content, server } = entry.value
      if (state === 'Updating' && sourceType === 'userUpload' && content === undefined && isGone(server))
        await collection.delete(entry).catch(ignoreLost)
    }
  }
}

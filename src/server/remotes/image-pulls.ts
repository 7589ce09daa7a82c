// Pulls images and ISOs in the background: fetches what a record names from a remote, stores it as content, and makes
// the record Ready, or Failed with the reason. A pull resumes after a restart.
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import type * as t from 'typebox'
import { ApiError, badRequest } from '../../api/errors.ts'
import type { RemoteItems } from '../../api/images/image-operations.ts'
import type { Image } from '../../api/images/images.ts'
import type { Principal } from '../../auth/principal.ts'
import { callerOf, type Roles } from '../../auth/roles.ts'
import { WrongContentError } from '../../images/content/content.ts'
import { DiskFullError, temporaryName } from '../../images/content/temporary-files.ts'
import { BadDiskError } from '../../images/qcow2/header.ts'
import { RegistryError } from '../../oci/artifact/errors.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import { failpoint } from '../../platform/failpoint.ts'
import type { Log } from '../../platform/log.ts'
import { isImageName } from '../../rules/image-names.ts'
import { diskSize } from '../../rules/sizes.ts'
import type { ImageRecord, PullRecord, RegistryPull, RemotePull } from '../../store/records/fleet-records.ts'
import type { Entry } from '../../store/store.ts'
import { Answer } from '../http/answer.ts'
import type { ImportOptions } from '../images/contents.ts'
import { type Intake, takeIn } from '../images/intake.ts'
import { imageKinds, type KindServices } from '../images/kinds.ts'
import type { NewImage } from '../images/store.ts'
import type { Uploads } from '../transfer/uploads.ts'
import { RemoteError } from './http.ts'
import type { RegistryServices } from './registries.ts'
import { isFromRegistry, registryPullOf, takeFrom, takeFromRegistry } from './registry-pulls.ts'
import type { Remotes } from './remotes.ts'
import type { ListedItem, RemoteKind } from './source.ts'

interface OfferServices {
  readonly remotes: Remotes
  /** Aborted when pending requests have to end. */
  readonly ending: AbortSignal
}
export interface BeginPullServices extends KindServices, OfferServices, Omit<RegistryServices, 'collections'> {
  readonly roles: Roles
}
interface PullServices extends KindServices, OfferServices, Omit<RegistryServices, 'collections'> {
  readonly uploads: Uploads
  /** Holds partial files, which survive a restart. */
  readonly partialFolder: string
  readonly clock: Clock
  readonly log: Log
}

interface PullCall {
  readonly namespace: string
  readonly body: { readonly name?: string; readonly description?: string }
  readonly principal: Principal
  readonly now: Date
  readonly requestKey: string | undefined
}

export async function listOffers(services: OfferServices, kind: RemoteKind): Promise<t.Static<typeof RemoteItems>> {
  const { offers, unavailable } = await services.remotes.offers(kind, services.ending)
  const [first] = unavailable
  if (first && offers.length === 0)
    throw new ApiError('ServiceUnavailable', first.message, {
      hint: 'Try again later, or ask the operator of the server',
      retryAfterSeconds: 10,
    })
  const items = offers.map(({ name, item: { bytes, type } }) => ({ name, size: diskSize(bytes), type }))
  return { items, ...(unavailable.length > 0 && { unavailable: [...unavailable] }) }
}

/** Writes the record, from which the controller pulls. `wanted`: a name of the list, or a reference of a registry. */
export async function beginPull(
  services: BeginPullServices,
  kind: RemoteKind,
  wanted: string,
  { namespace, body, principal, now, requestKey }: PullCall,
): Promise<Answer<Image>> {
  const { store } = imageKinds(services)[kind]
  const caller = callerOf(services.roles, principal)
  if (body.name !== undefined) store.refuse(store.nameProblems(body.name), body.name, requestKey)
  const isReference = kind === 'image' && isFromRegistry(services, wanted)
  const found = isReference
    ? await registryPullOf(services, wanted, namespace)
    : await remotePullOf(services, kind, wanted)
  const { name = found.name, description = found.description } = body
  if (!isImageName(name)) throw nameless(name)
  const context = { namespace, caller, now, requestKey }
  const { entry, isRepeated } = await store.create({ ...found, name, description }, context)
  return new Answer(202, store.view(entry, caller), isRepeated)
}

async function remotePullOf({ remotes, ending }: OfferServices, kind: RemoteKind, wanted: string): Promise<NewImage> {
  const { remote, item } = await remotes.find(kind, wanted, ending)
  const { firmware, os } = item
  return {
    name: item.name,
    description: item.description ?? '',
    architecture: item.type,
    ...(os && { os }),
    sizeBytes: item.bytes,
    state: 'Updating',
    progress: { percent: 0, bytes: 0 },
    source: `${remote}/${item.name}`,
    sourceType: 'remote',
    pull: { remote, item: item.name, bytes: item.bytes, sha256: item.sha256, ...(firmware && { firmware }) },
  }
}

const nameless = (name: string): ApiError => {
  const message = `"${name.slice(0, 100)}" is not a valid name here: specify name`
  return badRequest([{ field: 'name', reason: 'FieldValueRequired', message }], 'Send {"name": "NAME"}')
}

const prefix = 'pull-'

export async function openPartialFolder(folder: string): Promise<string> {
  await fs.mkdir(folder, { recursive: true, mode: 0o700 })
  return folder
}

/** Depends on the record and not only on its name, so that a new record of the same name starts a new download. */
const fileOf = (folder: string, kind: RemoteKind, { name, createdAt, pull }: ImageRecord): string => {
  const stamp = createHash('sha256')
    .update(JSON.stringify([kind, name, createdAt, pull?.sha256]))
    .digest('hex')
  return path.join(folder, `${prefix}${stamp.slice(0, 32)}`)
}

export function createPulls(services: PullServices) {
  const { uploads, clock, log, remotes, partialFolder } = services
  const kinds = imageKinds(services)

  async function pullOnce(kind: RemoteKind, entry: Entry<ImageRecord>, pull: PullRecord, signal: AbortSignal) {
    const { store, take } = kinds[kind]
    const file = fileOf(partialFolder, kind, entry.value)
    // Holds off the collector once content is stored.
    using held = new DisposableStack()
    const from = 'reference' in pull ? fromRegistry(pull) : fromRemote(pull)
    const firmware = 'firmware' in pull ? pull.firmware : undefined
    failpoint('pull.began')
    await takeIn(services, { store, entry, signal, firmware, stored: () => failpoint('pull.stored'), take: from })

    function fromRegistry(registry: RegistryPull): Intake['take'] {
      held.use(uploads.hold())
      return (options) => takeFromRegistry(services, registry, options)
    }

    function fromRemote({ remote, item: name, bytes, sha256 }: RemotePull): Intake['take'] {
      const source = remotes.source(remote)
      if (!source) throw new RemoteError(`Remote "${remote}" is no longer in config.json`, false)
      const item: ListedItem = { kind, name, type: entry.value.architecture, bytes, sha256 }
      return (options) =>
        source.fetch(item, {
          file,
          signal,
          progress: options.progress,
          waits: options.waits,
          take: () => takeFile(options),
          takeFrom(registry, digest) {
            held.use(uploads.hold())
            return takeFrom(registry, digest, services, options)
          },
        })
    }

    /** Works on a second link to the file, so that the download is kept if this is interrupted. */
    async function takeFile(options: ImportOptions) {
      failpoint('pull.fetched')
      held.use(uploads.hold())
      const second = await temporaryName(uploads.folder)
      await fs.link(file, second)
      const progress: ImportOptions['progress'] = ({ percent, bytes }) =>
        options.progress({ percent: 70 + Math.floor(percent * 0.3), bytes })
      try {
        return await take(second, { ...options, progress })
      } finally {
        await fs.rm(second, { force: true })
      }
    }
  }

  return {
    async pull(kind: RemoteKind, entry: Entry<ImageRecord>, signal: AbortSignal): Promise<void> {
      const { name, pull } = entry.value
      if (!pull) return
      try {
        await pullOnce(kind, entry, pull, signal)
        log.info('pulled', { kind, name })
      } catch (error) {
        // The server stops, or the record was deleted.
        if (signal.aborted) return
        const reason = reasonOf(error)
        if (reason === unexpected) log.error('a pull failed', { kind, name }, error)
        else log.warn('a pull failed', { kind, name, problem: reason })
        // The partial file is removed first, because a full disk has no room for the record either.
        await fs.rm(fileOf(partialFolder, kind, entry.value), { force: true })
        const failed = ({ pull: _, progress: __, ...record }: ImageRecord): ImageRecord => ({
          ...record,
          state: 'Failed',
          errorMessage: reason,
          updatedAt: timestamp(clock.now()),
        })
        await kinds[kind].store.change(entry, failed).catch(ifGone)
      }
      await fs.rm(fileOf(partialFolder, kind, entry.value), { force: true })
    },

    async clean(wanted: readonly { readonly kind: RemoteKind; readonly entry: Entry<ImageRecord> }[]): Promise<void> {
      const wantedFiles = new Set(
        wanted.map(({ kind, entry }) => path.basename(fileOf(partialFolder, kind, entry.value))),
      )
      for (const name of await fs.readdir(partialFolder))
        if (name.startsWith(prefix) && !wantedFiles.has(name))
          await fs.rm(path.join(partialFolder, name), { force: true })
    },
  }
}

function ifGone(error: unknown): void {
  if (!(error instanceof ApiError)) throw error
}

const explained = [RemoteError, RegistryError, WrongContentError, BadDiskError, ApiError]

const unexpected = 'The server failed during the pull; see the server log'

/** Returns the message for people, which has no details of unexpected errors. */
function reasonOf(error: unknown): string {
  if (error instanceof DiskFullError) return 'The disk of the server is full; nothing was kept'
  if (explained.some((type) => error instanceof type)) return (error as Error).message
  return unexpected
}

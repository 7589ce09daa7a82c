// Handlers for captures: receive the content of a VM that its node froze, and publish the image once it is complete.
import { ApiError, badRequest, invalid, invalidField, notFound } from '../../../api/errors.ts'
import type * as api from '../../../api/nodes/captures.ts'
import { type ContentStore, NoContentError, WrongContentError } from '../../../images/content/content.ts'
import { DiskFullError } from '../../../images/content/temporary-files.ts'
import { digestPattern, type Manifest, maxManifestBytes } from '../../../images/format/format.ts'
import { BadManifestError, chunksOf } from '../../../images/format/manifest.ts'
import { readManifest } from '../../../images/pack/stored-manifests.ts'
import { type Clock, timestamp } from '../../../platform/clock.ts'
import { defined } from '../../../platform/defined.ts'
import { failpoint } from '../../../platform/failpoint.ts'
import { forEachParallel } from '../../../platform/parallel.ts'
import { changeCaptured, dropCapture, failCapture, withoutCapture } from '../../../store/records/captures.ts'
import type { Collections } from '../../../store/records/collections.ts'
import type {
  CaptureForImage,
  CaptureForPush,
  ImageRecord,
  ImageVersion,
  VmCapture,
  VmRecord,
} from '../../../store/records/fleet-records.ts'
import { vmName, withVersion } from '../../../store/records/image-versions.ts'
import { changePushJob, sent } from '../../../store/records/push-jobs.ts'
import type { Entry } from '../../../store/store.ts'
import { storedBytes } from '../../images/contents.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import {
  findCredentials,
  loginFor,
  type RegistryServices,
  referenceOf,
  requireCredentials,
} from '../../remotes/registries.ts'
import type { RunningCaptures } from '../../transfer/running-captures.ts'

const kind = 'captures'
const parallelTouches = 16
/** For metadata of chunks, and content that is sent again, besides the disk and the memory of the VM. */
const spareBytes = 2 ** 30
/** The limit of digests in a response, as in a request. */
const maxMissing = 5_000

interface NodeCaptureServices extends RegistryServices {
  readonly collections: Collections
  readonly content: ContentStore
  readonly runningCaptures: RunningCaptures
  readonly clock: Clock
}

export function captures(services: NodeCaptureServices): HandlersOf<typeof api> {
  const { collections, content, runningCaptures, clock } = services
  const { pushJobs } = collections

  function existing(node: string, id: string): { readonly vm: Entry<VmRecord>; readonly capture: VmCapture } {
    for (const vm of collections.nodeVms.on(node)) {
      const capture = vm.value.captures?.find((each) => each.id === id)
      if (capture) return { vm, capture }
    }
    throw notFound(kind, id.slice(0, 128), { hint: 'The request was cancelled; release the capture' })
  }

  /** The saves and commits of VMs on this node, and how much content each may send. Pushes go to a registry. */
  function sentBy(node: string): readonly { readonly id: string; readonly maxBytes: number }[] {
    const found = [...collections.nodeVms.on(node)].flatMap(({ value: { captures = [], ...vm } }) =>
      captures
        .filter(({ kind: purpose }) => purpose !== 'push')
        .map(({ id }) => ({ id, maxBytes: maxBytesOf(vm, collections.images.get('', vm.shape.image)?.value) })),
    )
    if (found.length > 0) return found
    throw notFound(kind, node, { hint: 'A node sends content only for a save or a commit of one of its VMs' })
  }

  async function succeeded({ namespace }: VmRecord, { job }: CaptureForPush, digest: string): Promise<void> {
    await changePushJob(pushJobs, pushJobs.key(namespace, job), ({ progress }) => ({
      status: 'Succeeded',
      phase: 'done',
      progress: { ...progress, bytesDone: progress.bytesTotal, percent: 100 },
      digest,
      finishedAt: timestamp(clock.now()),
    }))
  }

  async function finish(vm: Entry<VmRecord>, id: string): Promise<void> {
    await dropCapture(collections, vm, id)
    runningCaptures.ended(id)
  }

  return {
    async findMissingBlobs({ principal: { name: node }, body: { digests } }) {
      sentBy(node)
      return { missing: await lacking(content, digests) }
    },

    async putBlob({ principal: { name: node }, params: { digest }, upload }) {
      if (!digestPattern.test(digest)) throw wrong('digest', `"${digest.slice(0, 80)}" is not a digest`)
      const captures = sentBy(node)
      await upload
        .pass(maxManifestBytes, async ({ bytes, pieces }) => {
          if (!captures.some((each) => runningCaptures.receives(each.id, bytes, each.maxBytes))) throw tooMuch()
          await content.putExpected({ digest, bytes }, pieces)
        })
        .catch((error: unknown) => {
          throw refusalOf(error)
        })
      return { digest }
    },

    async reportCapture({ principal: { name: node }, params: { capture: id }, body }) {
      const { vm, capture } = existing(node, id)
      const { percent, bytes, problem } = body
      if (problem !== undefined) {
        await failCapture(collections, vm.value.namespace, capture, problem, timestamp(clock.now()))
        failpoint('captures.failed')
        await finish(vm, id)
      } else if (capture.kind === 'push') {
        const { phase, bytesTotal = 0, bytesSkipped = 0 } = body
        const nowMs = clock.now().getTime()
        const progress = { percent, bytesDone: bytes, bytesTotal, bytesSkipped }
        const waiting = body.waiting && {
          reason: body.waiting.problem.slice(0, 1_024),
          // Computed with the server's clock, because that of the node may be wrong.
          nextTryAt: timestamp(new Date(nowMs + body.waiting.nextTryMs)),
        }
        const running = { status: 'Running', ...(phase !== undefined && { phase }), waiting } as const
        await changePushJob(pushJobs, pushJobs.key(vm.value.namespace, capture.job), (record) => ({
          ...running,
          ...(bytesTotal === 0 && bytes === 0 ? { progress } : sent(record, progress, nowMs)),
        }))
      } else {
        runningCaptures.reported(id)
        await changeCaptured(collections, capture, ({ errorMessage: _, ...record }) => ({
          ...record,
          progress: { percent, bytes, ...(body.phase !== undefined && { phase: body.phase }) },
        }))
      }
      return {}
    },

    async finishCapture({ principal: { name: node }, params: { capture: id }, body }) {
      const { vm, capture } = existing(node, id)
      if (capture.kind === 'push') {
        await succeeded(vm.value, capture, body.content)
        await finish(vm, id)
        return { missing: [] }
      }
      runningCaptures.reported(id)
      const missing = await publish(services, vm.value, capture, body.content)
      if (missing.length === 0) await finish(vm, id)
      return { missing: missing.slice(0, maxMissing) }
    },

    async getCaptureCredentials({ principal: { name: node }, params: { capture: id } }) {
      const { vm, capture } = existing(node, id)
      if (capture.kind !== 'push') throw notFound(kind, id.slice(0, 128), { hint: 'Only a push needs credentials' })
      const reference = referenceOf(capture.reference)
      return loginFor(services, reference, requireCredentials(collections, vm.value.namespace, reference))
    },

    async getImageRegistry({ principal: { name: node }, params: { vmOrImage } }) {
      const vm = collections.nodeVms.of(node, vmOrImage)?.value
      const own = collections.nodes.get('', node)?.value
      const cached = Object.values(own?.cache?.pins ?? {}).find(({ pulled }) => pulled?.reference === vmOrImage)
      const text = vm?.imageReference ?? cached?.pulled?.reference
      const namespace = vm?.namespace ?? own?.namespace
      if (text === undefined || namespace === undefined)
        throw notFound('vms', vmOrImage.slice(0, 128), { hint: 'Use a VM of this node whose image is in a registry' })
      const reference = referenceOf(text, 'pull')
      return loginFor(services, reference, findCredentials(collections, namespace, reference))
    },
  }
}

/** The disk and the memory, which compression does not make larger. */
const maxBytesOf = (
  { observed, desired, place }: Pick<VmRecord, 'observed' | 'desired' | 'place'>,
  image: ImageRecord | undefined,
): number =>
  ((observed.diskGb ?? desired.diskGb ?? 0) * 2 ** 30 || (image?.sizeBytes ?? 0)) +
  (place?.memoryMiB ?? 0) * 2 ** 20 +
  spareBytes

const tooMuch = (): ApiError =>
  new ApiError('RequestEntityTooLarge', 'The capture has more content than the disk and the memory of its VM', {
    hint: 'Save or commit the VM again',
  })

const nextVersion: Readonly<Record<CaptureForImage['kind'], (before: number) => number>> = {
  save: (before) => before,
  commit: (before) => before + 1,
}

function fulfilled(
  record: ImageRecord,
  { kind, description }: CaptureForImage,
  made: Pick<ImageRecord, 'content' | 'os' | 'sizeBytes' | 'spaceUsedBytes' | 'updatedAt'> & { content: string },
  added: Pick<ImageVersion, 'bytesAdded'>,
): ImageRecord {
  const { recipe: _, warning: __, ...rest } = withoutCapture(record)
  const version = nextVersion[kind](record.version ?? 1)
  const { content, updatedAt: at } = made
  const { vm, by } = record.capture ?? {}
  const of = { ...(vm && { vm: vmName(vm) }), ...(by !== undefined && { by }), ...added }
  const versions = withVersion(record, { version, at, content, ...of })
  return { ...rest, ...made, version, versions, ...(description !== undefined && { description }) }
}

/** Makes the content that of the image. Returns the digests that the node has to send first. */
async function publish(
  { content, collections, clock }: NodeCaptureServices,
  vm: VmRecord,
  capture: CaptureForImage & Pick<VmCapture, 'base'>,
  digest: string,
): Promise<readonly string[]> {
  const manifest = await manifestOf(content, digest)
  if (!manifest) return [digest]
  if (manifest.architecture !== vm.shape.architecture)
    throw wrong('content', `it is an image for ${manifest.architecture}, and the VM is not`)
  const digests = new Set([...chunksOf(manifest)].map((chunk) => chunk.digest))
  const missing = await lacking(content, [digest, ...digests])
  if (missing.length > 0) return missing
  const ownBytes = (await content.size(digest)) ?? 0
  const base = capture.base === undefined ? undefined : await manifestOf(content, capture.base)
  const made = {
    content: digest,
    ...defined({ os: manifest.os }),
    sizeBytes: manifest.virtualSizeBytes,
    spaceUsedBytes: ownBytes + storedBytes(manifest),
    updatedAt: timestamp(clock.now()),
  }
  await content.hold(digest, manifest)
  failpoint('captures.finish')
  const isKnown = base !== undefined || capture.base === undefined
  const added = isKnown ? { bytesAdded: ownBytes + storedBytes(manifest, base) } : {}
  await changeCaptured(collections, capture, (record) => fulfilled(record, capture, made, added))
  failpoint('captures.finished')
  return []
}

/** Returns the missing digests, and touches the others, so that the collector keeps them. */
async function lacking(content: ContentStore, digests: readonly string[]): Promise<string[]> {
  const missing: string[] = []
  await forEachParallel(digests, parallelTouches, async (digest) => {
    if (!(await content.touch(digest))) missing.push(digest)
  })
  return missing
}

/** Returns undefined if the manifest is missing or damaged, and has to be sent. */
async function manifestOf(content: ContentStore, digest: string): Promise<Manifest | undefined> {
  try {
    return await readManifest(content, digest)
  } catch (error) {
    if (error instanceof NoContentError || error instanceof WrongContentError) return undefined
    throw error instanceof BadManifestError ? wrong('content', error.message) : error
  }
}

const wrong = (field: string, message: string): ApiError =>
  invalid(kind, [invalidField(field, message)], 'Update the agent or the server')

function refusalOf(error: unknown): unknown {
  if (error instanceof WrongContentError) return badRequest([invalidField('body', error.message)], 'Send it again')
  const isFull =
    error instanceof DiskFullError || (error instanceof ApiError && error.options.cause instanceof DiskFullError)
  if (!isFull) return error
  // An agent retries other failures but not this one: the delivery fails, and the user learns that space has to be
  // freed.
  return new ApiError('RequestEntityTooLarge', 'The disk of the server is full', {
    hint: 'Delete unused images, or ask the operator for more space',
    cause: error,
  })
}

// A client of the OCI distribution API. Blobs are in upload.ts and download.ts.
import { digestPattern } from '../../images/format/format.ts'
import { digestOf } from '../../images/format/manifest.ts'
import { discard } from '../../platform/http.ts'
import { retry } from '../../platform/retry.ts'
import { RegistryError } from '../artifact/errors.ts'
import {
  blobsOf,
  type Descriptor,
  dockerListType,
  dockerManifestType,
  maxOciManifestBytes,
  ociIndexType,
  ociManifestType,
  parseOciManifest,
  type RawManifest,
} from '../artifact/oci-manifest.ts'
import { type ArtifactSource, type Destination, once } from '../artifact/target.ts'
import { readBlob, streamBlob } from './download.ts'
import { createExchange, type RegistryExchange, type RegistryOptions } from './exchange.ts'
import { redactUrl } from './redact.ts'
import { readBounded } from './send.ts'
import { listTags } from './tags.ts'
import { uploadBlob } from './upload.ts'

export interface Registry {
  /** Throws unless the server is a registry that accepts the credentials, for `repository` if given. */
  ping(options?: { readonly repository?: string; readonly signal?: AbortSignal }): Promise<void>
  repository(name: string, options?: RepositoryOptions): Repository
  close(): void
}

export interface RepositoryOptions {
  /** A repository of the same registry whose blobs are mounted instead of sent. */
  readonly mountFrom?: string | undefined
  /** Longer blobs are sent in pieces. */
  readonly pieceBytes?: number | undefined
}

export interface Repository extends ArtifactSource, Destination {
  /** The first ten thousand. */
  tags(signal?: AbortSignal): Promise<readonly string[]>
  /** The size of a blob; undefined if it does not exist. */
  size(digest: string, signal?: AbortSignal): Promise<number | undefined>
  /** Deletes a manifest and all its tags. Returns whether it existed. */
  remove(digest: string, signal?: AbortSignal): Promise<boolean>
}

const defaultPieceBytes = 64 * 2 ** 20
const acceptedManifests = [ociManifestType, dockerManifestType, ociIndexType, dockerListType].join(', ')
const vagueTypes = new Set(['', 'application/json', 'application/octet-stream', 'text/plain'])
const referenceForm = /^(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}|sha256:[0-9a-f]{64})$/
const repositoryForm = /^[a-z0-9]+(?:[._/-]+[a-z0-9]+)*$/

export function openRegistry(options: RegistryOptions): Registry {
  const exchange = createExchange(options)
  return {
    ping: async ({ repository, signal } = {}) => {
      const url = new URL('/v2/', exchange.origin)
      const scopes = repository === undefined ? [] : [`repository:${repository}:pull`]
      const answer = await retry(
        () => exchange.ask({ method: 'GET', url, signal }, scopes),
        exchange.retryOptions(signal),
      )
      if (answer.status !== 200) throw await exchange.refuse(answer, 'Connecting')
      discard(answer)
    },
    repository: (name, repositoryOptions = {}) => openRepository(exchange, name, repositoryOptions),
    close: () => exchange.close(),
  }
}

function openRepository(exchange: RegistryExchange, repository: string, options: RepositoryOptions): Repository {
  if (!repositoryForm.test(repository)) throw new TypeError(`"${repository.slice(0, 80)}" is not a repository`)
  const name = `${exchange.origin.host}/${repository}`
  const pull = [`repository:${repository}:pull`]
  const push = [`repository:${repository}:pull,push`]
  const manifestAt = (reference: string) => {
    if (!referenceForm.test(reference)) throw new TypeError(`"${reference.slice(0, 80)}" is neither tag nor digest`)
    return at(`manifests/${reference}`)
  }
  const at = (path: string) => new URL(`/v2/${repository}/${path}`, exchange.origin)
  const patiently = <T>(signal: AbortSignal | undefined, work: () => Promise<T>) =>
    retry(work, exchange.retryOptions(signal))

  /** Undefined if the blob does not exist. The length may be unknown. */
  async function lookUp(digest: string, signal: AbortSignal | undefined) {
    const answer = await exchange.ask({ method: 'HEAD', url: at(`blobs/${digest}`), signal }, push)
    discard(answer)
    if (answer.status === 404) return undefined
    if (answer.status !== 200) throw await exchange.refuse(answer, `Reading ${name}`)
    const length = answer.headers['content-length']
    return { length: length === undefined ? undefined : Number(length) }
  }

  const hasNow = async (blob: Descriptor, signal?: AbortSignal) => {
    const found = await lookUp(blob.digest, signal)
    if (found?.length !== undefined && found.length !== blob.size)
      throw new RegistryError('invalid', `${name} has ${blob.digest} with ${found.length} bytes, not ${blob.size}`)
    return found !== undefined
  }
  let { mountFrom, pieceBytes = defaultPieceBytes } = options

  return {
    name,
    resolve: (reference, signal) =>
      patiently(signal, async () => {
        const url = manifestAt(reference)
        const answer = await exchange.ask({ method: 'GET', url, headers: { accept: acceptedManifests }, signal }, pull)
        if (answer.status !== 200) throw await exchange.refuse(answer, `Looking for ${name} ${reference}`)
        const bytes = await readBounded(answer, maxOciManifestBytes)
        return checked(
          { digest: digestOf(bytes), mediaType: mediaTypeOf(answer.headers['content-type'], bytes), bytes },
          reference,
          url,
          answer.headers,
        )
      }),
    tags: (signal) => listTags({ exchange, repository, signal }),
    open: (blob, opening = {}) => streamBlob(blob, opening, { exchange, repository, signal: opening.signal }),
    read: (blob, signal) => readBlob(blob, { exchange, repository, signal }),
    plan: async (manifest) => blobsOf(parseOciManifest(manifest)),
    has: (blob, signal) => patiently(signal, () => hasNow(blob, signal)),
    async size(digest, signal) {
      const found = await patiently(signal, () => lookUp(digest, signal))
      if (!found) return undefined
      if (found.length !== undefined && Number.isSafeInteger(found.length)) return found.length
      throw new RegistryError('invalid', `${name} does not report the size of ${digest}`)
    },
    remove: (digest, signal) =>
      patiently(signal, async () => {
        const scopes = [`repository:${repository}:pull,push,delete`]
        const answer = await exchange.ask({ method: 'DELETE', url: manifestAt(digest), signal }, scopes)
        const isThere = answer.status !== 404
        if (isThere && (answer.status < 200 || answer.status > 299))
          throw await exchange.refuse(answer, `Deleting from ${name}`)
        discard(answer)
        return isThere
      }),
    put: (blob, content, { signal, onPosition } = {}) =>
      uploadBlob(blob, content, {
        mountFrom,
        onMountRefused: () => {
          mountFrom = undefined
        },
        pieceBytes,
        onPieceRefused: (bytes) => {
          // Parallel uploads halve their own piece sizes; the smallest one works for all.
          pieceBytes = Math.min(pieceBytes, bytes)
        },
        exchange,
        repository,
        signal,
        onPosition,
        // Not retried here, because the upload retries.
        isThere: () => hasNow(blob, signal),
      }),
    finish: (manifest, reference = manifest.digest, signal) =>
      patiently(signal, async () => {
        const { mediaType, bytes, digest } = manifest
        const body = { bytes: bytes.length, open: () => once(bytes) }
        const url = manifestAt(reference)
        const answer = await exchange.ask(
          { method: 'PUT', url, headers: { 'content-type': mediaType }, body, signal },
          push,
        )
        if (answer.status !== 201 && answer.status !== 200)
          throw orTransient(await exchange.refuse(answer, `finishing ${name} ${reference}`))
        discard(answer)
        const named = answer.headers['docker-content-digest']
        if (named !== undefined && named !== digest)
          throw new RegistryError('invalid', `${name} keeps the manifest ${digest} with another digest`)
        return digest
      }),
  }
}

/**
 * Makes DIGEST_INVALID transient. The digest was computed here, so the registry is wrong, and only for a moment: while
 * another push writes the same blob.
 */
function orTransient(refused: RegistryError): RegistryError {
  const { status, problem } = refused
  if (status !== 400 || !problem.includes('DIGEST_INVALID')) return refused
  return new RegistryError('unavailable', problem, { status })
}

/** Some registries serve manifests as plain JSON, which may contain the media type. */
function mediaTypeOf(header: string | undefined, manifest: Buffer): string {
  const [named = ''] = (header ?? '').toLowerCase().split(';')
  if (!vagueTypes.has(named.trim())) return named.trim()
  try {
    const { mediaType } = JSON.parse(manifest.toString('utf8'))
    return typeof mediaType === 'string' ? mediaType : named.trim()
  } catch {
    return named.trim()
  }
}

/** Throws unless the digest matches the reference or the registry's header. */
function checked(
  manifest: RawManifest,
  reference: string,
  url: URL,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): RawManifest {
  const named = digestPattern.test(reference) ? reference : headers['docker-content-digest']
  if (named !== undefined && named !== manifest.digest)
    throw new RegistryError('invalid', `${redactUrl(url)} does not match its digest`)
  return manifest
}

// Opens the image store of a cluster: in the data folder, or in a registry. The choice is stored with the records, so
// that no server uses the wrong one.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Collectable } from '../controllers/collect-images.ts'
import { collect } from '../images/collect.ts'
import type { ContentStore } from '../images/content/content.ts'
import { openContentFolder as openFolder } from '../images/content/store.ts'
import { openContentCache } from '../oci/content/cache.ts'
import { claim } from '../oci/content/owner.ts'
import { openRegistryContent, type RegistryContent } from '../oci/content/store.ts'
import { openRegistry } from '../oci/registry/registry.ts'
import { type Clock, systemClock } from '../platform/clock.ts'
import { mayBeThere, readFileIfPresent, whyUnreadable } from '../platform/files.ts'
import { type Log, silentLog } from '../platform/log.ts'
import { isTransient, retryPolicies } from '../platform/retry.ts'
import { type ImagesAddress, parseImagesAddress } from '../rules/images-address.ts'
import { parseSettings, type Settings, SettingsError } from '../server/config/settings.ts'
import type { Collections } from '../store/records/collections.ts'
import { isFault, type Json, type Store, StoreError } from '../store/store.ts'
import { type ImagePlaceRecord, imagesKey } from '../store/store-state.ts'

export interface ImagePlace {
  readonly content: ContentStore
  readonly registry?: RegistryPlace
  close(): void
}

interface RegistryPlace {
  readonly content: RegistryContent
  /** Throws if the repository belongs to another cluster. */
  claim(cluster: string, signal?: AbortSignal): Promise<void>
}

interface ImagePlaceOptions {
  /** From the command line. Default: the address in the settings. */
  readonly address: string | undefined
  readonly settings: Settings['images']
  readonly environment: NodeJS.ProcessEnv
  readonly dataFolder: string
  readonly log: Log
  readonly clock?: Clock
}

const usernameVariable = 'SVC3_IMAGES_USERNAME'
const passwordVariable = 'SVC3_IMAGES_PASSWORD'
const credentialName = 'svc3-images-password'
export const inFolder = 'folder'

const idleMs = 30_000
/** The timeout is shorter for a registry that was used before. */
const claimMs = { first: 15_000, known: 3_000 }

export const contentFolder = (dataFolder: string): string => path.join(dataFolder, 'content')

export function addressOfImages({ address, settings }: Pick<ImagePlaceOptions, 'address' | 'settings'>): string {
  const text = address ?? settings.address
  return text === undefined ? inFolder : checked(text).text
}

export async function openImagePlace(options: ImagePlaceOptions): Promise<ImagePlace> {
  const { dataFolder, settings, environment, log, clock = systemClock } = options
  // Removed from the environment, so that no child process inherits it.
  const password = environment[passwordVariable]
  delete environment[passwordVariable]
  const address = addressOfImages(options)
  if (address === inFolder) return { content: await openFolder(contentFolder(dataFolder)), close: () => undefined }
  const { server, isPlain, repository: name } = checked(address)
  const { hostname } = new URL(server)
  const registry = openRegistry({
    server,
    allowInsecure: isPlain,
    credentials: await credentialsOf(settings, environment, password),
    // The operator chose the registry, so it may have any address. Redirects may lead to private addresses, but to this
    // host only under the name of the registry.
    policy: (host) => ({ allowPrivate: true, allowLoopback: host === hostname.replace(/^\[|\]$/g, '') }),
    ...(settings.caFile !== undefined && {
      ca: await readNamed(settings.caFile, 'the authority of the registry with the images, images.caFile'),
    }),
    hints: {
      untrusted: 'Set images.caFile in config.json to the CA that signed the certificate',
      plain: 'Use its TLS port, or allow plain HTTP by the address oci+http://REGISTRY/PREFIX',
    },
    // Callers retry, too. This covers a restart of the registry, so that it does not fail work in progress.
    retry: retryPolicies.transfer,
    idleMs,
  })
  const repository = registry.repository(name)
  const cache = await openContentCache({
    folder: path.join(dataFolder, 'content-cache'),
    maxBytes: settings.cacheBytes,
    failed: (error) => log.error('the image cache could not be reduced', {}, error),
  })
  const content = openRegistryContent({ repository, cache, log, now: () => clock.now().getTime() })
  return {
    content,
    registry: { content, claim: (cluster, signal) => claim(repository, cluster, signal) },
    close: () => registry.close(),
  }
}

interface SettleOptions {
  readonly store: Store
  readonly address: string
  readonly cluster: string
  /** Whether a record names content, or another server may be about to write such a record. */
  readonly isInUse: boolean
  readonly log: Log
}

/**
 * Checks that the images of these records are in this place, and stores the place if none is stored yet. A registry
 * that cannot be reached is accepted if it is the stored place.
 */
export async function settleImagePlace(
  place: Pick<ImagePlace, 'registry'>,
  { store, address, cluster, isInUse, log }: SettleOptions,
): Promise<void> {
  const known = await imagePlaceOf(store)
  const before = known?.value.address ?? (isInUse ? inFolder : address)
  if (before !== address && isInUse) throw elsewhere(before, address)
  try {
    await place.registry?.claim(
      cluster,
      AbortSignal.timeout(known?.value.address === address ? claimMs.known : claimMs.first),
    )
  } catch (error) {
    const isDown = isTransient(error) || (error as Error).name === 'TimeoutError'
    if (!isDown || known?.value.address !== address) throw error
    log.warn('the image registry cannot be reached; starting without it', {
      problem: (error as Error).message,
    })
  }
  if (known?.value.address !== address) await writeImagePlace(store, address, known?.rev)
}

export const imagePlaceOf = async (store: Pick<Store, 'get'>) =>
  (await store.get(imagesKey)) as { readonly value: ImagePlaceRecord; readonly rev: string } | undefined

export const clusterUid = ({ cluster }: Pick<Collections, 'cluster'>): string => cluster.get('', 'id')?.value.uid ?? ''

export const namesContent = ({ images, isos, vms }: Pick<Collections, 'images' | 'isos' | 'vms'>): boolean =>
  [images, isos].some((each) => each.list().some(({ value }) => value.content !== undefined)) ||
  vms.list().some(({ value }) => value.imageContent !== undefined || value.isoContent !== undefined)

/**
 * Before anything is deleted, checks that the registry belongs to this cluster and protects all content that records
 * name.
 */
export const collectableIn = ({ content, claim }: RegistryPlace, cluster: () => string): Collectable => ({
  async collect(manifests, options) {
    await claim(cluster(), options.signal)
    await content.mend(manifests(), options.signal)
    return collect(content, manifests, options)
  },
})

/** If another server writes the place at the same time, its value wins. */
async function writeImagePlace(store: Store, address: string, before?: string): Promise<void> {
  const value = { address } as unknown as Json
  try {
    await (before === undefined ? store.create(imagesKey, value) : store.update(imagesKey, value, before))
  } catch (error) {
    const found = (await imagePlaceOf(store))?.value.address
    if (!(isFault(error, 'AlreadyExists') || isFault(error, 'Conflict')) || found === undefined) throw error
    if (found !== address) throw elsewhere(found, address)
  }
}

/** Returns the place of the images as text, for example to name what a backup without images does not cover. */
export async function imagePlaceName(store: Pick<Store, 'get'>, dataFolder: string): Promise<string> {
  const address = (await imagePlaceOf(store))?.value.address ?? inFolder
  return address === inFolder ? contentFolder(dataFolder) : address
}

/** Opens the image store of these records, for commands that run with or without a server. */
export async function openKnownPlace(
  address: string,
  dataFolder: string,
  environment: NodeJS.ProcessEnv,
): Promise<ImagePlace> {
  const text = await readFileIfPresent(path.join(dataFolder, 'config.json'))
  const { address: _, ...settings } = parseSettings(text).images
  const options = { settings, environment, dataFolder, log: silentLog }
  return openImagePlace({ ...options, address: address === inFolder ? undefined : address })
}

const placeName = (address: string): string => (address === inFolder ? 'the data folder' : address)

const elsewhere = (before: string, address: string): StoreError =>
  new StoreError(
    'Unavailable',
    `The images of these records are in ${placeName(before)}, not in ${placeName(address)}. Start the server ` +
      `${before === inFolder ? 'without --images' : `with --images ${before}`}, or move them with svc3 server backup ` +
      'and svc3 server restore',
  )

function checked(text: string): ImagesAddress {
  const parsed = parseImagesAddress(text)
  if (parsed.ok) return parsed
  throw new SettingsError(`${parsed.problem}: ${parsed.hint}`)
}

async function credentialsOf(
  { username, passwordFile }: Settings['images'],
  environment: NodeJS.ProcessEnv,
  fromEnvironment: string | undefined,
) {
  const name = environment[usernameVariable] || username
  const password = fromEnvironment ?? (await passwordIn(passwordFile, environment))
  if (name === undefined && password === undefined) return undefined
  if (name !== undefined && password !== undefined) return { username: name, password }
  throw new SettingsError(
    name === undefined
      ? `The image registry has a password but no user name. Set ${usernameVariable} or images.username`
      : `The image registry has a user name but no password. Set ${passwordVariable} or images.passwordFile`,
  )
}

async function passwordIn(named: string | undefined, environment: NodeJS.ProcessEnv): Promise<string | undefined> {
  // systemd sets the directory for any credential, so this one may be missing. An unreadable file is an error.
  const credential = path.join(environment.CREDENTIALS_DIRECTORY ?? '', credentialName)
  const isCredential = Boolean(environment.CREDENTIALS_DIRECTORY) && mayBeThere(credential)
  const file = isCredential ? credential : named
  if (file === undefined) return undefined
  const what = `the password for the registry with the images, ${isCredential ? 'the credential' : 'images.passwordFile'}`
  const password = (await readNamed(file, what)).trimEnd()
  if (password !== '') return password
  throw new SettingsError(`${what} ${file}, is empty: put the password there`)
}

const readNamed = (file: string, what: string): Promise<string> =>
  fs.readFile(file, 'utf8').catch((error: unknown) => {
    const why = mayBeThere(file) ? whyUnreadable(error) : 'is not there: correct config.json, or make the file'
    throw new SettingsError(`${what} ${file}, ${why}`)
  })

// An image in a registry, fetched by this node. The server provides the credentials each time.
import type { RegistryLogin } from '../../api/nodes/captures.ts'
import type { ContentSource } from '../../images/content/content.ts'
import { type Inspected, inspectImage } from '../../oci/inspect.ts'
import { openRegistry } from '../../oci/registry/registry.ts'
import { waitingLine } from '../../oci/registry/waiting.ts'
import { reasonOf } from '../../platform/reason.ts'
import { retry, retryPolicies } from '../../platform/retry.ts'
import { parseImageReference } from '../../rules/image-reference.ts'
import { isRetriable } from '../link/connection.ts'

/** Requests the registry's address and credentials for the image of a VM (its uid), or for a cached image (its reference). */
export type AskLogin = (vmOrImage: string, signal: AbortSignal) => Promise<RegistryLogin>

interface RegistryImageOptions {
  /** `host/repository@sha256:…` */
  readonly reference: string
  /** The uid of the VM that needs the image; undefined for one that the node caches. */
  readonly vm: string | undefined
  readonly ask: AskLogin | undefined
  readonly signal: AbortSignal
  /** Called with the reason and the time of the next try while the registry does not respond. */
  readonly onWait?: ((reason: string) => void) | undefined
}

interface OpenedRegistryImage extends Disposable {
  readonly image: Inspected
}

export async function openRegistryImage(options: RegistryImageOptions): Promise<OpenedRegistryImage> {
  const { reference, vm, ask, signal, onWait } = options
  const parsed = parseImageReference(reference, 'pull')
  if (!parsed.ok) throw new Error(`${parsed.problem}; ${parsed.hint}`)
  if (!ask) throw new Error('its registry cannot be reached from here')
  const login = await retry(() => ask(vm ?? reference, signal), { policy: retryPolicies.transfer, signal, isRetriable })
  const registry = openRegistry({
    ...login,
    onWaiting(waiting) {
      const line = waitingLine(waiting)
      if (line !== undefined) onWait?.(line)
    },
  })
  try {
    const source = registry.repository(parsed.reference.repository)
    const image = await inspectImage(source, parsed.reference.target, { signal })
    return { image, [Symbol.dispose]: () => registry.close() }
  } catch (error) {
    registry.close()
    throw error
  }
}

/** The content of an image in svc3's format. Connects on the first read, and again after a failure, with new credentials. */
export class RegistryImageContent implements ContentSource, Disposable {
  readonly #options: RegistryImageOptions
  readonly #digest: string
  readonly #opened = new DisposableStack()
  #current: Promise<ContentSource> | undefined

  constructor(options: RegistryImageOptions, digest: string) {
    this.#options = options
    this.#digest = digest
  }

  async read(...args: Parameters<ContentSource['read']>): Promise<Buffer> {
    this.#current ??= this.#open()
    const used = this.#current
    try {
      return await (await used).read(...args)
    } catch (error) {
      if (this.#current === used) this.#current = undefined
      // Names the registry in every message.
      const { reference } = this.#options
      const host = reference.slice(0, reference.indexOf('/'))
      const reason = reasonOf(error)
      throw reason.includes(host) ? error : new Error(`registry ${host}: ${reason}`, { cause: error })
    }
  }

  [Symbol.dispose](): void {
    this.#opened.dispose()
  }

  async #open(): Promise<ContentSource> {
    const opened = await openRegistryImage(this.#options)
    if (this.#opened.disposed) opened[Symbol.dispose]()
    else this.#opened.use(opened)
    const { ours } = opened.image
    if (ours?.imageDigest === this.#digest) return ours.content
    throw new Error('the registry returned other content for this digest')
  }
}

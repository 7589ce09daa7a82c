// The configured remotes from which images and ISOs are pulled, behind one interface.
import fs from 'node:fs/promises'
import path from 'node:path'
import tls from 'node:tls'
import { ApiError, notFound } from '../../api/errors.ts'
import type { RetryPolicy } from '../../platform/retry.ts'
import { type Settings, SettingsError } from '../config/settings.ts'
import { openFolder } from './folder.ts'
import { type RemoteAddress, RemoteError } from './http.ts'
import { openRepository } from './repository.ts'
import type { ListedItem, RemoteKind, RemoteSource } from './source.ts'

/** The kinds of remotes, by the protocol of their address. */
const sources: Readonly<Record<string, (remote: RemoteAddress) => RemoteSource>> = {
  'https:': openFolder,
  'http:': openFolder,
  'oci:': openRepository,
}

interface Offer {
  /** The name of the item, or `remote/name` if an earlier remote has an item of that name. */
  readonly name: string
  readonly remote: string
  readonly item: ListedItem
}

interface Offers {
  readonly offers: readonly Offer[]
  readonly unavailable: readonly { readonly remote: string; readonly message: string }[]
}

export class Remotes {
  readonly #sources: ReadonlyMap<string, RemoteSource>
  readonly #listing = new Map<string, Promise<readonly ListedItem[]>>()

  constructor(named: ReadonlyMap<string, RemoteSource>) {
    this.#sources = named
  }

  /** `folder`: the base of relative paths in the configuration. */
  static async open(settings: Settings['remotes'], folder: string, retry?: RetryPolicy): Promise<Remotes> {
    const named = new Map<string, RemoteSource>()
    for (const { name, url, allowInsecure, caFile } of settings) {
      const address = new URL(url.endsWith('/') ? url : `${url}/`)
      const authorities = caFile === undefined ? undefined : await readAuthorities(name, path.resolve(folder, caFile))
      const source = sources[address.protocol]?.({ name, url: address, allowInsecure, authorities, retry })
      if (source) named.set(name, source)
    }
    return new Remotes(named)
  }

  source(remote: string): RemoteSource | undefined {
    return this.#sources.get(remote)
  }

  async offers(kind: RemoteKind, signal: AbortSignal): Promise<Offers> {
    const unavailable: { remote: string; message: string }[] = []
    const lists = await Promise.all(
      [...this.#sources.keys()].map(async (remote) => {
        try {
          return { remote, items: await this.#list(remote, signal) }
        } catch (error) {
          if (!(error instanceof RemoteError)) throw error
          unavailable.push({ remote, message: error.message })
          return { remote, items: [] }
        }
      }),
    )
    const taken = new Set<string>()
    const offers = lists.flatMap(({ remote, items }) =>
      items
        .filter((item) => item.kind === kind)
        .map((item) => {
          const name = taken.has(item.name) ? `${remote}/${item.name}` : item.name
          taken.add(item.name)
          return { name, remote, item }
        }),
    )
    return { offers, unavailable }
  }

  /** `name`: that of an offer, or `remote/name`. */
  async find(kind: RemoteKind, name: string, signal: AbortSignal): Promise<Offer> {
    const { offers, unavailable } = await this.offers(kind, signal)
    const found = offers.find((offer) => offer.name === name || `${offer.remote}/${offer.item.name}` === name)
    if (found) return found
    const [first] = unavailable
    if (!first) throw notFound(`remote-${kind}s`, name)
    throw new ApiError('ServiceUnavailable', `Cannot look for "${name.slice(0, 200)}": ${first.message}`, {
      hint: 'Try again later, or ask the operator of the server',
      retryAfterSeconds: 10,
    })
  }

  /** Single-flight for each remote. */
  #list(remote: string, signal: AbortSignal): Promise<readonly ListedItem[]> {
    const running = this.#listing.get(remote)
    if (running) return running
    const started = (this.#sources.get(remote)?.list(signal) ?? Promise.resolve([])).finally(() =>
      this.#listing.delete(remote),
    )
    this.#listing.set(remote, started)
    return started
  }
}

async function readAuthorities(remote: string, file: string): Promise<readonly string[]> {
  try {
    return [...tls.getCACertificates('default'), await fs.readFile(file, 'utf8')]
  } catch (error) {
    throw new SettingsError(
      `Invalid config.json: caFile of remote "${remote}" cannot be read: ${(error as Error).message}`,
    )
  }
}

// Remote images and remote ISOs have the same commands: what differs between them is here.

import type { RemoteItem } from '../../../api/image-operations.ts'
import type { Image } from '../../../api/images.ts'
import * as api from '../../../api/remote-images.ts'
import type { Client } from '../../../client/client.ts'
import type { Column } from '../../output.ts'
import { type ImageKind, imageKind } from '../images/kind.ts'

export interface Remote {
  /** What a pull makes. */
  readonly kind: ImageKind
  list(client: Client, namespace: string, signal: AbortSignal): Promise<RemoteList>
  pull(client: Client, wanted: { namespace: string; remote: string; signal: AbortSignal }, body: Pull): Promise<Image>
}

export interface RemoteList {
  readonly items: readonly RemoteItem[]
  readonly unavailable?: readonly { readonly remote: string; readonly message: string }[]
}

export interface Pull {
  name?: string
  description?: string
}

export const remoteImages: Remote = {
  kind: imageKind,
  list: (client, namespace, signal) => client.call(api.listRemoteImages, { params: { namespace }, signal }),
  pull: (client, { namespace, remote, signal }, body) =>
    client.call(api.pullRemoteImage, { params: { namespace, remoteimage: remote }, body, signal }),
}

export const columns: readonly Column<RemoteItem>[] = [
  { header: 'NAME', cell: ({ name }) => name },
  { header: 'SIZE', cell: ({ size }) => size },
  { header: 'TYPE', cell: ({ type }) => type },
]

// What differs between the commands of remote images and those of remote ISOs.

import type { RemoteItem } from '../../../api/images/image-operations.ts'
import type { Image } from '../../../api/images/images.ts'
import * as api from '../../../api/images/remote-images.ts'
import type { Client } from '../../../client/client.ts'
import { awaitChange } from '../../await-change.ts'
import type { Context } from '../../command.ts'
import { type Column, sizeCell } from '../../output/output.ts'
import { type ImageKind, imageKind } from '../image/kind.ts'

export interface Remote {
  /** What a pull makes. */
  readonly kind: ImageKind
  list(client: Client, namespace: string, signal: AbortSignal): Promise<RemoteList>
  /** The client is one that sends each request once. */
  pull(context: Context, client: Client, wanted: Wanted, body: Pull, timeoutMs: number): Promise<Image>
}

interface RemoteList {
  readonly items: readonly RemoteItem[]
  readonly unavailable?: readonly { readonly remote: string; readonly message: string }[]
}

interface Wanted {
  readonly namespace: string
  readonly remote: string
  readonly sameTargetFlags: string
}

interface Pull {
  name?: string
  description?: string
}

export const remoteImages: Remote = {
  kind: imageKind,
  list: (client, namespace, signal) => client.call(api.listRemoteImages, { params: { namespace }, signal }),
  pull: (context, client, { namespace, remote, sameTargetFlags }, body, timeoutMs) =>
    awaitChange(
      context,
      client,
      api.pullRemoteImage,
      { params: { namespace, remoteimage: remote }, body },
      { timeoutMs, what: 'the pull', next: `To follow it: svc3 image list${sameTargetFlags}` },
    ),
}

export const columns: readonly Column<RemoteItem>[] = [
  { header: 'NAME', cell: ({ name }) => name },
  { header: 'SIZE', cell: ({ size }) => sizeCell(size) },
  { header: 'TYPE', cell: ({ type }) => type },
]

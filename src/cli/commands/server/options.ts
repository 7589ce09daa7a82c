// What the commands that look after a server's data share: which folder, which store.
import { parseImagesAddress } from '../../../rules/images-address.ts'
import type { Options } from '../../command.ts'
import { dataDir } from '../../connect/connection.ts'
import type { Host } from '../../host.ts'
import { UsageError } from '../../line/usage.ts'

export const placeOptions = {
  data: {
    type: 'string',
    value: 'DIR',
    defaultText: '$SVC3_DATA, or .svc3 in the checkout or your home',
    description: 'Folder of all state',
  },
  store: {
    type: 'string',
    value: 'ADDRESS',
    defaultText: '$SVC3_STORE, or where the folder says',
    description: 'Where the records are: etcd://HOST:PORT,…/PREFIX',
  },
} as const satisfies Options

export const imagesOption = {
  type: 'string',
  value: 'ADDRESS',
  defaultText: '$SVC3_IMAGES, or as configured',
  description: 'Registry to keep images in: oci://HOST/PREFIX',
} as const satisfies Options[string]

export function imagesOf(host: Host, given: string | undefined): string | undefined {
  const address = given ?? (host.env.SVC3_IMAGES || undefined)
  if (address === undefined) return undefined
  const parsed = parseImagesAddress(address)
  if (parsed.ok) return parsed.text
  throw new UsageError(parsed.problem, parsed.hint)
}

/** For a restore, which may move them. */
export const imagesTarget = {
  ...imagesOption,
  defaultText: '$SVC3_IMAGES, or where they were',
  description: 'Where the images go: oci://HOST/PREFIX, or "folder"',
} as const satisfies Options[string]

export const imagesTargetOf = (host: Host, given: string | undefined): string | undefined =>
  given === 'folder' ? given : imagesOf(host, given)

export interface Place {
  readonly dataDir: string
  /** Without it, where the folder says. */
  readonly storeAddress?: string
}

type Given = Readonly<Record<'data' | 'store', string | undefined>>

export function placeOf(host: Host, options: Given): Place {
  const storeAddress = checkedStore(options.store ?? (host.env.SVC3_STORE || undefined))
  return { dataDir: dataDir(host, options.data), ...(storeAddress !== undefined && { storeAddress }) }
}

export function checkedStore(address: string | undefined): string | undefined {
  if (address === undefined || address.startsWith('etcd://')) return address
  throw new UsageError(
    '--store names no cluster of etcd',
    'write --store etcd://HOST:PORT,HOST:PORT/PREFIX, or leave it out for SQLite in the data folder',
  )
}

export function fileOf(host: Host, name: string): string {
  if (name === '') throw new UsageError('the name of the file is empty', 'for example svc3-2026-11-15.tar')
  return process.getBuiltinModule('node:path').resolve(host.workingDir, name)
}

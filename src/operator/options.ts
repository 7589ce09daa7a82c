// Options that commands of the operator share. The help of `svc3 server` and `svc3 agent` loads this file.
import path from 'node:path'
import type { Arguments, Options, Values } from '../cli/command.ts'
import { dataDir } from '../cli/connect/connection.ts'
import type { Host } from '../cli/host.ts'
import { UsageError } from '../cli/line/usage.ts'
import { parseImagesAddress } from '../rules/images-address.ts'
import { diskSizeRule, parseDiskSize } from '../rules/sizes.ts'

/** The values of a table of options. */
export type OperatorOptionValues<O extends Options> = Values<Arguments, O>['options']

export const dataOptions = {
  data: {
    type: 'string',
    value: 'DIR',
    defaultText: '$SVC3_DATA, or .svc3 in the checkout or your home',
    description: 'Data folder',
  },
  store: {
    type: 'string',
    value: 'ADDRESS',
    defaultText: '$SVC3_STORE, or as stored in the data folder',
    description: 'Store of the records: etcd://HOST:PORT,…/PREFIX',
  },
} as const satisfies Options

export const imagesOption = {
  type: 'string',
  value: 'ADDRESS',
  defaultText: '$SVC3_IMAGES, or as configured',
  description: 'Registry for images: oci://HOST/PREFIX',
} as const satisfies Options[string]

export function imagesAddressOf(host: Host, option: string | undefined): string | undefined {
  const address = option ?? (host.env.SVC3_IMAGES || undefined)
  if (address === undefined) return undefined
  const parsed = parseImagesAddress(address)
  if (parsed.ok) return parsed.text
  throw new UsageError(parsed.problem, parsed.hint)
}

export interface DataLocation {
  /** Absolute path. */
  readonly dataDir: string
  /** Default: as recorded in the folder. */
  readonly storeAddress?: string
}

export function dataLocationOf(host: Host, { data, store }: OperatorOptionValues<typeof dataOptions>): DataLocation {
  const storeAddress = storeOf(host, store)
  return { dataDir: dataDir(host, data), ...(storeAddress !== undefined && { storeAddress }) }
}

export function storeOf(host: Host, option: string | undefined): string | undefined {
  const address = option ?? (host.env.SVC3_STORE || undefined)
  return address === undefined ? undefined : checkedStore(address)
}

export function checkedStore(address: string): string {
  if (address.startsWith('etcd://')) return address
  throw new UsageError(
    'Invalid --store: not an etcd address',
    'Use --store etcd://HOST:PORT,HOST:PORT/PREFIX, or omit it for SQLite in the data folder',
  )
}

export function fileOf(host: Host, name: string): string {
  if (name === '') throw new UsageError('The file name is empty', 'For example svc3-2026-11-15.tar')
  return path.resolve(host.workingDir, name)
}

export const imageQuotaOption = {
  type: 'string',
  value: 'SIZE',
  defaultText: '80 % of the free space',
  description: 'Disk space for copies of images',
} as const satisfies Options[string]

/** Returns the quota in bytes; undefined if none was given. */
export function imageQuota(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const bytes = parseDiskSize(text)
  if (bytes !== undefined) return bytes
  throw new UsageError(`Invalid --image-quota "${text}": use ${diskSizeRule}`, 'For example --image-quota 200G')
}

export interface ListenAddress {
  /** IPv6 addresses have no brackets here. */
  readonly host: string
  /** 0 lets the system choose one. */
  readonly port: number
}

export function parseListen(text: string, option = '--listen'): ListenAddress {
  const match = /^(?:\[(?<ipv6>[0-9a-fA-F:.]+)\]|(?<host>[A-Za-z0-9.-]+)):(?<port>\d{1,5})$/.exec(text)
  const { ipv6, host = ipv6, port } = match?.groups ?? {}
  if (host === undefined || port === undefined || Number(port) > 65_535) {
    throw new UsageError(
      `Invalid ${option} "${text}": use HOST:PORT`,
      `For example ${option} 127.0.0.1:8080 or ${option} [::1]:8080`,
    )
  }
  return { host, port: Number(port) }
}

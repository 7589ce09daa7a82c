// What kind of network an IP address belongs to, to decide which addresses the service may connect to on behalf of
// others. Takes resolved addresses, never names.
import { addressGroups } from './addresses.ts'

/** `special`: unspecified, link-local (with the metadata services of clouds), multicast and reserved addresses. */
export type AddressKind = 'public' | 'private' | 'loopback' | 'special'

/** What is allowed besides public addresses. Special addresses never are. */
export interface AddressPolicy {
  readonly allowPrivate: boolean
  readonly allowLoopback: boolean
}

type Row = readonly [network: string, bits: number, kind: AddressKind]

/** The first matching row decides. */
const v4Rows: readonly Row[] = [
  ['127.0.0.0', 8, 'loopback'],
  ['0.0.0.0', 8, 'special'],
  ['169.254.0.0', 16, 'special'],
  ['100.100.100.200', 32, 'special'], // A cloud's metadata service, inside the shared range.
  ['168.63.129.16', 32, 'special'], // The metadata service of another cloud.
  ['192.0.0.0', 24, 'special'],
  ['224.0.0.0', 3, 'special'],
  ['10.0.0.0', 8, 'private'],
  ['100.64.0.0', 10, 'private'],
  ['172.16.0.0', 12, 'private'],
  ['192.168.0.0', 16, 'private'],
  ['198.18.0.0', 15, 'private'],
]
const v6Rows: readonly Row[] = [
  ['::1', 128, 'loopback'],
  ['fd00:ec2::254', 128, 'special'], // A cloud's metadata service.
  ['fd20:ce::254', 128, 'special'],
  ['fc00::', 7, 'private'],
  ['fec0::', 10, 'private'],
  ['2001::', 32, 'special'], // Teredo and 6to4 contain any IPv4 address.
  ['2002::', 16, 'special'],
  ['2000::', 3, 'public'],
]

/** IPv6 ranges that contain an IPv4 address: mapped, compatible, or translated by NAT64. */
const v4Inside: readonly (readonly [network: string, bits: number])[] = [
  ['::ffff:0:0', 96],
  ['::ffff:0:0:0', 96],
  ['64:ff9b::', 96],
]

/** Anything that is not a valid address is special. */
export function addressKind(address: string): AddressKind {
  const four = fourOf(address)
  if (four !== undefined) return kindBy(v4Rows, four, 'public')
  const six = sixOf(address)
  if (six === undefined) return 'special'
  for (const [network, bits] of v4Inside)
    if (isWithin(six, network, bits)) return kindBy(v4Rows, BigInt.asUintN(32, six), 'public')
  return kindBy(v6Rows, six, 'special')
}

export function isAllowedAddress(address: string, { allowPrivate, allowLoopback }: AddressPolicy): boolean {
  const allowed: Readonly<Record<AddressKind, boolean>> = {
    public: true,
    private: allowPrivate,
    loopback: allowLoopback,
    special: false,
  }
  return allowed[addressKind(address)]
}

/** Whether a server at addresses of the kinds in `own` may redirect to an address of this kind. */
export const mayLeadTo = (kind: AddressKind, own: ReadonlySet<AddressKind>): boolean =>
  kind === 'public' || (kind !== 'special' && own.has(kind))

function kindBy(rows: readonly Row[], value: bigint, otherwise: AddressKind): AddressKind {
  return rows.find(([network, bits]) => isWithin(value, network, bits))?.[2] ?? otherwise
}

function isWithin(value: bigint, network: string, bits: number): boolean {
  const four = fourOf(network)
  const shift = BigInt((four === undefined ? 128 : 32) - bits)
  return value >> shift === (four ?? sixOf(network) ?? 0n) >> shift
}

function fourOf(address: string): bigint | undefined {
  const parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(address)?.slice(1).map(Number)
  if (!parts?.every((part) => part < 256)) return undefined
  return parts.reduce((value, part) => value * 256n + BigInt(part), 0n)
}

function sixOf(address: string): bigint | undefined {
  const groups = addressGroups((address.split('%')[0] ?? '').toLowerCase())
  return groups?.reduce((value, group) => (value << 16n) + BigInt(group), 0n)
}

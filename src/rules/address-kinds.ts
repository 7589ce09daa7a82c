// What kind of place an IP address is, for deciding whether the service may be led there by somebody else's word.
import { BlockList, isIP } from 'node:net'

export type AddressKind = 'public' | 'private' | 'loopback' | 'link-local' | 'reserved'

/** The first row that has an address says what it is. Metadata services of clouds count as link-local wherever they are. */
const rows: readonly (readonly [AddressKind, readonly string[]])[] = [
  ['link-local', ['169.254.0.0/16', 'fe80::/10', 'fd00:ec2::254/128', '100.100.100.200/32', '192.0.0.192/32']],
  ['loopback', ['127.0.0.0/8', '::1/128']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7', 'fec0::/10']],
  [
    'reserved',
    [
      '0.0.0.0/8', '192.0.0.0/24', '192.0.2.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/3',
      '::/96', '64:ff9b::/96', '64:ff9b:1::/48', '100::/64', '2001::/32', '2001:db8::/32', '2002::/16', 'ff00::/8',
    ], // biome-ignore format: a list to read
  ],
]

const lists = rows.map(([kind, networks]) => {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', prefix] = network.split('/')
    list.addSubnet(address, Number(prefix), isIP(address) === 4 ? 'ipv4' : 'ipv6')
  }
  return [kind, list] as const
})

/** What is no address is reserved: nobody goes there. */
export function addressKind(address: string): AddressKind {
  const plain = address.replace(/^\[|\]$|%.*$/g, '')
  const version = isIP(plain)
  if (version === 0) return 'reserved'
  // An IPv4 address in IPv6 clothes is what it wears: the lists know.
  return lists.find(([, list]) => list.check(plain, version === 4 ? 'ipv4' : 'ipv6'))?.[0] ?? 'public'
}

/** Whether somebody who sits at `own` addresses may send us on to one of this kind. */
export const mayLeadTo = (kind: AddressKind, own: ReadonlySet<AddressKind>): boolean =>
  kind === 'public' || (kind !== 'reserved' && own.has(kind))

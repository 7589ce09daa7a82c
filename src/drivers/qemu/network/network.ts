// The network of a guest. `sealed` (Linux): QEMU and its user network are in a separate network namespace, connected only
// by an uplink that refuses the host's loopback. `user`: without the namespace, so a guest can reach services on the
// host's loopback.
import path from 'node:path'
import type { Forward, VmSpec } from '../../driver.ts'

export type NetworkKind = 'sealed' | 'user'

export const defaultNetwork: NetworkKind = process.platform === 'linux' ? 'sealed' : 'user'

export interface PortAccess {
  readonly kind: NetworkKind
  readonly ip: string
  readonly ports: readonly { readonly protocol: Forward['protocol']; readonly port: number }[]
}

export const portAccessOf = (kind: NetworkKind, { ip, forwards, screen }: VmSpec): PortAccess => ({
  kind,
  ip,
  ports: [
    ...forwards.map(({ protocol, hostPort }) => ({ protocol, port: hostPort })),
    ...(screen ? [{ protocol: 'tcp' as const, port: screen.port }] : []),
  ],
})

/** Inside the namespace QEMU binds any address: the uplink decides which address of the host leads there. */
export const listenAddress = (kind: NetworkKind, ip: string): string => (kind === 'sealed' ? '0.0.0.0' : ip)

/** The guest's first network device: 10.0.2.15, gateway 10.0.2.2, resolver 10.0.2.3. */
export function networkArgument(kind: NetworkKind, { ip, forwards }: VmSpec): string {
  const address = listenAddress(kind, ip)
  const hostForwards = forwards.map(
    ({ protocol, hostPort, guestPort }) => `hostfwd=${protocol}:${address}:${hostPort}-:${guestPort}`,
  )
  return ['user', 'id=net', 'ipv6=off', ...hostForwards].join(',')
}

export const sealedName = 'svc3-sealed'

/**
 * The prefix of a command that runs sealed. Inside, the uplink resolves names (the host's resolver may be on its
 * loopback), and link-local addresses are unreachable, because clouds serve the host's credentials there. If any of it
 * fails, the command does not run.
 */
export function sealedPrefix(): readonly string[] {
  const isRoot = process.getuid?.() === 0
  const enter = `set -e
printf 'nameserver 10.0.2.3\\n' > resolv.conf
resolver=$(readlink -f /etc/resolv.conf)
[ ! -e "$resolver" ] || mount --bind resolv.conf "$resolver"
ip route add unreachable 169.254.0.0/16
exec "$@"`
  const namespaces = [...(isRoot ? [] : ['--user', '--map-root-user']), '--net', '--mount']
  return ['unshare', ...namespaces, '--', '/bin/sh', '-c', enter, sealedName]
}

export const networkPlaces = (runtime: string) => ({
  api: path.join(runtime, 'net'),
  pid: path.join(runtime, 'net.pid'),
  log: path.join(runtime, 'net.log'),
  /** A FIFO that QEMU holds open, so that the uplink notices its end. */
  life: path.join(runtime, 'life'),
})

// The TCP ports that programs of this host listen on, from /proc or netstat. On macOS they have to be known, because a
// program can listen on a port of one address although another has that port on all addresses.
import { exec } from '../../platform/exec.ts'
import { readFileIfPresent } from '../../platform/files.ts'
import { waitingAddress } from '../../rules/ports.ts'

interface Listener {
  readonly address: string
  readonly port: number
}

const firstPort = 1_024
const listening = '0A'
const any = new Set(['0.0.0.0', '::'])
/** Several agents of one process share one list. */
const cachedMs = 2_000
const netstatMs = 10_000
let last: { readonly atMs: number; readonly listeners: Promise<readonly Listener[]> } | undefined

export function listeners(): Promise<readonly Listener[]> {
  const atMs = performance.now()
  if (!last || atMs - last.atMs > cachedMs) last = { atMs, listeners: read() }
  return last.listeners
}

async function read(): Promise<readonly Listener[]> {
  if (process.platform === 'darwin') {
    const answer = await exec('netstat', ['-an', '-p', 'tcp'], { timeoutMs: netstatMs }).catch(() => undefined)
    return parseNetstat(answer?.stdout ?? '')
  }
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map((file) => readFileIfPresent(file).catch(() => undefined)),
  )
  return tables.flatMap((table) => parseListeners(table ?? ''))
}

/** Lines such as `0: 0100007F:1F90 00000000:0000 0A …`: address in the byte order of the machine, port, state. */
export function parseListeners(table: string): Listener[] {
  const found: Listener[] = []
  for (const match of table.matchAll(/^[ \t]*\d+: ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) \S+ ([0-9A-F]{2}) /gm)) {
    const [, address = '', port = '', state] = match
    if (state === listening) found.push({ address: addressOf(address), port: Number.parseInt(port, 16) })
  }
  return found
}

/** Lines such as `tcp4 0 0 *.5900 *.* LISTEN`, as macOS writes them. */
export function parseNetstat(text: string): Listener[] {
  const found: Listener[] = []
  for (const [, address = '', port = ''] of text.matchAll(/^tcp\d*\s+\d+\s+\d+\s+(\S+)\.(\d+)\s+\S+\s+LISTEN\b/gm))
    found.push({ address: address === '*' ? '0.0.0.0' : address, port: Number(port) })
  return found
}

/** For little-endian machines, as all supported ones are. IPv6 addresses stay in hex, except `::` and mapped IPv4. */
function addressOf(hex: string): string {
  if (hex.length === 8) return ipv4Of(hex)
  if (/^0+$/.test(hex)) return '::'
  return hex.startsWith('0000000000000000FFFF0000') ? ipv4Of(hex.slice(24)) : hex
}

const ipv4Of = (hex: string): string =>
  (hex.match(/../g) ?? [])
    .reverse()
    .map((pair) => Number.parseInt(pair, 16))
    .join('.')

/**
 * Returns the ports that cannot be bound on an address or on the address of its waiting slots: a claim moves a slot's
 * ports from there to the first. `own` are the ports of this node's VMs.
 */
export function busyPorts(all: readonly Listener[], ip: string, own: ReadonlySet<number>): number[] {
  const concerned = new Set([ip, waitingAddress(ip), ...any])
  const ports = all
    .filter(({ address, port }) => port >= firstPort && !own.has(port) && (concerned.has(address) || any.has(ip)))
    .map(({ port }) => port)
  return [...new Set(ports)].sort((a, b) => a - b)
}

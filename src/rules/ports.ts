// Ports of nodes: which ones users may reserve, and which ones a VM gets.
import { type Cause, invalidField } from '../api/errors.ts'
import type { Vm } from '../api/vms/vms.ts'

export type PortMapping = Readonly<Vm['reservedPorts'][number]>

/** Ports of the host and of the service. */
const forbidden: ReadonlySet<number> = new Set([22, 443, 6443])
const lastPort = 65_535
/** The limit for one VM. */
const maxReserved = 32

const firsts = { ssh: 8_822, vnc: 5_999, screenshare: 5_900 } as const
type PortKind = keyof typeof firsts

/** Parses `NODE:VM[,NODE:VM]`, each optionally with `/udp` or `/tcp`. */
export function parseReservedPorts(text: string): { ports: PortMapping[]; causes: Cause[] } {
  const ports: PortMapping[] = []
  const problems: string[] = []
  for (const part of text.split(',').map((each) => each.trim())) {
    if (part === '') continue
    if (ports.length > maxReserved || problems.length > maxReserved) break
    const match = /^(\d{1,5}):(\d{1,5})(?:\/(tcp|udp))?$/i.exec(part)
    if (!match) {
      problems.push(`invalid port "${part.slice(0, 50)}"; use NODE:VM, such as 8080:80 or 5353:53/udp`)
      continue
    }
    const port: PortMapping = {
      nodePort: Number(match[1]),
      vmPort: Number(match[2]),
      protocol: match[3]?.toLowerCase() === 'udp' ? 'udp' : 'tcp',
    }
    const problem = problemOf(port, ports)
    if (problem) problems.push(problem)
    else ports.push(port)
  }
  if (ports.length > maxReserved) problems.push(`a VM can reserve at most ${maxReserved} ports`)
  const causes = problems.map((message) => invalidField('reservedPorts', `reservedPorts: ${message}`))
  return { ports, causes }
}

function problemOf({ nodePort, vmPort, protocol }: PortMapping, earlier: readonly PortMapping[]): string | undefined {
  for (const port of [nodePort, vmPort]) if (port < 1 || port > lastPort) return `${port} is not a port (1 to 65535)`
  if (nodePort < 1_024 || forbidden.has(nodePort))
    return `port ${nodePort} cannot be reserved; use 1024 or higher, except 6443`
  if (earlier.some((other) => other.nodePort === nodePort && other.protocol === protocol))
    return `port ${nodePort}/${protocol} is listed twice`
  return undefined
}

/** The first free port of its kind; undefined if there is none. */
export function freePort(kind: PortKind, isTaken: (port: number) => boolean): number | undefined {
  for (let port = firsts[kind]; port <= lastPort; port += 1) if (!forbidden.has(port) && !isTaken(port)) return port
  return undefined
}

/** The address of a waiting pool slot: a loopback address of the host, which is not reachable from elsewhere. */
export function waitingAddress(ip: string): string {
  const [third = '0', fourth = '0'] = ip.split('.').slice(2)
  return `127.83.${third}.${fourth}`
}

// The report of this node to the server: its architecture, capacity, driver and ports in use.
import dgram from 'node:dgram'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import type { Architecture } from '../../api/architecture.ts'
import type { HostCheck, NodeReport } from '../../api/nodes/node-report.ts'
import type { Driver, Probe } from '../../drivers/driver.ts'
import type { Log } from '../../platform/log.ts'
import { busyPorts, listeners } from './listening-ports.ts'

/** Settings of the operator that replace what is detected. */
export interface CapacityOptions {
  readonly architecture?: Architecture | undefined
  readonly ip?: string | undefined
  readonly cpu?: number | undefined
  readonly memoryMiB?: number | undefined
  readonly maxVms?: number | undefined
}

interface CapacityContext {
  readonly options: CapacityOptions
  readonly driver: Driver
  readonly version: string
  readonly folder: string
  readonly log: Pick<Log, 'warn'>
}

interface CapacityInput {
  /** The server, by whose address the node determines its own. */
  readonly apiUrl: string
  readonly images: readonly string[]
  readonly checks?: readonly HostCheck[]
  readonly cache: Pick<NodeReport, 'cache' | 'imageSpace' | 'peerPort'>
  readonly ownPorts: ReadonlySet<number>
}

const probeEveryMs = 30_000
const mib = 2 ** 20
/** The rest is left to the host. */
const memoryShare = 0.9

export function createCapacity({ options, driver, version, folder, log }: CapacityContext) {
  let loggedProblem: string | undefined
  let probed: { readonly atMs: number; readonly probe: Probe } | undefined
  const addresses = new Map<string, Promise<string>>()

  const probe = async (): Promise<Probe> => {
    if (!probed || performance.now() - probed.atMs > probeEveryMs)
      probed = { atMs: performance.now(), probe: await driver.probe() }
    return probed.probe
  }
  const addressTowards = (apiUrl: string): Promise<string> => {
    if (options.ip !== undefined) return Promise.resolve(options.ip)
    const known = addresses.get(apiUrl) ?? ownAddress(apiUrl)
    addresses.set(apiUrl, known)
    return known
  }

  return {
    /** Forgets the node's address, which may have changed with the connection. */
    moved: () => addresses.clear(),
    async report({ apiUrl, images, checks = [], cache, ownPorts }: CapacityInput): Promise<NodeReport> {
      const found = await probe()
      const { ok, problem, version: driverVersion, architectures, maxVms: driverLimit, maxMacosVms } = found
      const architecture = options.architecture ?? chooseArchitecture(architectures)
      const trouble = ok ? mismatch(architecture, architectures) : (problem ?? 'The hypervisor does not work')
      if (trouble !== undefined && trouble !== loggedProblem)
        log.warn('this node cannot run VMs', { kind: driver.name, problem: trouble })
      loggedProblem = trouble
      const ip = await addressTowards(apiUrl)
      const maxVms = smallest(options.maxVms, driverLimit)
      const blocked = checks.find(({ result, preventsMacos }) => result === 'problem' && preventsMacos)
      const noMacos = found.noMacos?.[architecture] ?? (blocked && `${blocked.found}. ${blocked.advice}`)
      return {
        ip,
        architecture,
        cpu: options.cpu ?? os.availableParallelism(),
        memoryMiB: options.memoryMiB ?? Math.floor((os.totalmem() * memoryShare) / mib),
        // No driver passes GPUs through.
        gpus: 0,
        ...(maxVms !== undefined && { maxVms }),
        ...(maxMacosVms !== undefined && { maxMacosVms: blocked ? 0 : maxMacosVms }),
        ...(noMacos !== undefined && { noMacos: noMacos.slice(0, 2_048) }),
        diskFreeGb: await freeGb(folder),
        driver: driver.name,
        driverVersion: driverVersion.slice(0, 256),
        version,
        os: `${os.type()} ${os.release()}`.slice(0, 256),
        ...(trouble !== undefined && { problem: trouble.slice(0, 2_048) }),
        ...(checks.length > 0 && { checks: [...checks] }),
        ...(driver.warm && { takesSlots: true }),
        takesReferences: true,
        images: images.slice(0, 1_000),
        ...cache,
        busyPorts: driver.isSimulation ? [] : busyPorts(await listeners(), ip, ownPorts).slice(0, 20_000),
      }
    },
  }
}

const hostArchitectures: Readonly<Record<string, Architecture>> = { arm64: 'arm64', x64: 'amd64' }

/** The host's architecture, on which VMs are fast, if the hypervisor has it. */
function chooseArchitecture(known: readonly Architecture[]): Architecture {
  const own = hostArchitectures[process.arch]
  return (own && known.includes(own) ? own : known[0]) ?? own ?? 'amd64'
}

const mismatch = (desired: Architecture, known: readonly Architecture[]): string | undefined =>
  known.includes(desired)
    ? undefined
    : `the hypervisor runs ${known.join(' and ') || 'nothing'}, but the node is configured for ${desired}; install the missing packages, or start the agent with another --architecture`

const smallest = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : b === undefined ? a : Math.min(a, b)

async function freeGb(folder: string): Promise<number> {
  const { bavail, bsize } = await fs.statfs(folder)
  return Math.floor((bavail * bsize) / 2 ** 30)
}

/** The address of the interface that reaches the server. Nothing is sent: connecting a UDP socket only looks up the route. */
export async function ownAddress(apiUrl: string): Promise<string> {
  const { hostname, port, protocol } = new URL(apiUrl)
  const host = hostname.replace(/^\[|\]$/g, '')
  const socket = dgram.createSocket({ type: host.includes(':') ? 'udp6' : 'udp4' })
  try {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    socket.once('error', reject)
    // Also called with an error if the name of the host cannot be resolved.
    const connected = (error?: Error): void => (error ? reject(error) : resolve())
    socket.connect(Number(port) || (protocol === 'https:' ? 443 : 80), host, connected)
    await promise
    return addressFor(socket.address().address)
  } catch (error) {
    if (error instanceof NoAddress) throw error
    return firstAddress(os.networkInterfaces()) ?? '127.0.0.1'
  } finally {
    socket.close()
  }
}

export class NoAddress extends Error {
  override readonly name = 'NoAddress'
}

type Interfaces = ReturnType<typeof os.networkInterfaces>

/** Ports of VMs are forwarded on IPv4, so a host that reaches its server by IPv6 reports another address. */
export function addressFor(address: string, interfaces: Interfaces = os.networkInterfaces()): string {
  const mapped = address.replace(/^::ffff:(?=\d+\.)/i, '')
  if (net.isIPv4(mapped)) return mapped
  if (address === '::1') return '127.0.0.1'
  const found = firstAddress(interfaces)
  if (found !== undefined) return found
  throw new NoAddress(`this host reaches the service from ${address} and has no IPv4 address, which its VMs need`)
}

function firstAddress(interfaces: Interfaces): string | undefined {
  const all = Object.values(interfaces).flat()
  return all.find((one) => one !== undefined && !one.internal && one.family === 'IPv4')?.address
}

// The overview of a fleet: problems, free capacity, and the load of nodes.
import type { Node } from '../../../src/api/nodes/nodes.ts'
import type { Certificate } from '../../../src/api/service/certificates.ts'
import type { Pool } from '../../../src/api/vms/pools.ts'
import type { Vm } from '../../../src/api/vms/vms.ts'
import { count } from '../../ui/sizes.ts'
import { capacityOf } from '../nodes/model.ts'
import { nodePath, poolPath, vmPath } from '../paths.ts'
import { waitingReason } from '../vms/model.ts'

export interface Concern {
  readonly key: string
  readonly tone: 'bad' | 'warn'
  readonly text: string
  readonly cause?: string | undefined
  readonly path: string
  /** The oldest, if the concern covers several objects. */
  readonly since?: string | undefined
}

interface Fleet {
  readonly vms: readonly Vm[]
  readonly nodes: readonly Node[]
  readonly pools: readonly Pool[]
  readonly certificate?: Pick<Certificate, 'notAfter' | 'selfSigned'> | undefined
}

/** Up to this many objects are listed individually; more become one line. */
const namedEach = 3
/** VMs that are pending for less are not reported. */
const pendingMs = 60_000
/** Below this the next image may not fit. */
const scarceGb = 20
const dayMs = 86_400_000
/** When an expiring certificate is reported, and when it becomes critical. */
const [renewMs, urgentMs] = [30 * dayMs, 7 * dayMs]

const oldest = (times: readonly (string | undefined)[]): string | undefined =>
  times.reduce((first, each) => (each !== undefined && (first === undefined || each < first) ? each : first), undefined)

/** Problems in order of severity. */
export function concernsOf({ vms, nodes, pools, certificate }: Fleet, nowMs: number): readonly Concern[] {
  const lost = nodes.filter(({ phase }) => phase !== 'READY')
  const failed = vms.filter(({ powerState }) => powerState === 'failed')
  const waiting = vms.filter(
    ({ powerState, node, deployDate }) =>
      powerState === 'pending' && node === undefined && nowMs - Date.parse(deployDate) >= pendingMs,
  )
  const full = nodes.filter(({ phase, diskFreeGb }) => phase === 'READY' && (diskFreeGb ?? scarceGb) < scarceGb)
  const short = pools.filter(({ paused, reason }) => !paused && reason !== undefined)
  return [
    ...eachOrAll('bad', lost, `${count(lost.length, 'node is', 'nodes are')} not connected`, '/nodes', (node) => ({
      text: `Node ${node.name} is not connected`,
      path: nodePath(node),
      since: node.lastSeenAt,
    })),
    ...eachOrAll('bad', failed, `${count(failed.length, 'VM', 'VMs')} failed`, '/vms?state=failed', (vm) => ({
      text: `VM ${vm.name} failed`,
      cause: vm.conditions.find(({ status, message }) => status === 'False' && message !== '')?.message,
      path: vmPath(vm),
      since: vm.deployDate,
    })),
    ...expiring(certificate, nowMs),
    ...eachOrAll(
      'warn',
      full,
      `${count(full.length, 'node has', 'nodes have')} less than ${scarceGb} GiB of disk left`,
      '/nodes?sort=disk-free',
      (node) => ({
        text: `Node ${node.name} has ${node.diskFreeGb ?? 0} GiB of disk left`,
        path: nodePath(node),
      }),
    ),
    ...[...Map.groupBy(waiting, waitingReason)].map(([cause, those]) => ({
      key: `pending ${cause}`,
      tone: 'warn' as const,
      text: `${count(those.length, 'VM', 'VMs')} pending`,
      cause,
      path: '/vms?state=pending',
      since: oldest(those.map(({ deployDate }) => deployDate)),
    })),
    ...short.map((pool) => ({
      key: `pool ${pool.namespace}/${pool.name}`,
      tone: 'warn' as const,
      text: `Pool ${pool.name} has ${pool.ready} of ${pool.minIdleNow} warm VMs`,
      cause: pool.reason,
      path: poolPath(pool),
    })),
  ]
}

/** The service renews self-signed certificates itself. */
function expiring(certificate: Fleet['certificate'], nowMs: number): readonly Concern[] {
  if (!certificate || certificate.selfSigned) return []
  const leftMs = Date.parse(certificate.notAfter) - nowMs
  if (leftMs > renewMs) return []
  const tone = leftMs < urgentMs ? 'bad' : 'warn'
  return [
    {
      key: 'certificate',
      tone,
      text:
        leftMs < 0
          ? 'The HTTPS certificate has expired'
          : `The HTTPS certificate expires in ${count(Math.floor(leftMs / dayMs), 'day', 'days')}`,
      cause: 'Upload a new one',
      path: '/',
    },
  ]
}

function eachOrAll<T extends { readonly namespace: string; readonly name: string }>(
  tone: Concern['tone'],
  items: readonly T[],
  all: string,
  path: string,
  concern: (item: T) => Omit<Concern, 'key' | 'tone'>,
): readonly Concern[] {
  const each = items.map((item) => ({ key: `${all} ${item.namespace}/${item.name}`, tone, ...concern(item) }))
  if (items.length <= namedEach) return each
  return [{ key: all, tone, text: all, path, since: oldest(each.map(({ since }) => since)) }]
}

interface FleetCapacity {
  /** The architecture or namespace. */
  readonly name: string
  readonly nodes: number
  readonly ready: number
  readonly freeCores: number
  readonly cores: number
  readonly freeGib: number
  readonly gib: number
  /** The largest number of cores that one VM can get, with the memory free on that node. */
  readonly largest: { readonly cores: number; readonly gib: number } | undefined
}

/** Reports whether a node takes new VMs. Others count as full. */
const takesVms = ({ phase, cordoned, vms, maxVms }: Node): boolean =>
  phase === 'READY' && !cordoned && (maxVms === undefined || vms.length < maxVms)

export function capacityBy(kind: 'architecture' | 'namespace', nodes: readonly Node[]): readonly FleetCapacity[] {
  return [...Map.groupBy(nodes, (node) => node[kind])]
    .map(([name, own]) => {
      const sum = (of: (node: Node) => number): number => own.reduce((total, node) => total + of(node), 0)
      const free = own.filter(takesVms).map((node) => {
        const { cores, memory } = capacityOf(node)
        return { cores: cores.whole - cores.used, gib: memory.whole - memory.used }
      })
      const fits = free.filter(({ cores, gib }) => cores > 0 && gib > 0)
      return {
        name,
        nodes: own.length,
        ready: own.filter(({ phase }) => phase === 'READY').length,
        freeCores: free.reduce((total, { cores }) => total + cores, 0),
        cores: sum((node) => capacityOf(node).cores.whole),
        freeGib: free.reduce((total, { gib }) => total + gib, 0),
        gib: sum((node) => capacityOf(node).memory.whole),
        largest: fits.toSorted((a, b) => b.cores - a.cores || b.gib - a.gib)[0],
      }
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** The used share of cores or memory, whichever is higher, in percent. */
export function loadOf(node: Node): number {
  const { cores, memory } = capacityOf(node)
  const share = ({ used, whole }: { readonly used: number; readonly whole: number }) => (whole > 0 ? used / whole : 0)
  return Math.round(100 * Math.min(1, Math.max(0, share(cores), share(memory))))
}

const collator = new Intl.Collator('en', { numeric: true })

/** mac-2 sorts before mac-10. */
export const inNaturalOrder = (nodes: readonly Node[]): readonly Node[] =>
  nodes.toSorted((a, b) => collator.compare(a.name, b.name) || collator.compare(a.namespace, b.namespace))

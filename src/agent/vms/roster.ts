// The VMs of this node, a worker for each, and what the server's lists do to them. Nothing goes because a server does not
// list it, unless that server speaks for the data that the VM came from, and is as far as this node has seen.
import type { AgentMessage, DesiredVm } from '../../api/nodes/agent.ts'
import type { Log } from '../../platform/log.ts'
import { type Claim, whyKept } from '../state/authority.ts'
import type { LastSeenStore } from '../state/last-seen-store.ts'
import { portsOf } from './spec.ts'
import { type VmContext, VmWorker } from './vm.ts'

type Hello = Extract<AgentMessage, { type: 'HELLO' }>

interface Roster {
  /** VMs of an earlier agent; returns how many. */
  adopt(): Promise<number>
  hello(hello: Hello): void
  setDesired(vm: DesiredVm): void
  get(uid: string): VmWorker | undefined
  all(): readonly VmWorker[]
  /** Every port that the server knows to be taken by a VM of this node. */
  ports(): ReadonlySet<number>
  stop(): Promise<void>
}

interface RosterOptions {
  readonly context: Omit<VmContext, 'ended'>
  readonly lastSeen: LastSeenStore
  /** What the cluster calls this node now. */
  nodeUid(): string
  /** VMs that are not in the first HELLO go, whatever speaks against it. */
  readonly removeUnknown: boolean
  readonly log: Log
}

export function createRoster({ context, lastSeen, nodeUid, removeUnknown, log }: RosterOptions): Roster {
  const workers = new Map<string, VmWorker>()
  const full: VmContext = { ...context, ended: (uid) => workers.delete(uid) }
  // Once: an option that was left in a unit file must not make every restored backup a loss.
  let mustRemove = removeUnknown
  /** Missing before the first HELLO, before which nothing else comes. */
  let current: Claim | undefined

  const give = (vm: DesiredVm, claim: Claim): void => {
    try {
      const known = workers.get(vm.uid) ?? taken(vm.slot)
      // A slot that is a VM by now: what is said of it comes too late.
      if (!known && byFolder(vm.uid)) return
      const worker = known ?? new VmWorker(full, vm.uid, 'new')
      workers.set(vm.uid, worker)
      worker.setDesired(vm, claim)
      const { store, node } = claim
      lastSeen.heard({ store, node, revision: vm.revision })
    } catch (error) {
      log.error('the server requested a VM with an invalid id', { name: vm.name, namespace: vm.namespace }, error)
    }
  }

  const byFolder = (uid: string): VmWorker | undefined => {
    for (const worker of workers.values()) if (worker.handle.uid === uid) return worker
    return undefined
  }

  /** A slot that a VM takes over; one that goes already is none. */
  const taken = (slot: string | undefined): VmWorker | undefined => {
    const worker = slot === undefined ? undefined : workers.get(slot)
    if (!worker || worker.isDiscarded) return undefined
    workers.delete(worker.uid)
    return worker
  }

  const passOver = (uid: string, worker: VmWorker, claim: Claim): void => {
    if (worker.isDiscarded) return
    const { name = uid, namespace } = worker.desired ?? {}
    const about = { name, namespace, folder: worker.handle.folder }
    const reason = whyKept(worker.ownership, claim)
    if (reason === undefined || mustRemove) {
      log.warn('removing a VM that the server does not list', { ...about, reason: reason && '--remove-unknown' })
      worker.discard()
    } else {
      log.error(kept, { ...about, reason })
      worker.keep()
    }
  }

  return {
    async adopt() {
      const found = await context.tools.handles.list()
      for (const { uid, record } of found) {
        const worker = new VmWorker(full, uid, record)
        workers.set(worker.uid, worker)
        if (typeof record === 'object' && record.origin) lastSeen.remember(record.origin)
        worker.adopt()
      }
      return found.length
    },
    hello({ vms, kept: spared, store }) {
      if (!Array.isArray(vms)) throw new TypeError('it has none')
      const listed = new Set([...vms.flatMap(({ uid, slot = uid }) => [uid, slot]), ...spared])
      const newer = new Set(vms.filter((vm) => workers.get(vm.uid)?.isAheadOf(vm, store.uid)))
      const claim = lastSeen.hear(store, nodeUid(), newer.size > 0)
      current = { ...claim, isAnew: false }
      for (const [uid, worker] of workers) if (!listed.has(uid)) passOver(uid, worker, claim)
      mustRemove = false
      for (const vm of vms) give(vm, { ...claim, isAnew: claim.isAnew || newer.has(vm) })
    },
    setDesired: (vm) => void (current && give(vm, current)),
    get: (uid) => workers.get(uid) ?? byFolder(uid),
    all: () => [...workers.values()],
    ports() {
      // Ports of VMs that the server does not know are reported as busy, like those of any other program.
      const known = [...workers.values()].filter(({ isSilent }) => !isSilent)
      return new Set(known.flatMap(({ desired }) => (desired ? portsOf(desired) : [])))
    },
    async stop() {
      await Promise.all([...workers.values()].map((worker) => worker.stop()))
      await lastSeen.stop()
    },
  }
}

const kept =
  'A VM that the server does not list is KEPT and keeps running. Restore the server data that it belongs to, or start the agent once with --remove-unknown to remove it'

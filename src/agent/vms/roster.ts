// The VMs of this node, with a worker for each, and what the server's lists mean for them. A VM that a list does not contain is
// removed only if the list comes from the data that the VM belongs to, and is at least as new as what this node has seen.
import type { AgentMessage, DesiredVm } from '../../api/nodes/agent.ts'
import type { Log } from '../../platform/log.ts'
import { type Claim, whyKept } from '../state/authority.ts'
import type { LastSeenStore } from '../state/last-seen-store.ts'
import { portsOf } from './spec.ts'
import { type VmContext, VmWorker } from './vm.ts'

type Hello = Extract<AgentMessage, { type: 'HELLO' }>

interface RosterOptions {
  readonly context: Omit<VmContext, 'ended'>
  readonly lastSeen: LastSeenStore
  /** The node's present uid in the cluster. */
  nodeUid(): string
  /** Removes VMs that the first HELLO does not contain, even those that would be kept. */
  readonly removeUnknown: boolean
  readonly log: Log
}

export class Roster {
  readonly #options: RosterOptions
  readonly #context: VmContext
  readonly #workers = new Map<string, VmWorker>()
  /** For the first HELLO only: if the option stays in a unit file, a restored backup must not delete VMs. */
  #mustRemove: boolean
  /** Undefined before the first HELLO. */
  #claim: Claim | undefined

  constructor(options: RosterOptions) {
    this.#options = options
    this.#mustRemove = options.removeUnknown
    this.#context = { ...options.context, ended: (uid) => this.#workers.delete(uid) }
  }

  /** Takes over the VMs of an earlier agent. Returns their number. */
  async adopt(): Promise<number> {
    const found = await this.#context.tools.handles.list()
    for (const { uid, record } of found) {
      const worker = new VmWorker(this.#context, uid, record)
      this.#workers.set(worker.uid, worker)
      if (typeof record === 'object' && record.origin) this.#options.lastSeen.remember(record.origin)
      worker.adopt()
    }
    return found.length
  }

  hello({ vms, kept, store }: Hello): void {
    if (!Array.isArray(vms)) throw new TypeError('it has none')
    const { lastSeen, nodeUid } = this.#options
    const listed = new Set([...vms.flatMap(({ uid, slot = uid }) => [uid, slot]), ...kept])
    const outdated = new Set(vms.filter((vm) => this.#workers.get(vm.uid)?.isAheadOf(vm, store.uid)))
    const claim = lastSeen.hear(store, nodeUid(), outdated.size > 0)
    this.#claim = { ...claim, isReset: false }
    for (const [uid, worker] of this.#workers) if (!listed.has(uid)) this.#handleUnlisted(uid, worker, claim)
    this.#mustRemove = false
    for (const vm of vms) this.#give(vm, { ...claim, isReset: claim.isReset || outdated.has(vm) })
  }

  setDesired(vm: DesiredVm): void {
    if (this.#claim) this.#give(vm, this.#claim)
  }

  /** Finds a VM by its uid, or by that of its folder. */
  get(uid: string): VmWorker | undefined {
    return this.#workers.get(uid) ?? this.#byFolder(uid)
  }

  all(): readonly VmWorker[] {
    return [...this.#workers.values()]
  }

  /** Returns the ports of VMs that the server knows. Ports of other VMs count as used by other programs. */
  ports(): ReadonlySet<number> {
    const reported = this.all().filter(({ isSilent }) => !isSilent)
    return new Set(reported.flatMap(({ desired }) => (desired ? portsOf(desired) : [])))
  }

  async stop(): Promise<void> {
    await Promise.all(this.all().map((worker) => worker.stop()))
    await this.#options.lastSeen.stop()
  }

  #give(vm: DesiredVm, claim: Claim): void {
    try {
      const known = this.#workers.get(vm.uid) ?? this.#takeSlot(vm.slot)
      // The state of a slot that a VM has taken over in the meantime is outdated.
      if (!known && this.#byFolder(vm.uid)) return
      const worker = known ?? new VmWorker(this.#context, vm.uid, 'new')
      this.#workers.set(vm.uid, worker)
      worker.setDesired(vm, claim)
      const { store, node } = claim
      this.#options.lastSeen.heard({ store, node, revision: vm.revision })
    } catch (error) {
      const { name, namespace } = vm
      this.#options.log.error('the server requested a VM with an invalid id', { name, namespace }, error)
    }
  }

  #byFolder(uid: string): VmWorker | undefined {
    return this.all().find(({ handle }) => handle.uid === uid)
  }

  /** Removes the slot that a VM takes over from the map. Undefined if the slot is unknown or being removed. */
  #takeSlot(slot: string | undefined): VmWorker | undefined {
    const worker = slot === undefined ? undefined : this.#workers.get(slot)
    if (!worker || worker.isDiscarded) return undefined
    this.#workers.delete(worker.uid)
    return worker
  }

  #handleUnlisted(uid: string, worker: VmWorker, claim: Claim): void {
    if (worker.isDiscarded) return
    const { log } = this.#options
    const { name = uid, namespace } = worker.desired ?? {}
    const about = { name, namespace, folder: worker.handle.folder }
    const reason = whyKept(worker.ownership, claim)
    if (reason === undefined || this.#mustRemove) {
      log.warn('removing a VM that the server does not list', { ...about, reason: reason && '--remove-unknown' })
      worker.discard()
    } else {
      log.error(keptMessage, { ...about, reason })
      worker.keep()
    }
  }
}

const keptMessage =
  'A VM that the server does not list is KEPT and keeps running. Restore the server data that it belongs to, or start the agent once with --remove-unknown to remove it'

// An index of the VMs that use each image or ISO, updated with the records of VMs.
import type { VmRecord } from '../../store/records/fleet-records.ts'
import type { View } from '../../store/view.ts'

export class ImageUses {
  readonly #users = new Map<string, Set<string>>()
  readonly #usedBy: (record: VmRecord) => string | undefined
  readonly #listeners = new Set<(names: readonly string[]) => void>()
  readonly stop: () => void

  /** `usedBy` returns the name of the image or ISO that a VM uses. */
  constructor(view: View<VmRecord>, usedBy: (record: VmRecord) => string | undefined) {
    this.#usedBy = usedBy
    for (const { value } of view.range()) this.#add(value)
    this.stop = view.subscribe((changes) => {
      const changed = new Set<string>()
      for (const change of changes) {
        const before = change.previous && this.#usedBy(change.previous.value)
        const after = change.type === 'put' ? this.#usedBy(change.entry.value) : undefined
        if (before === after) continue
        if (change.previous) this.#remove(change.previous.value)
        if (change.type === 'put') this.#add(change.entry.value)
        for (const name of [before, after]) if (name !== undefined) changed.add(name)
      }
      if (changed.size > 0) for (const listener of this.#listeners) listener([...changed])
    })
  }

  /** Notified with the names whose users have changed. */
  subscribe(listener: (names: readonly string[]) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Returns the VMs as `namespace/name`. */
  of(name: string): string[] {
    return [...(this.#users.get(name) ?? [])].toSorted()
  }

  #remove(record: VmRecord): void {
    const used = this.#usedBy(record) ?? ''
    const users = this.#users.get(used)
    users?.delete(nameOf(record))
    if (users?.size === 0) this.#users.delete(used)
  }

  #add(record: VmRecord): void {
    const used = this.#usedBy(record)
    if (used === undefined) return
    const users = this.#users.get(used) ?? new Set()
    this.#users.set(used, users.add(nameOf(record)))
  }
}

const nameOf = ({ namespace, name }: VmRecord): string => `${namespace}/${name}`

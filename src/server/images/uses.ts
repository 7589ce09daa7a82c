// An index of the VMs that use each image or ISO, updated with the records of VMs.
import type { VmRecord } from '../../store/records/fleet-records.ts'
import type { View } from '../../store/view.ts'

export class ImageUses {
  readonly #users = new Map<string, Set<string>>()
  readonly #listeners = new Set<(names: readonly string[]) => void>()
  readonly stop: () => void

  /** `usedBy` returns the name of the image or ISO that a VM uses. */
  constructor(view: View<VmRecord>, usedBy: (record: VmRecord) => string | undefined) {
    for (const { value } of view.range()) this.#usersOf(usedBy(value)).add(nameOf(value))
    this.stop = view.subscribe((changes) => {
      const changed = new Set<string>()
      for (const change of changes) {
        const [before, after] = [change.previous?.value, change.type === 'put' ? change.entry.value : undefined]
        const [previous, current] = [before && usedBy(before), after && usedBy(after)]
        if (previous === current) continue
        if (before) this.#usersOf(previous).delete(nameOf(before))
        if (after) this.#usersOf(current).add(nameOf(after))
        for (const name of [previous, current]) if (name !== undefined) changed.add(name)
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

  #usersOf(name = ''): Set<string> {
    const users = this.#users.get(name) ?? new Set()
    this.#users.set(name, users)
    return users
  }
}

const nameOf = ({ namespace, name }: VmRecord): string => `${namespace}/${name}`

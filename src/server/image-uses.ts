// Which VMs use which image, kept current from the records: nobody looks through all VMs to tell.
import type { VmRecord } from '../store/fleet-records.ts'
import type { View } from '../store/view.ts'

export class ImageUses {
  readonly #users = new Map<string, Set<string>>()
  readonly stop: () => void

  constructor(view: View<VmRecord>) {
    for (const { value } of view.range()) this.#add(value)
    this.stop = view.subscribe((changes) => {
      for (const change of changes) {
        if (change.previous) this.#users.get(change.previous.value.shape.image)?.delete(nameOf(change.previous.value))
        if (change.type === 'put') this.#add(change.entry.value)
      }
    })
  }

  /** As `namespace/name`. */
  of(image: string): string[] {
    return [...(this.#users.get(image) ?? [])].toSorted()
  }

  #add(record: VmRecord): void {
    const users = this.#users.get(record.shape.image) ?? new Set()
    this.#users.set(record.shape.image, users.add(nameOf(record)))
  }
}

const nameOf = ({ namespace, name }: VmRecord): string => `${namespace}/${name}`

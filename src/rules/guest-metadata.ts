// Metadata that a guest can read: keys that callers choose, and reserved keys with facts about the VM.

/** Spaces are allowed because clients of Orka use them: the guest requests `my%20key`. */
const keyForm = /^[A-Za-z0-9_.-](?:[A-Za-z0-9_. -]{0,126}[A-Za-z0-9_.-])?$/
export const metadataKeyRule = 'use letters, digits, spaces and _ . -'

export const isMetadataKey = (key: string): boolean => keyForm.test(key) && key !== '__proto__'

const factKeys = ['orka_vm_id', 'orka_vm_name', 'orka_node_name', 'orka_base_image', 'orka_cpu', 'orka_memory'] as const

/** Keys that guests of Orka know. Callers cannot set them. */
type GuestFacts = Readonly<Record<(typeof factKeys)[number], string>>

export const isReservedMetadataKey = (key: string): boolean => (factKeys as readonly string[]).includes(key)

interface PlacedVm {
  readonly uid: string
  readonly name: string
  readonly node: string
  readonly image: string
  readonly cpu: number
  readonly memoryMiB: number
}

export const guestFacts = ({ uid, name, node, image, cpu, memoryMiB }: PlacedVm): GuestFacts => ({
  orka_vm_id: uid,
  orka_vm_name: name,
  orka_node_name: node,
  orka_base_image: image,
  orka_cpu: String(cpu),
  orka_memory: `${Number((memoryMiB / 1_024).toFixed(2))}G`,
})

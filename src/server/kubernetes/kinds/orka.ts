// What the kinds of Orka share: the group, its labels and annotations, and those of svc3.
export const orka = { group: 'orka.macstadium.com', version: 'v1' } as const

export const archLabel = 'kubernetes.io/arch'
export const configLabel = `${orka.group}/vm-config`
export const descriptionAnnotation = `${orka.group}/description`
export const creatorAnnotation = `${orka.group}/created-by`
/** The name of an annotation for a field that the kinds of Orka do not have. */
export const svc3Name = (name: string): string => `svc3/${name}`

/** Returns undefined for empty text, which clients of Orka send for fields that are not set. */
export const nonEmptyText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

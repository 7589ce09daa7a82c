// What the kinds of the original service share: the group, its labels and annotations, and those of svc3.
export const orka = { group: 'orka.macstadium.com', version: 'v1' } as const

export const archLabel = 'kubernetes.io/arch'
export const configLabel = `${orka.group}/vm-config`
export const descriptionAnnotation = `${orka.group}/description`
export const creatorAnnotation = `${orka.group}/created-by`
/** An annotation for a field that the original's kinds do not have. */
export const svc3Name = (name: string): string => `svc3/${name}`

/** A text that is not empty: clients of the original send fields that are not set as empty texts. */
export const nonEmptyText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

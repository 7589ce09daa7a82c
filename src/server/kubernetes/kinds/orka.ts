// What the kinds of the original service share: its group, its labels and annotations, and ours.
import type { KubeObject, StringMap } from './kind.ts'
import { fieldsOf } from './kind.ts'

export const orka = { group: 'orka.macstadium.com', version: 'v1' } as const

export const archLabel = 'kubernetes.io/arch'
export const configLabel = `${orka.group}/vm-config`
export const descriptionAnnotation = `${orka.group}/description`
export const creatorAnnotation = `${orka.group}/created-by`
/** What the REST API has and the original's kinds do not. */
export const svc3Name = (name: string): string => `svc3/${name}`

export const objectSpec = (object: Readonly<Record<string, unknown>>) => fieldsOf(object.spec)
export const label = (object: KubeObject, name: string): string => object.metadata.labels[name] ?? ''
export const annotationOf = (object: KubeObject, name: string): string => object.metadata.annotations[name] ?? ''

/** Labels that are made from other fields are not kept. */
export const withoutMade = (labels: StringMap): StringMap =>
  Object.fromEntries(Object.entries(labels).filter(([name]) => name !== archLabel))

export const stringOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

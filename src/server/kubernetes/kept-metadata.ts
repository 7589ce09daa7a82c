// Labels and annotations that clients keep with an object, apart from those that are made from its fields.
import { setMetadata } from '../../api/service/metadata.ts'
import type { Kind, KubeObject, Planned, Texts } from './kinds/kind.ts'
import { archLabel, creatorAnnotation } from './kinds/orka.ts'

interface Kept {
  readonly labels: Texts
  readonly annotations: Texts
}

/** What clients keep with an object, without what is made from its other fields. */
export function keptOf(kind: Kind, { metadata }: Pick<KubeObject, 'metadata'>): Kept {
  const made = new Set([creatorAnnotation, ...(kind.madeAnnotations ?? [])])
  const without = (texts: Texts, isMade: (name: string) => boolean): Texts =>
    Object.fromEntries(Object.entries(texts).filter(([name]) => !isMade(name)))
  return {
    labels: without(metadata.labels, (name) => name === archLabel),
    annotations: without(metadata.annotations, (name) => name.startsWith('svc3/') || made.has(name)),
  }
}

export const keeping = (kind: Kind, name: string, kept: Kept): Planned => ({
  operation: setMetadata,
  params: { kind: kind.keptAs ?? '', record: name },
  body: { ...kept },
})

// The table of kinds.
import { eventKind, namespaceKind, nodeKind, podKind, roleBindingKind, serviceAccountKind } from './core.ts'
import { kubeImageKind, kubeIsoKind } from './images.ts'
import type { Kind } from './kind.ts'
import { orkaNodeKind } from './nodes.ts'
import { remoteImageKind, remoteIsoKind } from './remotes.ts'
import { vmConfigKind } from './vm-configs.ts'
import { vmKind } from './vms.ts'

export const kinds: readonly Kind[] = [
  vmKind,
  vmConfigKind,
  kubeImageKind,
  kubeIsoKind,
  orkaNodeKind,
  remoteImageKind,
  remoteIsoKind,
  namespaceKind,
  nodeKind,
  podKind,
  eventKind,
  serviceAccountKind,
  roleBindingKind,
]

const byPath = new Map(kinds.map((kind) => [`${kind.group}/${kind.version}/${kind.plural}`, kind]))

export const kindAt = (group: string, version: string, plural: string): Kind | undefined =>
  byPath.get(`${group}/${version}/${plural}`)

// Where an image comes from and who uses it, as a small graph: three columns, drawn by lineage.tsx. Pure.
import type { Event } from '../../src/api/events.ts'
import type { Image } from '../../src/api/images.ts'
import type { Vm } from '../../src/api/vms.ts'
import { imagePath, vmPath } from './paths.ts'

export interface LineageNode {
  readonly key: string
  readonly name: string
  readonly what: string
  readonly path?: string | undefined
}

export interface Lineage {
  /** From the oldest on. */
  readonly before: readonly LineageNode[]
  readonly here: LineageNode
  readonly after: readonly LineageNode[]
}

export interface LineageWords {
  readonly sources: Readonly<Record<Image['sourceType'], string>>
  readonly copiedTo: string
  readonly vm: string
}

const mostSteps = 4

export function lineageOf(image: Image, images: readonly Image[], vms: readonly Vm[], words: LineageWords): Lineage {
  const byName = new Map(images.map((each) => [each.name, each]))
  const vmByName = new Map(vms.map((vm) => [`${vm.namespace}/${vm.name}`, vm]))
  const before: LineageNode[] = []
  const seen = new Set([image.name])
  let current: Image | undefined = image
  // A VM that was saved has an image of its own, which again came from somewhere.
  while (current && before.length < mostSteps) {
    const from: { nodes: readonly LineageNode[]; image: string | undefined } = originOf(
      current,
      byName,
      vmByName,
      words,
    )
    before.unshift(...from.nodes)
    if (from.image === undefined || seen.has(from.image)) break
    seen.add(from.image)
    current = byName.get(from.image)
  }
  const users = image.usedBy.map((user): LineageNode => {
    const [namespace = '', name = ''] = user.split('/')
    return { key: `vm ${user}`, name: user, what: words.vm, path: vmPath({ namespace, name }) }
  })
  const copies = images
    .filter((each) => each.name !== image.name && each.sourceType === 'local' && each.source === image.name)
    .map((each) => nodeFor(each, words.copiedTo))
  return { before, here: nodeFor(image, words.sources[image.sourceType]), after: [...copies, ...users] }
}

const nodeFor = (image: Image, what: string): LineageNode => ({
  key: `image ${image.name}`,
  name: image.name,
  what,
  path: imagePath('image', image.name),
})

function originOf(
  image: Image,
  byName: ReadonlyMap<string, Image>,
  vms: ReadonlyMap<string, Vm>,
  words: LineageWords,
): { nodes: readonly LineageNode[]; image: string | undefined } {
  const { source, sourceType, sourceNamespace } = image
  if (sourceType === 'vm') {
    const key = `${sourceNamespace ?? ''}/${source}`
    const vm = vms.get(key)
    const node: LineageNode = { key: `vm ${key}`, name: source, what: words.vm, path: vm && vmPath(vm) }
    const parent = vm && byName.get(vm.image)
    return parent && parent.name !== image.name
      ? { nodes: [nodeFor(parent, words.sources[parent.sourceType]), node], image: parent.name }
      : { nodes: [node], image: undefined }
  }
  const parent = sourceType === 'local' ? byName.get(source) : undefined
  if (parent && parent.name !== image.name)
    return { nodes: [nodeFor(parent, words.sources[parent.sourceType])], image: parent.name }
  return { nodes: [{ key: `source ${source}`, name: source, what: words.sources[sourceType] }], image: undefined }
}

/** Saves and commits are events of the VM: they made this image, or a version of it. */
export function isVersionOf(image: Image, event: Event, vms: readonly Vm[]): boolean {
  const { reason, message, involved } = event
  if (reason === 'SaveVm') return message.includes(`imageName ${image.name})`)
  return reason === 'CommitVm' && vms.some((vm) => vm.name === involved.name && vm.image === image.name)
}

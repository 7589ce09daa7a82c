// Where an image comes from and who uses it, as a small graph: three columns, drawn by lineage-graph.tsx. Pure. It stands in
// the records of the images, so that it is known as long as they are.
import type { Image } from '../../../src/api/images/images.ts'
import { imagePath, vmPath } from '../paths.ts'
import { imageTexts as words } from './texts.ts'

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

const mostSteps = 6

export function lineageOf(image: Image, images: readonly Image[]): Lineage {
  const byName = new Map(images.map((each) => [each.name, each]))
  const before: LineageNode[] = []
  const seen = new Set([image.name])
  let current: Image | undefined = image
  while (current && before.length < mostSteps) {
    before.unshift(...originOf(current, byName))
    const parent: string | undefined = current.parent?.image
    current = parent === undefined || seen.has(parent) ? undefined : byName.get(parent)
    if (parent !== undefined) seen.add(parent)
  }
  const made = images
    .filter((each) => each.name !== image.name && each.parent?.image === image.name)
    .map((each) => ({ ...nodeFor(each.name), what: each.sourceType === 'vm' ? words.savedTo : words.copiedTo }))
  const { usedBy, usedElsewhere } = image
  const others = { key: 'elsewhere', name: words.users(usedElsewhere ?? 0), what: words.elsewhere }
  const users = [...usedBy.map((user) => vmNode(user)), ...(usedElsewhere === undefined ? [] : [others])]
  const version = image.version === undefined ? words.sources[image.sourceType] : words.version(image.version)
  return { before, here: { ...nodeFor(image.name), what: version }, after: [...made, ...users] }
}

const nodeFor = (name: string) => ({ key: `image ${name}`, name, path: imagePath('image', name) })

function vmNode(user: string): LineageNode {
  const [namespace = '', name = ''] = user.split('/')
  return { key: `vm ${user}`, name: user, what: words.vm, path: vmPath({ namespace, name }) }
}

function originOf(image: Image, byName: ReadonlyMap<string, Image>): readonly LineageNode[] {
  const { source, sourceType, parent } = image
  if (!parent)
    return [{ key: `source ${image.name}`, name: source || words.elsewhere, what: words.sources[sourceType] }]
  const { image: name, version, vm } = parent
  const what = version === undefined ? words.sources.remote : words.version(version)
  // It may be gone, or be called otherwise now: it is named all the same.
  const from: LineageNode = byName.has(name) ? { ...nodeFor(name), what } : { key: `gone ${name}`, name, what }
  return vm === undefined ? [from] : [from, { ...vmNode(vm), key: `saved ${image.name}` }]
}

// Figures that pages share: what a node has in use, and what is being done at the moment. Pure.
import type { Image } from '../../../src/api/images/images.ts'
import type { Node } from '../../../src/api/nodes/nodes.ts'
import type { PushJob } from '../../../src/api/vms/push-jobs.ts'
import type { Vm } from '../../../src/api/vms/vms.ts'
import { texts } from '../../texts.ts'
import { imagePath, vmPath } from '../paths.ts'

export interface Share {
  readonly used: number
  readonly whole: number
  readonly text: readonly [used: string, whole: string]
}

/** `11.20G` → 11.2 */
const gibi = (text: string): number => Number.parseFloat(text) || 0
const short = (value: number): string => `${Number(value.toFixed(1))} GiB`

export function capacityOf(node: Node): { readonly cores: Share; readonly memory: Share } {
  const cores = node.allocatableCpu - node.availableCpu
  const [whole, free] = [gibi(node.allocatableMemory), gibi(node.availableMemory)]
  return {
    cores: { used: cores, whole: node.allocatableCpu, text: [String(cores), String(node.allocatableCpu)] },
    memory: { used: whole - free, whole, text: [short(whole - free), short(whole)] },
  }
}

export interface Work {
  readonly key: string
  readonly path: string
  readonly name: string
  readonly what: string
  readonly percent: number | undefined
}

/** VMs that change, images on their way, pushes that run. */
export function workOf(vms: readonly Vm[], images: readonly Image[], pushes: readonly PushJob[]): readonly Work[] {
  const ofVms = vms.flatMap((vm): Work[] => {
    const { operation } = vm
    if (!operation) return []
    const { kind, phase, percent } = operation
    const what = texts.vms.operation(texts.vms.operationKind(kind), phase)
    return [{ key: `vm ${vm.namespace}/${vm.name}`, path: vmPath(vm), name: vm.name, what, percent }]
  })
  const ofImages = images
    .filter((image) => image.state === 'Updating')
    .map(({ name, state, progress, capture }): Work => {
      const what = capture ? `${capture.kind}: ${capture.vm}` : state
      return { key: `image ${name}`, path: imagePath('image', name), name, what, percent: progress?.percent }
    })
  const ofPushes = pushes
    .filter(({ status }) => status === 'Pending' || status === 'Running')
    .map((job): Work => {
      const { name, image, phase, status, progress } = job
      return { key: `push ${name}`, path: '/pushes', name: image, what: phase ?? status, percent: progress.percent }
    })
  return [...ofVms, ...ofImages, ...ofPushes]
}

/** Images that were saved of a VM, that it was committed to, or that are being made of it. */
export function imagesOf({ namespace, name }: Vm, images: readonly Image[]): readonly Image[] {
  const vm = `${namespace}/${name}`
  return images.filter(({ parent, versions, capture }) =>
    [parent, capture, ...(versions ?? [])].some((each) => each?.vm === vm),
  )
}

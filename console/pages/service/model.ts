// What the overview and the charts work out without being drawn: active tasks, numbers as people read them.
import type { Image } from '../../../src/api/images/images.ts'
import type { PushJob } from '../../../src/api/vms/push-jobs.ts'
import type { Vm } from '../../../src/api/vms/vms.ts'
import { rateText } from '../../ui/sizes.ts'
import { imagePath, vmPath } from '../paths.ts'
import { operationText } from '../vms/model.ts'
import { pushTexts, vmTexts } from '../vms/texts.ts'
import { overviewTexts as words } from './texts.ts'

interface Work {
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
    const { percent } = operation
    const what = operationText(operation)
    return [{ key: `vm ${vm.namespace}/${vm.name}`, path: vmPath(vm), name: vm.name, what, percent }]
  })
  const ofImages = images
    .filter((image) => image.state === 'Updating')
    .map(({ name, progress, capture }): Work => {
      const what = capture ? words.capture[capture.kind](capture.vm) : words.updating
      return { key: `image ${name}`, path: imagePath('image', name), name, what, percent: progress?.percent }
    })
  const ofPushes = pushes
    .filter(({ status }) => status === 'Pending' || status === 'Running')
    .map((job): Work => {
      const { name, image, phase, waiting, progress } = job
      const step = waiting ? pushTexts.waiting(waiting.reason) : phase
      const what = step === undefined ? words.pushing : vmTexts.operation(words.pushing, step)
      return { key: `push ${name}`, path: '/pushes', name: image, what, percent: progress.percent }
    })
  return [...ofVms, ...ofImages, ...ofPushes]
}

type Unit = '1' | 's' | 'B/s'

const formats: Readonly<Record<Unit, (value: number) => string>> = {
  '1': (value) => (Number.isInteger(value) ? String(value) : value.toFixed(1)),
  s: (value) => {
    if (value === 0) return '0'
    return value < 0.9995 ? `${Number((value * 1_000).toPrecision(3))} ms` : `${Number(value.toPrecision(3))} s`
  },
  'B/s': rateText,
}

export const formatFor = (unit: Unit): ((value: number) => string) => formats[unit]

/** The newest value that was measured. */
export const latestOf = (values: readonly (number | null)[]): number | undefined =>
  values.findLast((value) => value !== null) ?? undefined

export const timesOf = (series: { readonly start: number; readonly values: readonly unknown[] }, stepSeconds: number) =>
  series.values.map((_, index) => series.start + index * stepSeconds)

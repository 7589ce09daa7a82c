// Active tasks, sums of usage, and time ranges of events.
import type { Image } from '../../../src/api/images/images.ts'
import type { Usage } from '../../../src/api/service/usage.ts'
import type { PushJob } from '../../../src/api/vms/push-jobs.ts'
import type { Vm } from '../../../src/api/vms/vms.ts'
import { imagePath, vmPath } from '../paths.ts'
import { operationText } from '../vms/model.ts'

const captureText = { save: (vm: string) => `Saving from ${vm}`, commit: (vm: string) => `Committing from ${vm}` }

interface Work {
  readonly key: string
  readonly path: string
  readonly name: string
  readonly what: string
  readonly percent: number | undefined
}

/** Running operations of VMs, images and pushes. */
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
      const what = capture ? captureText[capture.kind](capture.vm) : 'Updating'
      return { key: `image ${name}`, path: imagePath('image', name), name, what, percent: progress?.percent }
    })
  const ofPushes = pushes
    .filter(({ status }) => status === 'Pending' || status === 'Running')
    .map((job): Work => {
      const { name, image, phase, waiting, progress } = job
      const step = waiting ? `Waiting for the registry: ${waiting.reason}` : phase
      const what = step === undefined ? 'Pushing' : `Pushing: ${step}`
      return { key: `push ${name}`, path: '/pushes', name: image, what, percent: progress.percent }
    })
  return [...ofVms, ...ofImages, ...ofPushes]
}

type Amounts = Pick<Usage, 'vms' | 'vmHours' | 'coreHours' | 'queueSeconds'>

export const usageTotals = (rows: readonly Usage[]): Amounts =>
  rows.reduce<Amounts>(
    (sum, row) => ({
      vms: sum.vms + row.vms,
      vmHours: sum.vmHours + row.vmHours,
      coreHours: sum.coreHours + row.coreHours,
      queueSeconds: sum.queueSeconds + row.queueSeconds,
    }),
    { vms: 0, vmHours: 0, coreHours: 0, queueSeconds: 0 },
  )

const withinHours = { '1h': 1, '24h': 24, '7d': 168 } as const

/** Every range that contains the time, for the filter of events. */
export const withinOf = (at: string, nowMs: number): readonly string[] =>
  Object.entries(withinHours).flatMap(([range, hours]) => (nowMs - Date.parse(at) <= hours * 3_600_000 ? [range] : []))

export const jsonLines = (rows: readonly unknown[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('')

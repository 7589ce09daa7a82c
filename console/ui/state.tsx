// What state something is in, by word and colour; never by colour alone.
import type { Image } from '../../src/api/images/images.ts'
import type { Node } from '../../src/api/nodes/nodes.ts'
import type { PushJob } from '../../src/api/vms/push-jobs.ts'
import type { Vm } from '../../src/api/vms/vms.ts'
import { texts } from '../texts.ts'

export type Tone = 'good' | 'warn' | 'bad' | 'busy' | 'idle'

export const vmTones = {
  pending: 'busy',
  starting: 'busy',
  running: 'good',
  stopped: 'idle',
  suspended: 'warn',
  failed: 'bad',
  unknown: 'warn',
} as const satisfies Record<Vm['powerState'], Tone>

const imageTones = { Ready: 'good', Updating: 'busy', Failed: 'bad' } as const satisfies Record<Image['state'], Tone>

const pushTones = {
  Pending: 'busy',
  Running: 'busy',
  Succeeded: 'good',
  Failed: 'bad',
  Cancelled: 'idle',
} as const satisfies Record<PushJob['status'], Tone>

export function State({ tone, word }: { readonly tone: Tone; readonly word: string }) {
  return (
    <span className="state" data-tone={tone}>
      {word}
    </span>
  )
}

export function VmState({ vm }: { readonly vm: Vm }) {
  const { operation } = vm
  if (operation && operation.kind !== 'deploy') {
    const percent = operation.percent === undefined ? '' : ` ${texts.common.percent(operation.percent)}`
    return <State tone="busy" word={`${texts.vms.operationKind(operation.kind)}${percent}`} />
  }
  return <State tone={vmTones[vm.powerState]} word={vm.powerState} />
}

export const ImageState = ({ image }: { readonly image: Image }) => (
  <State tone={imageTones[image.state]} word={image.state} />
)

export const PushState = ({ job }: { readonly job: PushJob }) => (
  <State tone={pushTones[job.status]} word={job.status} />
)

export function NodeState({ node }: { readonly node: Node }) {
  if (node.phase !== 'READY') return <State tone="bad" word={texts.nodes.notReady} />
  return node.cordoned ? (
    <State tone="warn" word={texts.nodes.cordoned} />
  ) : (
    <State tone="good" word={texts.nodes.ready} />
  )
}

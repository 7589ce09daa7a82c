// The list of push jobs.
import { Link } from 'wouter'
import { cancelPushJob, listPushJobs, type PushJob, pushVm } from '../../../src/api/vms/push-jobs.ts'
import { timeLeft } from '../../../src/rules/durations.ts'
import { sizeText } from '../../../src/rules/sizes.ts'
import { ActionDialog, type ActionWords } from '../../ui/action-dialog.tsx'
import { copyText } from '../../ui/copy.tsx'
import type { MenuItem } from '../../ui/menu.tsx'
import { rateText } from '../../ui/sizes.ts'
import { Bar } from '../../ui/state.tsx'
import type { Filter } from '../../ui/table/filters.ts'
import { type Column, timeColumn } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { Time } from '../../ui/time.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { menuColumn } from '../columns.tsx'
import { vmPath } from '../paths.ts'
import { PushState } from './state.tsx'

const cancelWords: ActionWords = {
  label: 'Cancel push',
  title: (image: string) => `Cancel push to ${image}?`,
  text: 'Uploaded data stays in the registry, untagged, until the registry cleans up.',
  done: (image: string) => `Push to ${image} cancelled`,
}

const columns: readonly Column<PushJob>[] = [
  { title: 'Image', look: 'name', by: ({ image }) => image, cell: ({ image }) => <b>{image}</b> },
  {
    title: 'State',
    by: ({ status }) => status,
    look: 'short',
    cell: (job) => <PushState job={job} />,
  },
  {
    title: 'Progress',
    by: ({ progress }) => progress.percent,
    look: 'short wide',
    cell: ({ image, progress }) => (
      <div className="stack-tight">
        <span className="small tabular">{`${sizeText(progress.bytesDone)} of ${sizeText(progress.bytesTotal)}`}</span>
        <Bar label={image} value={progress.percent} of={100} />
      </div>
    ),
  },
  {
    title: 'Rate',
    by: ({ progress }) => progress.bytesPerSecond ?? 0,
    look: 'wide',
    cell: ({ progress, waiting }) => (waiting ? undefined : speedText(progress)) ?? '–',
  },
  {
    title: 'Message',
    look: 'sentence lesser wide',
    cell: (job) => (
      <span className="small two-lines">
        <Message job={job} />
      </span>
    ),
  },
  {
    title: 'VM',
    by: ({ vm }) => vm,
    look: 'lesser wide',
    cell: (job) => <Link href={vmPath({ namespace: job.namespace, name: job.vm })}>{job.vm}</Link>,
  },
  { title: 'Owner', by: ({ owner }) => owner, look: 'lesser wide' },
  timeColumn('Started', ({ startedAt }) => startedAt),
  {
    title: 'Digest',
    by: ({ digest = '' }) => digest,
    look: 'lesser wide',
    cell: ({ digest }) => (digest === undefined ? '–' : <span className="small mono">{digest}</span>),
  },
  menuColumn(({ image }) => image, pushItems),
]
/** Newest first. */
const byStart = [columns.findIndex(({ title }) => title === 'Started'), true] as const

const filters: readonly Filter<PushJob>[] = [
  { param: 'state', label: 'State', of: ({ status }) => status },
  { param: 'vm', label: 'VM', of: ({ vm }) => vm },
]

export const PushJobs = () => (
  <TablePage
    title="Push jobs"
    emptyTitle="No push jobs in the last hour"
    emptyText="A push uploads an Apple silicon VM to a registry. Start one from the page of a VM, or run:"
    operation={listPushJobs}
    input={{ query: { watch: true } }}
    example={{ operation: pushVm, params: { vm: 'demo' }, body: { imageReference: 'ghcr.io/acme/demo:1' } }}
    columns={columns}
    filters={filters}
    sort={byStart}
  />
)

type Progress = PushJob['progress']

function speedText({ bytesPerSecond, secondsLeft }: Progress): string | undefined {
  if (bytesPerSecond === undefined) return undefined
  const rate = rateText(bytesPerSecond)
  return secondsLeft === undefined ? rate : `${rate}, ${timeLeft(secondsLeft)} left`
}

const isOver = ({ status }: PushJob): boolean => status !== 'Pending' && status !== 'Running'

/** The error, the next retry, the current phase, or the bytes that the registry already had. */
function Message({ job }: { readonly job: PushJob }) {
  const { waiting, errorMessage, phase, progress } = job
  const spared = progress.bytesSkipped > 0 ? `${sizeText(progress.bytesSkipped)} already in the registry` : '–'
  if (!waiting) return errorMessage ?? (isOver(job) ? spared : phase)
  return (
    <>
      {`Waiting for the registry: ${waiting.reason}. Next try`} <Time at={waiting.nextTryAt} />
    </>
  )
}

function pushItems(job: PushJob): readonly MenuItem[] {
  const { image: name, namespace, digest } = job
  const cancel = { name, words: cancelWords, operation: cancelPushJob, input: { params: { namespace, job: job.name } } }
  return [
    {
      label: cancelWords.label,
      reason: isOver(job) ? `This push has ended: ${job.status}` : undefined,
      isDanger: true,
      dialog: (onClose) => <ActionDialog {...cancel} isDanger onClose={onClose} />,
    },
    {
      label: 'Copy digest',
      reason: digest === undefined ? 'Available after the push' : undefined,
      onChoose: () => void copyText(digest ?? '').then(() => showToast('Copied')),
    },
  ]
}

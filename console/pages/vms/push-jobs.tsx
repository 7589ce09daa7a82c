// Push jobs: how far each is, how fast, how long it will take, what the registry had already, and its digest at the end.
import { Link } from 'wouter'
import { cancelPushJob, listPushJobs, type PushJob, pushVm } from '../../../src/api/vms/push-jobs.ts'
import { timeLeft } from '../../../src/rules/durations.ts'
import { sizeText } from '../../../src/rules/sizes.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { commandLine } from '../../teach/commands.ts'
import { texts } from '../../texts.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { Button } from '../../ui/button.tsx'
import { Copyable } from '../../ui/copy.tsx'
import { openDialog } from '../../ui/dialog.tsx'
import { Empty, Facts, Loaded, Note, Page } from '../../ui/page.tsx'
import { rateText } from '../../ui/sizes.ts'
import { Bar } from '../../ui/state.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'
import { vmPath } from '../paths.ts'
import { PushState } from './state.tsx'
import { pushTexts as words } from './texts.ts'

export function PushJobs() {
  const { shown, main } = useNamespaces()
  const list = useLive(listPushJobs, shown)
  const params = { namespace: main }
  const example = commandLine(pushVm, {
    params: { ...params, vm: 'demo' },
    body: { imageReference: 'ghcr.io/acme/demo:1' },
  })
  const jobs = list.items.toSorted((a, b) => b.startedAt.localeCompare(a.startedAt))
  return (
    <Page
      title={words.title}
      actions={<TeachPage operation={listPushJobs} input={{ params, query: { watch: true } }} />}
    >
      <Loaded list={list} empty={<Empty title={words.emptyTitle} text={words.emptyText} command={example} />}>
        <div className="stack">
          {jobs.map((job) => (
            <Job key={`${job.namespace}/${job.name}`} job={job} />
          ))}
        </div>
      </Loaded>
    </Page>
  )
}

type Progress = PushJob['progress']

function bytesText({ bytesDone, bytesTotal, bytesSkipped }: Progress): string {
  const bytes = words.bytes(sizeText(bytesDone), sizeText(bytesTotal))
  return bytesSkipped > 0 ? words.skipped(bytes, sizeText(bytesSkipped)) : bytes
}

function speedText({ bytesPerSecond, secondsLeft }: Progress): string {
  if (bytesPerSecond === undefined) return ''
  const rate = rateText(bytesPerSecond)
  return secondsLeft === undefined ? rate : words.left(rate, timeLeft(secondsLeft))
}

function Job({ job }: { readonly job: PushJob }) {
  const { progress, status, phase, waiting, digest, errorMessage } = job
  const cancel = (onClose: () => void) => (
    <ActionDialog
      words={words.cancel}
      name={job.image}
      operation={cancelPushJob}
      input={{ params: { namespace: job.namespace, job: job.name } }}
      isDanger
      onClose={onClose}
    />
  )
  const isOver = status !== 'Pending' && status !== 'Running'
  return (
    <section className="card" aria-label={job.image}>
      <div className="card-head">
        <h2 className="line">
          <span className="mono">{job.image}</span>
          <PushState job={job} />
        </h2>
        <Button
          size="small"
          reason={isOver ? words.ended(words.statuses[status]) : undefined}
          onClick={() => openDialog(cancel)}
        >
          {words.cancel.label}
        </Button>
      </div>
      <div className="measure">
        <div className="spread small tabular">
          <span>{bytesText(progress)}</span>
          <span className="muted">{waiting ? '' : speedText(progress)}</span>
        </div>
        <Bar label={job.image} value={progress.percent} of={100} />
      </div>
      {waiting && <Note tone="warn">{words.waiting(waiting.reason)}</Note>}
      {errorMessage !== undefined && <Note tone="bad">{errorMessage}</Note>}
      <Facts
        facts={{
          [words.vm]: <Link href={vmPath({ namespace: job.namespace, name: job.vm })}>{job.vm}</Link>,
          [words.phase]: isOver ? undefined : phase,
          [words.nextTry]: waiting && <Time at={waiting.nextTryAt} />,
          [texts.common.owner]: job.owner,
          [words.started]: <Time at={job.startedAt} />,
          [words.digest]: digest && <Copyable text={digest} what={words.digest} />,
        }}
      />
    </section>
  )
}

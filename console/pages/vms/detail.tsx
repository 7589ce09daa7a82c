// The page of one VM.

import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { listImages } from '../../../src/api/images/images.ts'
import { listNodes } from '../../../src/api/nodes/nodes.ts'
import { listPushJobs } from '../../../src/api/vms/push-jobs.ts'
import { getVm, getVmCharts, getVmLogs, listVms, type Vm } from '../../../src/api/vms/vms.ts'
import { reachProblem } from '../../../src/rules/guest-reach.ts'
import { longSize } from '../../../src/rules/sizes.ts'
import { useAnswer } from '../../api/calls.ts'
import { client } from '../../api/client.ts'
import { useLive } from '../../api/live.ts'
import { architectures } from '../../ui/architectures.ts'
import { Button } from '../../ui/button.tsx'
import { Copyable } from '../../ui/copy.tsx'
import { NextActions } from '../../ui/menu.tsx'
import { Card, ErrorNote, Facts, Loading, Note, Tags } from '../../ui/page.tsx'
import { Bar, State } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { DetailPage } from '../detail-page.tsx'
import { EventsCard } from '../event-feed.tsx'
import { ImageState } from '../images/state.tsx'
import { imagePath, type Named, nodePath, vmPath } from '../paths.ts'
import { vmItems } from './actions.tsx'
import {
  conditionText,
  imagesOf,
  labelsOf,
  memoryText,
  operationName,
  operationText,
  otherConditions,
  powerWords,
  reasonAgainstScreen,
  reasonAgainstTerminal,
  sshCommand,
  waitingReason,
} from './model.ts'
import { PushState, Verdicts, VmState } from './state.tsx'
import { Timeline } from './timeline.tsx'

const MeasuredCharts = lazy(async () => ({ default: (await import('../charts/measured.tsx')).MeasuredCharts }))
/** In its own bundle, because noVNC is large. */
const Thumbnail = lazy(async () => ({ default: (await import('./thumbnail.tsx')).Thumbnail }))

export function VmDetail({ namespace, name }: Named) {
  const [, go] = useLocation()
  return (
    <DetailPage
      list={useLive(listVms, [namespace])}
      name={name}
      noun="VM"
      path="/vms"
      namespace={namespace}
      operation={getVm}
      params={{ namespace, vm: name }}
      state={(vm) => <VmState vm={vm} />}
      itemsOf={vmItems}
      buttons={(vm) => (
        <>
          <Button kind="primary" reason={reasonAgainstScreen(vm)} onClick={() => go(`${vmPath(vm)}/screen`)}>
            Screen
          </Button>
          <Button reason={reasonAgainstTerminal(vm)} onClick={() => go(`${vmPath(vm)}/terminal`)}>
            Terminal
          </Button>
        </>
      )}
    >
      {(vm, items) => (
        <>
          <Notices vm={vm} />
          <div className="grid-2">
            <div className="stack">
              <Card title="Timeline">
                <Timeline vm={vm} />
              </Card>
              <Card title="Next">
                <NextActions items={items} />
              </Card>
              <Card title="Connections">
                <Connections vm={vm} />
              </Card>
            </div>
            <div className="stack">
              {reasonAgainstScreen(vm) === undefined && (
                <OnNode vm={vm}>
                  <Card title="Screen">
                    <Suspense fallback={<Loading />}>
                      <Thumbnail key={vm.uid} namespace={namespace} name={name} />
                    </Suspense>
                  </Card>
                </OnNode>
              )}
              <Card title="Details">
                <Details vm={vm} />
              </Card>
            </div>
          </div>
          <OnNode vm={vm}>
            <Suspense fallback={<Loading />}>
              <MeasuredCharts key={vm.uid} operation={getVmCharts} params={{ namespace, vm: name }} />
            </Suspense>
          </OnNode>
          <div className="grid-2">
            <div className="stack">
              {otherConditions(vm).length > 0 && (
                <Card title="Conditions">
                  <Conditions conditions={otherConditions(vm)} />
                </Card>
              )}
              <Results vm={vm} />
              <EventsCard namespaces={[namespace]} kinds={['vms']} name={name} uid={vm.uid} since={vm.deployDate} />
            </div>
            <Card title="Serial console">
              <VmLog key={`${vm.uid} ${vm.powerState}`} vm={vm} />
            </Card>
          </div>
        </>
      )}
    </DetailPage>
  )
}

/** Renders the children only while the node is connected, since their requests go to the node. */
function OnNode({ vm: { namespace, node }, children }: { readonly vm: Vm; readonly children: ReactNode }) {
  const { items } = useLive(listNodes, node === undefined ? [] : [namespace], `name=${node}`)
  return node !== undefined && items.some(({ name, phase }) => name === node && phase === 'READY') ? children : null
}

function Notices({ vm }: { readonly vm: Vm }) {
  const { errorMessage, warning, portWarnings, operation } = vm
  const reason = waitingReason(vm)
  const unreachable = reachProblem(vm)
  return (
    <>
      {errorMessage !== undefined && (
        <Note tone="bad" role="alert">
          {errorMessage}
        </Note>
      )}
      {warning !== undefined && <Note tone="warn">{warning}</Note>}
      {unreachable && (
        <Note tone="warn">
          <b>{`This VM is running, but cannot be reached: ${unreachable.what}`}</b>
          <span>{unreachable.next}</span>
        </Note>
      )}
      {portWarnings !== undefined && <Note tone="warn">{portWarnings}</Note>}
      {operation && (
        <Note role="status">
          <span>{operationText(operation)}</span>
          {operation.percent !== undefined && (
            <Bar label={operationName(operation.kind)} value={operation.percent} of={100} />
          )}
        </Note>
      )}
      {vm.powerState === 'pending' && reason !== undefined && <WhyPending vm={vm} reason={reason} />}
    </>
  )
}

/** How often the verdicts of nodes are fetched, which the list of VMs does not include. */
const verdictsEveryMs = 10_000

function WhyPending({ vm: { namespace, name }, reason }: { readonly vm: Vm; readonly reason: string }) {
  const { data } = useAnswer(getVm, { params: { namespace, vm: name } }, { everyMs: verdictsEveryMs })
  return (
    <Note tone="warn">
      <b>Why this VM is pending</b>
      <span>{reason}</span>
      {data?.nodes !== undefined && data.nodes.length > 0 && <Verdicts nodes={data.nodes} />}
    </Note>
  )
}

function Connections({ vm }: { readonly vm: Vm }) {
  const { ip, ssh, vnc, screenshare, reservedPorts } = vm
  if (ip === undefined) return <p className="muted">Available when the VM runs.</p>
  const lines = [
    ['SSH', ssh && sshCommand(vm)],
    ['SSH address', ssh && `${ip}:${ssh}`],
    ['VNC', vnc && `vnc://${ip}:${vnc}`],
    ['Screen sharing', screenshare && `vnc://${ip}:${screenshare}`],
    ...reservedPorts.map(({ nodePort, vmPort, protocol }) => [`Port ${vmPort}/${protocol}`, `${ip}:${nodePort}`]),
  ] as [label: string, address: string | undefined][]
  return (
    <Facts
      facts={Object.fromEntries(
        lines.map(([label, address]) => [label, address && <Copyable key={label} text={address} what={label} />]),
      )}
    />
  )
}

function Details({ vm }: { readonly vm: Vm }) {
  const labels = labelsOf(vm)
  return (
    <Facts
      facts={{
        Power: powerWords[vm.powerState],
        Status: vm.status,
        Image: <Link href={imagePath('image', vm.image)}>{vm.image}</Link>,
        Node: vm.node && <Link href={nodePath({ namespace: vm.namespace, name: vm.node })}>{vm.node}</Link>,
        Architecture: architectures[vm.architecture],
        Cores: vm.cpu,
        Memory: memoryText(vm.memory),
        Disk: vm.diskGb === undefined ? undefined : longSize(`${vm.diskGb}G`),
        GPU: vm.gpuPassthrough ? 'Passed through' : undefined,
        Owner: vm.owner,
        [vm.status === 'Pending' ? 'Requested' : 'Deployed']: <Time at={vm.deployDate} />,
        Expires: vm.expiresAt === undefined ? 'Never' : <Time at={vm.expiresAt} />,
        Labels: labels.length === 0 ? undefined : <Tags tags={labels} />,
        'Metadata keys': vm.metadataKeys.length === 0 ? undefined : vm.metadataKeys.join(', '),
        UID: <Copyable text={vm.uid} what="UID" />,
      }}
    />
  )
}

const Conditions = ({ conditions }: Pick<Vm, 'conditions'>) => (
  <ul className="feed">
    {conditions.map(({ type, status, message, at }) => (
      <li key={type}>
        <span className="line">
          <State tone={status === 'True' ? 'good' : 'warn'} word={conditionText(type, status === 'True')} />
          {message}
        </span>
        <span className="muted small">
          <Time at={at} />
        </span>
      </li>
    ))}
  </ul>
)

/** Shows images and pushes made from this VM, with their progress, which toasts show only for seconds. */
function Results({ vm }: { readonly vm: Vm }) {
  const images = imagesOf(vm, useLive(listImages, [vm.namespace]).items)
  const pushes = useLive(listPushJobs, [vm.namespace]).items.filter((job) => job.vm === vm.name)
  if (images.length + pushes.length === 0) return null
  return (
    <Card title="Images and pushes">
      <ul className="feed" aria-label="Images and pushes">
        {images.map((image) => (
          <li key={image.name}>
            <Link href={imagePath('image', image.name)}>{image.name}</Link>
            <ImageState image={image} />
            {image.progress && <Bar label={image.name} value={image.progress.percent} of={100} />}
          </li>
        ))}
        {pushes.map((job) => (
          <li key={job.name}>
            <Link href="/pushes">{job.image}</Link>
            <PushState job={job} />
            {job.waiting && <span className="small muted">{`Waiting for the registry: ${job.waiting.reason}`}</span>}
            {job.status === 'Running' && <Bar label={job.image} value={job.progress.percent} of={100} />}
          </li>
        ))}
      </ul>
    </Card>
  )
}

const keptChars = 200_000

export function VmLog({ vm }: { readonly vm: Vm }) {
  const [isOpen, setOpen] = useState(false)
  return isOpen ? (
    <Follow vm={vm} />
  ) : (
    <div>
      <Button onClick={() => setOpen(true)}>Show output</Button>
    </div>
  )
}

function Follow({ vm: { namespace, name } }: { readonly vm: Vm }) {
  const [text, setText] = useState('')
  const [error, setError] = useState<unknown>()
  const [isOver, setOver] = useState(false)
  const box = useRef<HTMLPreElement>(null)
  useEffect(() => {
    const stop = new AbortController()
    const { signal } = stop
    const follow = async (): Promise<void> => {
      const input = { params: { namespace, vm: name }, query: { follow: true, tail: 500 }, signal }
      const { body } = await client.open(getVmLogs, input)
      const decoder = new TextDecoder()
      for await (const chunk of body) {
        const more = decoder.decode(chunk, { stream: true })
        setText((before) => (before + more).slice(-keptChars))
      }
      setOver(true)
    }
    follow().catch((failure: unknown) => signal.aborted || setError(failure))
    return () => stop.abort()
  }, [namespace, name])
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls down when text is added
  useEffect(() => {
    const pre = box.current
    if (pre) pre.scrollTop = pre.scrollHeight
  }, [text])
  return (
    <>
      <ErrorNote error={error} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll it */}
      <pre ref={box} className="code log" role="log" aria-label="Serial console" tabIndex={0}>
        {text === '' ? 'No output yet' : text}
      </pre>
      {isOver && <p className="muted small">End of output</p>}
    </>
  )
}

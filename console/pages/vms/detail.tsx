// One VM: how it is, how to reach it, why it waits, what was done to it and made of it, what it writes to its console.

import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from 'react'
import { Link } from 'wouter'
import { listImages } from '../../../src/api/images/images.ts'
import { listNodes } from '../../../src/api/nodes/nodes.ts'
import { listPushJobs } from '../../../src/api/vms/push-jobs.ts'
import { getVm, getVmCharts, getVmLogs, listVms, type Vm } from '../../../src/api/vms/vms.ts'
import { longSize } from '../../../src/rules/sizes.ts'
import { useAnswer } from '../../api/calls.ts'
import { client } from '../../api/client.ts'
import { useLive } from '../../api/live.ts'
import { texts } from '../../texts.ts'
import { Button } from '../../ui/button.tsx'
import { Copyable } from '../../ui/copy.tsx'
import { ActionsMenu, NextActions } from '../../ui/menu.tsx'
import { Card, DetailPage, ErrorNote, Facts, Loading, Note, Tags } from '../../ui/page.tsx'
import { Bar, State } from '../../ui/state.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'
import { useActing } from '../acting.ts'
import { EventFeed } from '../event-feed.tsx'
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
  reasonAgainstScreen,
  reasonAgainstTerminal,
  sshCommand,
  waitingReason,
} from './model.ts'
import { PushState, VmState } from './state.tsx'
import { pushTexts, vmTexts as words } from './texts.ts'
import { Timeline } from './timeline.tsx'
import { Verdicts } from './verdicts.tsx'

const Measured = lazy(async () => ({ default: (await import('../charts/measured.tsx')).Measured }))
/** What speaks VNC is large. */
const Thumbnail = lazy(async () => ({ default: (await import('./thumbnail.tsx')).Thumbnail }))

export function VmDetail({ namespace, name }: Named) {
  const acting = useActing()
  const { go } = acting
  const itemsOf = (vm: Vm) => vmItems(vm, { ...acting, onDeleted: () => go('/vms') })
  return (
    <DetailPage
      list={useLive(listVms, [namespace])}
      name={name}
      up={[words.title, '/vms']}
      namespace={namespace}
      gone={{ title: words.gone, text: words.goneText(name, namespace) }}
      beside={(vm) => <VmState vm={vm} />}
      actions={(vm) => (
        <>
          <TeachPage operation={getVm} input={{ params: { namespace, vm: name } }} />
          <Button kind="primary" reason={reasonAgainstScreen(vm)} onClick={() => go(`${vmPath(vm)}/screen`)}>
            {words.screen}
          </Button>
          <Button reason={reasonAgainstTerminal(vm)} onClick={() => go(`${vmPath(vm)}/terminal`)}>
            {words.terminal}
          </Button>
          <ActionsMenu name={name} items={itemsOf(vm)} />
        </>
      )}
    >
      {(vm) => (
        <>
          <Notices vm={vm} />
          <div className="grid-2">
            <div className="stack">
              <Card title={words.timeline}>
                <Timeline vm={vm} />
              </Card>
              <Card title={words.next}>
                <NextActions items={itemsOf(vm)} />
              </Card>
              <Card title={words.connections}>
                <Connections vm={vm} />
              </Card>
            </div>
            <div className="stack">
              {reasonAgainstScreen(vm) === undefined && (
                <OnNode vm={vm}>
                  <Card title={words.screen}>
                    <Suspense fallback={<Loading />}>
                      <Thumbnail key={vm.uid} namespace={namespace} name={name} />
                    </Suspense>
                  </Card>
                </OnNode>
              )}
              <Card title={texts.common.details}>
                <Details vm={vm} />
              </Card>
            </div>
          </div>
          <OnNode vm={vm}>
            <Suspense fallback={<Loading />}>
              <Measured key={vm.uid} operation={getVmCharts} params={{ namespace, vm: name }} />
            </Suspense>
          </OnNode>
          <div className="grid-2">
            <div className="stack">
              {otherConditions(vm).length > 0 && (
                <Card title={words.conditions}>
                  <Conditions conditions={otherConditions(vm)} />
                </Card>
              )}
              <Results vm={vm} />
              <Card title={texts.common.events}>
                <EventFeed
                  namespaces={[namespace]}
                  kinds={['vms']}
                  name={name}
                  uid={vm.uid}
                  since={vm.deployDate}
                  empty={texts.common.noEvents}
                />
              </Card>
            </div>
            <Card title={words.log}>
              <VmLog key={`${vm.uid} ${vm.powerState}`} vm={vm} />
            </Card>
          </div>
        </>
      )}
    </DetailPage>
  )
}

/** What is asked of its node, as long as that is connected. */
function OnNode({ vm: { namespace, node }, children }: { readonly vm: Vm; readonly children: ReactNode }) {
  const { items } = useLive(listNodes, node === undefined ? [] : [namespace], `name=${node}`)
  return node !== undefined && items.some(({ name, phase }) => name === node && phase === 'READY') ? children : null
}

function Notices({ vm }: { readonly vm: Vm }) {
  const { errorMessage, warning, portWarnings, operation } = vm
  const reason = waitingReason(vm)
  return (
    <>
      {errorMessage !== undefined && (
        <Note tone="bad" role="alert">
          {errorMessage}
        </Note>
      )}
      {warning !== undefined && <Note tone="warn">{warning}</Note>}
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

/** Node by node it stands in the VM itself only, not in the list. */
const verdictsEveryMs = 10_000

function WhyPending({ vm: { namespace, name }, reason }: { readonly vm: Vm; readonly reason: string }) {
  const { data } = useAnswer(getVm, { params: { namespace, vm: name } }, verdictsEveryMs)
  return (
    <Note tone="warn">
      <b>{words.whyPending}</b>
      <span>{reason}</span>
      {data?.nodes !== undefined && data.nodes.length > 0 && <Verdicts nodes={data.nodes} />}
    </Note>
  )
}

function Connections({ vm }: { readonly vm: Vm }) {
  const { ip, ssh, vnc, screenshare, reservedPorts } = vm
  if (ip === undefined) return <p className="muted">{words.noPorts}</p>
  const lines = [
    [words.sshLine, ssh && sshCommand(vm)],
    [words.sshAddressLine, ssh && `${ip}:${ssh}`],
    [words.vncLine, vnc && `vnc://${ip}:${vnc}`],
    [words.screenshareLine, screenshare && `vnc://${ip}:${screenshare}`],
    ...reservedPorts.map(({ nodePort, vmPort, protocol }) => [words.portLine(vmPort, protocol), `${ip}:${nodePort}`]),
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
  const { facts } = words
  const labels = labelsOf(vm)
  return (
    <Facts
      facts={{
        [facts.power]: words.power[vm.powerState],
        [facts.status]: vm.status,
        [facts.image]: <Link href={imagePath('image', vm.image)}>{vm.image}</Link>,
        [facts.node]: vm.node && <Link href={nodePath({ namespace: vm.namespace, name: vm.node })}>{vm.node}</Link>,
        [facts.architecture]: texts.common.architectures[vm.architecture],
        [facts.cores]: vm.cpu,
        [facts.memory]: memoryText(vm.memory),
        [facts.disk]: vm.diskGb === undefined ? undefined : longSize(`${vm.diskGb}G`),
        [facts.gpu]: vm.gpuPassthrough ? words.passedThrough : undefined,
        [facts.owner]: vm.owner,
        [vm.status === 'Pending' ? facts.requested : facts.deployed]: <Time at={vm.deployDate} />,
        [facts.ends]: vm.expiresAt === undefined ? texts.common.never : <Time at={vm.expiresAt} />,
        [facts.labels]: labels.length === 0 ? undefined : <Tags tags={labels} />,
        [facts.metadata]: vm.metadataKeys.length === 0 ? undefined : vm.metadataKeys.join(', '),
        [facts.uid]: <Copyable text={vm.uid} what={facts.uid} />,
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

/** Images that were saved of it or committed to, pushes; how far each is. Stays when messages pass. */
function Results({ vm }: { readonly vm: Vm }) {
  const images = imagesOf(vm, useLive(listImages, [vm.namespace]).items)
  const pushes = useLive(listPushJobs, [vm.namespace]).items.filter((job) => job.vm === vm.name)
  if (images.length + pushes.length === 0) return null
  return (
    <Card title={words.results}>
      <ul className="feed" aria-label={words.results}>
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
            {job.waiting && <span className="small muted">{pushTexts.waiting(job.waiting.reason)}</span>}
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
      <Button onClick={() => setOpen(true)}>{words.logShow}</Button>
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
  // biome-ignore lint/correctness/useExhaustiveDependencies: follows what is written
  useEffect(() => {
    const pre = box.current
    if (pre) pre.scrollTop = pre.scrollHeight
  }, [text])
  return (
    <>
      <ErrorNote error={error} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard */}
      <pre ref={box} className="code log" role="log" aria-label={words.log} tabIndex={0}>
        {text === '' ? words.logEmpty : text}
      </pre>
      {isOver && <p className="muted small">{words.logEnded}</p>}
    </>
  )
}

// One VM: how it is, how to reach it, why it waits, what was done to it, what it writes to its console.
import { Link, useLocation } from 'wouter'
import { getVm, listVms, type Vm } from '../../../src/api/vms/vms.ts'
import { useLive } from '../../api/live.ts'
import { texts } from '../../texts.ts'
import { Bar } from '../../ui/bar.tsx'
import { Button } from '../../ui/button.tsx'
import { Copy } from '../../ui/copy.tsx'
import { Empty } from '../../ui/notes.tsx'
import { Card, Facts, Loading, Page } from '../../ui/page.tsx'
import { State, VmState } from '../../ui/state.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'
import { imagePath, nodePath, vmPath } from '../paths.ts'
import { EventFeed } from '../service/event-feed.tsx'
import { VmLog } from './vm-log.tsx'
import { VmMenu } from './vm-menu.tsx'
import { VmResults } from './vm-results.tsx'
import { reasonAgainstScreen, reasonAgainstTerminal, waitingReasons } from './vm-rules.ts'

const words = texts.vms

interface Props {
  readonly params: { readonly namespace?: string; readonly name?: string }
}

export function VmDetail({ params: { namespace = '', name = '' } }: Props) {
  const { items, isLoaded } = useLive(listVms, [namespace])
  const [, go] = useLocation()
  const vm = items.find((each) => each.name === name)
  const above = <Link href="/vms">{words.all}</Link>
  if (!vm)
    return (
      <Page title={name} above={above}>
        {isLoaded ? <Empty title={words.gone} text={words.goneText(name)} /> : <Loading />}
      </Page>
    )
  return (
    <Page
      title={vm.name}
      above={
        <>
          {above}
          <span>{`/ ${vm.namespace}`}</span>
        </>
      }
      beside={<VmState vm={vm} />}
      actions={
        <>
          <TeachPage operation={getVm} input={{ params: { namespace, vm: name } }} />
          <Button kind="primary" reason={reasonAgainstScreen(vm)} onClick={() => go(`${vmPath(vm)}/screen`)}>
            {words.screen}
          </Button>
          <Button reason={reasonAgainstTerminal(vm)} onClick={() => go(`${vmPath(vm)}/terminal`)}>
            {words.terminal}
          </Button>
          <VmMenu vm={vm} onDeleted={() => go('/vms')} />
        </>
      }
    >
      <Notices vm={vm} />
      <div className="grid-2">
        <div className="stack">
          <Card title={words.connections}>
            <Connections vm={vm} />
          </Card>
          {vm.conditions.length > 0 && (
            <Card title={words.conditions}>
              <Conditions vm={vm} />
            </Card>
          )}
          <VmResults vm={vm} />
          <Card title={words.events}>
            <EventFeed namespace={namespace} kinds={['vms']} name={name} empty={words.noEvents} />
          </Card>
        </div>
        <div className="stack">
          <Card title={words.details}>
            <Details vm={vm} />
          </Card>
          <Card title={words.log}>
            <VmLog key={`${vm.uid} ${vm.powerState}`} vm={vm} />
          </Card>
        </div>
      </div>
    </Page>
  )
}

function Notices({ vm }: { readonly vm: Vm }) {
  const { errorMessage, warning, portWarnings, operation } = vm
  const reasons = waitingReasons(vm)
  return (
    <>
      {errorMessage !== undefined && (
        <div className="note" data-tone="bad" role="alert">
          {errorMessage}
        </div>
      )}
      {[warning, portWarnings].map((text) =>
        text === undefined ? null : (
          <div key={text} className="note" data-tone="warn">
            {text}
          </div>
        ),
      )}
      {operation && (
        <div className="note" role="status">
          <span>{words.operation(words.operationKind(operation.kind), operation.phase)}</span>
          {operation.percent !== undefined && <Bar label={operation.kind} value={operation.percent} of={100} />}
        </div>
      )}
      {reasons.length > 0 && vm.powerState === 'pending' && (
        <div className="note" data-tone="warn">
          <b>{words.whyPending}</b>
          <ul>
            {reasons.map((reason) => (
              <li key={reason}>{reason}</li>
            ))}
          </ul>
        </div>
      )}
    </>
  )
}

function Connections({ vm }: { readonly vm: Vm }) {
  const { ip, ssh, vnc, screenshare, reservedPorts } = vm
  if (ip === undefined) return <p className="muted">{words.noPorts}</p>
  const lines: (readonly [string, string])[] = [
    ...(ssh === undefined ? [] : [[words.sshLine, `${ip}:${ssh}`] as const]),
    ...(vnc === undefined ? [] : [[words.vncLine, `vnc://${ip}:${vnc}`] as const]),
    ...(screenshare === undefined ? [] : [[words.screenshareLine, `vnc://${ip}:${screenshare}`] as const]),
    ...reservedPorts.map(
      ({ nodePort, vmPort, protocol }) => [words.portLine(vmPort, protocol), `${ip}:${nodePort}`] as const,
    ),
  ]
  return (
    <Facts
      facts={lines.map(([label, address]) => [
        label,
        <span key={address} className="copyable mono">
          {address}
          <Copy text={address} what={label} />
        </span>,
      ])}
    />
  )
}

function Details({ vm }: { readonly vm: Vm }) {
  const { facts } = words
  const labels = Object.entries(vm.labels)
  return (
    <Facts
      facts={[
        [
          facts.image,
          <Link key="image" href={imagePath('image', vm.image)}>
            {vm.image}
          </Link>,
        ],
        vm.node === undefined
          ? undefined
          : [
              facts.node,
              <Link key="node" href={nodePath({ namespace: vm.namespace, name: vm.node })}>
                {vm.node}
              </Link>,
            ],
        [facts.architecture, words.architectures[vm.architecture]],
        [facts.cores, vm.cpu],
        [facts.memory, vm.memory],
        vm.diskGb === undefined ? undefined : [facts.disk, `${vm.diskGb} GB`],
        vm.gpuPassthrough ? [facts.gpu, words.passedThrough] : undefined,
        [facts.owner, vm.owner],
        [facts.deployed, <Time key="deployed" at={vm.deployDate} />],
        [facts.ends, vm.expiresAt === undefined ? texts.common.never : <Time key="ends" at={vm.expiresAt} />],
        labels.length === 0
          ? undefined
          : [
              facts.labels,
              <span key="labels" className="line">
                {labels.map(([key, value]) => (
                  <span key={key} className="tag">{`${key}=${value}`}</span>
                ))}
              </span>,
            ],
        vm.metadataKeys.length === 0 ? undefined : [facts.metadata, vm.metadataKeys.join(', ')],
        [
          facts.uid,
          <span key="uid" className="copyable mono">
            {vm.uid}
            <Copy text={vm.uid} what={facts.uid} />
          </span>,
        ],
      ]}
    />
  )
}

const Conditions = ({ vm }: { readonly vm: Vm }) => (
  <ul className="feed">
    {vm.conditions.map(({ type, status, message, at }) => (
      <li key={type}>
        <span className="line">
          <State tone={status === 'True' ? 'good' : 'warn'} word={status === 'True' ? type : words.notYet(type)} />
          {message}
        </span>
        <span className="muted small">
          <Time at={at} />
        </span>
      </li>
    ))}
  </ul>
)

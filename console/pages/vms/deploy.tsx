// The form that deploys a VM: one field has to be filled in, the rest has defaults; beside it, where the VM would go. Answers
// at once; the page of the VM then shows how it comes up.
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useLocation, useSearch } from 'wouter'
import { listImages } from '../../../src/api/images/images.ts'
import { listIsos } from '../../../src/api/images/isos.ts'
import { listNodes } from '../../../src/api/nodes/nodes.ts'
import { estimateVm } from '../../../src/api/vms/estimates.ts'
import { listVmConfigs } from '../../../src/api/vms/vm-configs.ts'
import type { VmDeployment } from '../../../src/api/vms/vm-deployment.ts'
import { deployVm } from '../../../src/api/vms/vms.ts'
import { problemOf } from '../../api/calls.ts'
import { client } from '../../api/client.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { texts } from '../../texts.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { AreaField, CheckField, NamespaceField, SelectField, TextField, useForm } from '../../ui/field.tsx'
import { vmPath } from '../paths.ts'
import { deploymentOf, emptyForm, faultsOf } from './deploy-form.ts'
import { deployTexts as words } from './texts.ts'

type Checks = 'tagRequired' | 'noScreen' | 'cold' | 'legacyIO' | 'noNetBoost' | 'gpuPassthrough'

interface PartProps {
  readonly text: (key: Exclude<keyof typeof emptyForm, Checks>) => {
    readonly field: string
    readonly value: string
    readonly onValue: (value: string) => void
    readonly fault: string | undefined
  }
  readonly namespace: string
}

interface MoreProps extends PartProps {
  readonly check: (key: Checks) => { readonly value: boolean; readonly onValue: (value: boolean) => void }
}

export function Deploy({ onClose }: { readonly onClose: () => void }) {
  const { all, main } = useNamespaces()
  const [, go] = useLocation()
  const query = new URLSearchParams(useSearch())
  const [namespace, setNamespace] = useState(query.get('namespace') ?? main)
  const { values, field } = useForm({
    ...emptyForm,
    image: query.get('image') ?? '',
    vmConfig: query.get('config') ?? '',
  })
  const faults = faultsOf(values)
  const reason = Object.values(faults)[0]
  const body = deploymentOf(values)
  // A field that is still empty is not marked as wrong.
  const text: PartProps['text'] = (key) => ({ ...field(key), fault: values[key] === '' ? undefined : faults[key] })
  return (
    <ActionDialog
      title={words.title}
      label={words.submit}
      operation={deployVm}
      input={{ params: { namespace }, query: { wait: false }, body }}
      reason={reason}
      size="large"
      onClose={onClose}
      onDone={(vm) => go(vmPath(vm))}
    >
      <div className="fields">
        <Main text={text} namespace={namespace} />
        {all.length > 1 && <NamespaceField value={namespace} onValue={setNamespace} />}
      </div>
      <details className="more">
        <summary>{texts.common.more}</summary>
        <More text={text} check={field} namespace={namespace} />
      </details>
      <Estimate namespace={namespace} body={reason === undefined ? body : undefined} />
    </ActionDialog>
  )
}

const namesOf = (items: readonly { readonly name: string }[]): string[] => items.map(({ name }) => name)

function Main({ text, namespace }: PartProps) {
  const images = useLive(listImages, [namespace]).items
  const configs = useLive(listVmConfigs, [namespace]).items
  return (
    <>
      <TextField
        label={words.image}
        hint={words.imageHint}
        {...text('image')}
        offers={namesOf(images.filter((image) => image.state === 'Ready'))}
        autoFocus
      />
      <TextField label={words.name} hint={words.nameHint} {...text('name')} />
      {configs.length > 0 && (
        <SelectField
          label={words.config}
          hint={words.configHint}
          {...text('vmConfig')}
          labels={{ '': words.noConfig }}
          choices={namesOf(configs)}
        />
      )}
      <TextField label={words.cpu} placeholder="3" inputMode="numeric" {...text('cpu')} />
      <TextField label={words.memory} placeholder={words.auto} inputMode="decimal" {...text('memory')} />
    </>
  )
}

const checks = [
  ['tagRequired', words.tagRequired],
  ['noScreen', words.noScreen],
  ['cold', words.cold],
  ['legacyIO', words.legacyIo],
  ['noNetBoost', words.noNetBoost],
  ['gpuPassthrough', words.gpu],
] as const

function More({ text, check, namespace }: MoreProps) {
  const nodes = useLive(listNodes, [namespace]).items
  const isos = useLive(listIsos, [namespace]).items
  const tags = [...new Set(nodes.flatMap((node) => node.orkaTags))].sort()
  return (
    <div className="stack">
      <div className="fields">
        <SelectField label={words.node} {...text('node')} labels={{ '': words.anyNode }} choices={namesOf(nodes)} />
        <TextField label={words.tag} {...text('tag')} offers={tags} />
        <SelectField label={words.scheduler} {...text('scheduler')} labels={words.schedulers} />
        <SelectField label={words.iso} {...text('iso')} labels={{ '': words.noIso }} choices={namesOf(isos)} />
        <TextField label={words.ttl} hint={words.ttlHint} {...text('ttl')} />
        <TextField label={words.ports} hint={words.portsHint} {...text('reservedPorts')} />
        <TextField label={words.labels} hint={words.pairsHint} {...text('labels')} />
        <TextField label={words.metadata} hint={words.pairsHint} {...text('metadata')} />
      </div>
      <AreaField label={words.userdata} {...text('userdata')} />
      <div className="fields">
        {checks.map(([key, label]) => (
          <CheckField key={key} label={label} {...check(key)} />
        ))}
      </div>
    </div>
  )
}

interface EstimateProps {
  readonly namespace: string
  /** Undefined while something in the form is wrong. */
  readonly body: VmDeployment | undefined
}

/** The service is not asked for every letter that is typed. */
const pauseMs = 250

function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), pauseMs)
    return () => clearTimeout(timer)
  }, [value])
  return settled
}

function Estimate({ namespace, body }: EstimateProps) {
  const asked = useSettled(body === undefined ? '' : JSON.stringify(body))
  const { data, error, isFetching } = useQuery({
    queryKey: ['estimate', namespace, asked],
    queryFn: ({ signal }) =>
      client.call(estimateVm, { params: { namespace }, body: JSON.parse(asked) as VmDeployment, signal }),
    enabled: asked !== '',
    placeholderData: (before) => before,
  })
  const isAsked = body !== undefined && asked !== ''
  const tone = !isAsked || !(data || error) ? undefined : error ? 'bad' : data?.node === undefined ? 'warn' : 'good'
  return (
    <div className="note" data-tone={tone} role="status" aria-busy={isFetching}>
      <b>{words.estimate}</b>
      <span>
        {!isAsked ? words.noEstimate : error ? problemOf(error).message : (data?.message ?? words.estimating)}
      </span>
      {isAsked && data !== undefined && !error && data.nodes.length > 1 && (
        <details className="more small">
          <summary>{words.perNode}</summary>
          <ul>
            {data.nodes.map(({ name, fits, reason }) => (
              <li key={name}>{`${fits ? '✓' : '–'} ${name}: ${reason}`}</li>
            ))}
          </ul>
        </details>
      )}
    </div>
  )
}

// The form that deploys a VM: one field has to be filled in, the rest has defaults; beside it, where the VM would go. Answers
// at once; the page of the VM then shows how it comes up.
import { useEffect, useState } from 'react'
import { useLocation, useSearch } from 'wouter'
import { listImages } from '../../../src/api/images/images.ts'
import { listIsos } from '../../../src/api/images/isos.ts'
import { listNodes } from '../../../src/api/nodes/nodes.ts'
import { estimateVm } from '../../../src/api/vms/estimates.ts'
import { listVmConfigs } from '../../../src/api/vms/vm-configs.ts'
import type { VmDeployment } from '../../../src/api/vms/vm-deployment.ts'
import { deployVm } from '../../../src/api/vms/vms.ts'
import { problemOf, useAnswer } from '../../api/calls.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { texts } from '../../texts.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { AreaField, CheckField, NamespaceField, SelectField, TextField, useForm } from '../../ui/field.tsx'
import { vmPath } from '../paths.ts'
import { deploymentOf, emptyForm, faultsOf } from './deploy-form.ts'
import { deployTexts as words } from './late-texts.ts'
import { Verdicts } from './verdicts.tsx'

/** The values of the form, each with what is wrong with it. A field that is still empty is not marked as wrong. */
function useDeployForm(image: string, vmConfig: string) {
  const { values, field } = useForm({ ...emptyForm, image, vmConfig })
  const faults = faultsOf(values)
  const checked = <K extends keyof typeof values>(key: K) => ({
    ...field(key),
    fault: values[key] === '' ? undefined : faults[key],
  })
  return { values, reason: Object.values(faults)[0], field: checked }
}

interface PartProps {
  readonly field: ReturnType<typeof useDeployForm>['field']
  readonly namespace: string
}

export function Deploy({ onClose }: { readonly onClose: () => void }) {
  const { all, main } = useNamespaces()
  const [, go] = useLocation()
  const query = new URLSearchParams(useSearch())
  const [namespace, setNamespace] = useState(query.get('namespace') ?? main)
  const { values, reason, field } = useDeployForm(query.get('image') ?? '', query.get('config') ?? '')
  const body = deploymentOf(values)
  return (
    <ActionDialog
      words={words.deploy}
      operation={deployVm}
      input={{ params: { namespace }, query: { wait: false }, body }}
      reason={reason}
      size="large"
      onClose={onClose}
      onDone={(vm) => go(vmPath(vm))}
    >
      <div className="fields">
        <Main field={field} namespace={namespace} />
        {all.length > 1 && <NamespaceField value={namespace} onValue={setNamespace} />}
      </div>
      <details className="more">
        <summary>{texts.common.more}</summary>
        <More field={field} namespace={namespace} />
      </details>
      <Estimate namespace={namespace} body={reason === undefined ? body : undefined} />
    </ActionDialog>
  )
}

const namesOf = (items: readonly { readonly name: string }[]): string[] => items.map(({ name }) => name)

function Main({ field, namespace }: PartProps) {
  const images = useLive(listImages, [namespace]).items
  const configs = useLive(listVmConfigs, [namespace]).items
  return (
    <>
      <TextField
        label={words.image}
        hint={words.imageHint}
        {...field('image')}
        offers={namesOf(images.filter((image) => image.state === 'Ready'))}
        autoFocus
      />
      <TextField label={words.name} hint={words.nameHint} {...field('name')} />
      {configs.length > 0 && (
        <SelectField
          label={words.config}
          hint={words.configHint}
          {...field('vmConfig')}
          labels={{ '': words.noConfig }}
          choices={namesOf(configs)}
        />
      )}
      <TextField label={words.cpu} placeholder="3" inputMode="numeric" {...field('cpu')} />
      <TextField label={words.memory} placeholder={words.auto} inputMode="decimal" {...field('memory')} />
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

function More({ field, namespace }: PartProps) {
  const nodes = useLive(listNodes, [namespace]).items
  const isos = useLive(listIsos, [namespace]).items
  const tags = [...new Set(nodes.flatMap((node) => node.orkaTags))].sort()
  return (
    <div className="stack">
      <div className="fields">
        <SelectField label={words.node} {...field('node')} labels={{ '': words.anyNode }} choices={namesOf(nodes)} />
        <TextField label={words.tag} hint={words.tagHint} {...field('tag')} offers={tags} />
        <SelectField label={words.scheduler} {...field('scheduler')} labels={words.schedulers} />
        <SelectField label={words.iso} {...field('iso')} labels={{ '': words.noIso }} choices={namesOf(isos)} />
        <TextField label={words.ttl} hint={words.ttlHint} {...field('ttl')} />
        <TextField label={words.ports} hint={words.portsHint} {...field('reservedPorts')} />
        <TextField label={words.labels} hint={words.pairsHint} {...field('labels')} />
        <TextField label={words.metadata} hint={words.pairsHint} {...field('metadata')} onKeep={undefined} />
      </div>
      {/* A script may hold passwords. */}
      <AreaField label={words.userdata} {...field('userdata')} onKeep={undefined} />
      <div className="fields">
        {checks.map(([key, label]) => (
          <CheckField key={key} label={label} {...field(key)} />
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
  const input = { params: { namespace }, body: asked === '' ? undefined : (JSON.parse(asked) as VmDeployment) }
  const now = useAnswer(estimateVm, input, { isOff: asked === '' })
  // What was said before stays until there is something new to say.
  const [last, setLast] = useState(now)
  if (!now.isPending && now !== last) setLast(now)
  const { data, error } = last
  const isAsked = body !== undefined && asked !== ''
  const tone = !isAsked || !(data || error) ? undefined : error ? 'bad' : data?.node === undefined ? 'warn' : 'good'
  return (
    <div className="note" data-tone={tone} role="status" aria-busy={now.isPending && asked !== ''}>
      <b>{words.estimate}</b>
      <span>
        {!isAsked ? words.noEstimate : error ? problemOf(error).message : (data?.message ?? words.estimating)}
      </span>
      {isAsked && data !== undefined && !error && data.nodes.length > 1 && <Verdicts nodes={data.nodes} />}
    </div>
  )
}

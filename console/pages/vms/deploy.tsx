// The deploy dialog, with an estimate of the node that the VM will run on. It closes as soon as the VM is created; the
// page of the VM shows the progress.
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
import { ActionDialog, type ActionWords } from '../../ui/action-dialog.tsx'
import { AreaField, CheckField, NamespaceField, SelectField, TextField, useForm } from '../../ui/field.tsx'
import { vmPath } from '../paths.ts'
import { deploymentOf, emptyForm, faultsOf } from './deploy-form.ts'
import { Verdicts } from './state.tsx'

const schedulers = { default: 'Spread across nodes', 'most-allocated': 'Fill one node first' }

const deployWords: ActionWords = {
  label: 'Deploy',
  title: () => 'Deploy VM',
}

/** Adds the validation error to each field. Empty fields are not marked. */
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
      words={deployWords}
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
        <summary>More options</summary>
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
        label="Image"
        hint="Or a registry reference (Apple silicon)"
        {...field('image')}
        suggestions={namesOf(images.filter((image) => image.state === 'Ready'))}
        autoFocus
      />
      <TextField label="Name" hint="Optional; generated if empty" {...field('name')} />
      {configs.length > 0 && (
        <SelectField
          label="Configuration"
          hint="Fields you fill in override its values"
          {...field('vmConfig')}
          labels={{ '': 'None' }}
          choices={namesOf(configs)}
        />
      )}
      <TextField label="Cores" placeholder="3" inputMode="numeric" {...field('cpu')} />
      <TextField label="Memory in GiB" placeholder="Automatic" inputMode="decimal" {...field('memory')} />
    </>
  )
}

const checks = [
  ['tagRequired', 'Require the tag'],
  ['noScreen', 'No screen (disable VNC)'],
  ['cold', 'Cold boot (ignore memory saved in the image)'],
  ['legacyIO', 'Legacy disk devices (Intel)'],
  ['noNetBoost', 'Disable fast network devices (Intel)'],
  ['gpuPassthrough', 'GPU passthrough (Intel, requires No screen)'],
] as const

function More({ field, namespace }: PartProps) {
  const nodes = useLive(listNodes, [namespace]).items
  const isos = useLive(listIsos, [namespace]).items
  const tags = [...new Set(nodes.flatMap((node) => node.orkaTags))].sort()
  return (
    <div className="stack">
      <div className="fields">
        <SelectField label="Node" {...field('node')} labels={{ '': 'Any' }} choices={namesOf(nodes)} />
        <TextField label="Tag" hint="Prefer nodes with this tag" {...field('tag')} suggestions={tags} />
        <SelectField label="Scheduler" {...field('scheduler')} labels={schedulers} />
        <SelectField label="ISO (Intel)" {...field('iso')} labels={{ '': 'None' }} choices={namesOf(isos)} />
        <TextField label="Expires in" hint="For example 2h or 7d (default: never)" {...field('ttl')} />
        <TextField label="Ports" hint="NODE:VM, separated by commas, for example 9000:80" {...field('reservedPorts')} />
        <TextField label="Labels" hint="key=value, separated by commas" {...field('labels')} />
        <TextField label="Metadata" hint="key=value, separated by commas" {...field('metadata')} onKeep={undefined} />
      </div>
      {/* A script may contain secrets, so it is not kept over a reload. */}
      <AreaField label="First-boot script" {...field('userdata')} onKeep={undefined} />
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
  /** Undefined while the form is invalid. */
  readonly body: VmDeployment | undefined
}

/** Debounces the requests for estimates. */
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
  const settledBody = useSettled(body === undefined ? '' : JSON.stringify(body))
  const input = {
    params: { namespace },
    body: settledBody === '' ? undefined : (JSON.parse(settledBody) as VmDeployment),
  }
  const now = useAnswer(estimateVm, input, { isOff: settledBody === '' })
  // Keeps the last estimate until a new one has arrived.
  const [last, setLast] = useState(now)
  if (!now.isPending && now !== last) setLast(now)
  const { data, error } = last
  const hasEstimate = body !== undefined && settledBody !== ''
  const tone = !hasEstimate || !(data || error) ? undefined : error ? 'bad' : data?.node === undefined ? 'warn' : 'good'
  return (
    <div className="note" data-tone={tone} role="status" aria-busy={now.isPending && settledBody !== ''}>
      <b>Placement</b>
      <span>
        {!hasEstimate
          ? 'Choose an image to see which node the VM will run on.'
          : error
            ? problemOf(error).message
            : (data?.message ?? 'Checking nodes…')}
      </span>
      {hasEstimate && data !== undefined && !error && data.nodes.length > 1 && <Verdicts nodes={data.nodes} />}
    </div>
  )
}

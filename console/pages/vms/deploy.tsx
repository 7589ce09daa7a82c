// The form that deploys a VM: one field has to be filled in, the rest has defaults. Answers at once; the page of the VM
// then shows how it comes up.
import { useState } from 'react'
import { useLocation, useSearch } from 'wouter'
import { listImages } from '../../../src/api/images/images.ts'
import { listIsos } from '../../../src/api/images/isos.ts'
import { listNodes } from '../../../src/api/nodes/nodes.ts'
import { listVmConfigs } from '../../../src/api/vms/vm-configs.ts'
import { deployVm } from '../../../src/api/vms/vms.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { texts } from '../../texts.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { AreaField, CheckField, SelectField, TextField } from '../../ui/field.tsx'
import { vmPath } from '../paths.ts'
import { type DeployForm, deploymentOf, emptyForm, type Faults, faultsOf } from './deploy-form.ts'
import { Estimate } from './estimate.tsx'

const words = texts.deploy
type Change = (part: Partial<DeployForm>) => void

interface PartProps {
  readonly form: DeployForm
  readonly change: Change
  readonly faultOf: (key: keyof DeployForm) => string | undefined
  readonly namespace: string
}

export function Deploy({ onClose }: { readonly onClose: () => void }) {
  const { all, main } = useNamespaces()
  const [, go] = useLocation()
  const query = new URLSearchParams(useSearch())
  const [namespace, setNamespace] = useState(query.get('namespace') ?? main)
  const [form, setForm] = useState<DeployForm>({
    ...emptyForm,
    image: query.get('image') ?? '',
    vmConfig: query.get('config') ?? '',
  })
  const change: Change = (part) => setForm((before) => ({ ...before, ...part }))
  const faults = faultsOf(form)
  const first = Object.values(faults)[0]
  const body = deploymentOf(form)
  return (
    <ActionDialog
      title={words.title}
      label={words.submit}
      operation={deployVm}
      input={{ params: { namespace }, query: { wait: false }, body }}
      reason={first}
      size="large"
      onClose={onClose}
      onDone={(vm) => go(vmPath(vm))}
    >
      {(said) => {
        const part: PartProps = {
          form,
          change,
          namespace,
          faultOf: (key) => shownFault(form, faults, key) ?? said.get(key),
        }
        return (
          <>
            <div className="fields">
              <Main {...part} />
              {all.length > 1 && (
                <SelectField
                  label={texts.common.namespace}
                  value={namespace}
                  onValue={setNamespace}
                  choices={all.map((name) => ({ value: name, label: name }))}
                />
              )}
            </div>
            <details className="more">
              <summary>{texts.common.more}</summary>
              <More {...part} />
            </details>
            <Estimate namespace={namespace} body={first === undefined ? body : undefined} />
          </>
        )
      }}
    </ActionDialog>
  )
}

/** Nobody is scolded for a field that is still empty. */
const shownFault = (form: DeployForm, faults: Faults, key: keyof DeployForm): string | undefined =>
  form[key] === '' ? undefined : faults[key]

function Main({ form, change, faultOf, namespace }: PartProps) {
  const images = useLive(listImages, [namespace]).items
  const configs = useLive(listVmConfigs, [namespace]).items
  const ready = images.filter((image) => image.state === 'Ready').map((image) => image.name)
  return (
    <>
      <TextField
        label={words.image}
        hint={words.imageHint}
        fault={faultOf('image')}
        value={form.image}
        onValue={(image) => change({ image })}
        offers={ready}
        autoFocus
      />
      <TextField
        label={words.name}
        hint={words.nameHint}
        fault={faultOf('name')}
        value={form.name}
        onValue={(name) => change({ name })}
      />
      {configs.length > 0 && (
        <SelectField
          label={words.config}
          hint={words.configHint}
          fault={faultOf('vmConfig')}
          value={form.vmConfig}
          onValue={(vmConfig) => change({ vmConfig })}
          choices={[{ value: '', label: words.noConfig }, ...configs.map(({ name }) => ({ value: name, label: name }))]}
        />
      )}
      <TextField
        label={words.cpu}
        fault={faultOf('cpu')}
        placeholder="3"
        inputMode="numeric"
        value={form.cpu}
        onValue={(cpu) => change({ cpu })}
      />
      <TextField
        label={words.memory}
        fault={faultOf('memory')}
        placeholder={words.auto}
        inputMode="decimal"
        value={form.memory}
        onValue={(memory) => change({ memory })}
      />
    </>
  )
}

function More({ form, change, faultOf, namespace }: PartProps) {
  const nodes = useLive(listNodes, [namespace]).items
  const isos = useLive(listIsos, [namespace]).items
  const tags = [...new Set(nodes.flatMap((node) => node.orkaTags))].sort()
  const texted = [
    ['ttl', words.ttl, words.ttlHint],
    ['reservedPorts', words.ports, words.portsHint],
    ['labels', words.labels, words.pairsHint],
    ['metadata', words.metadata, words.pairsHint],
  ] as const
  const checks = [
    ['tagRequired', words.tagRequired],
    ['noScreen', words.noScreen],
    ['cold', words.cold],
    ['legacyIO', words.legacyIo],
    ['noNetBoost', words.noNetBoost],
    ['gpuPassthrough', words.gpu],
  ] as const
  return (
    <div className="stack">
      <div className="fields">
        <SelectField
          label={words.node}
          fault={faultOf('node')}
          value={form.node}
          onValue={(node) => change({ node })}
          choices={[{ value: '', label: words.anyNode }, ...nodes.map(({ name }) => ({ value: name, label: name }))]}
        />
        <TextField
          label={words.tag}
          fault={faultOf('tag')}
          value={form.tag}
          onValue={(tag) => change({ tag })}
          offers={tags}
        />
        <SelectField
          label={words.scheduler}
          value={form.scheduler}
          onValue={(scheduler) => change({ scheduler })}
          choices={Object.entries(words.schedulers).map(([value, label]) => ({ value, label }))}
        />
        <SelectField
          label={words.iso}
          fault={faultOf('iso')}
          value={form.iso}
          onValue={(iso) => change({ iso })}
          choices={[{ value: '', label: words.noIso }, ...isos.map(({ name }) => ({ value: name, label: name }))]}
        />
        {texted.map(([key, label, hint]) => (
          <TextField
            key={key}
            label={label}
            hint={hint}
            fault={faultOf(key)}
            value={form[key]}
            onValue={(value) => change({ [key]: value })}
          />
        ))}
      </div>
      <AreaField
        label={words.userdata}
        fault={faultOf('userdata')}
        value={form.userdata}
        onValue={(userdata) => change({ userdata })}
      />
      <div className="fields">
        {checks.map(([key, label]) => (
          <CheckField key={key} label={label} value={form[key]} onValue={(value) => change({ [key]: value })} />
        ))}
      </div>
    </div>
  )
}

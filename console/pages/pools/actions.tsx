// The actions of one pool: a menu, and the dialog of each; and the form that creates or changes one.
import { useState } from 'react'
import { createPool, deletePool, drainPool, type Pool, rotatePool, updatePool } from '../../../src/api/vms/pools.ts'
import { listVmConfigs } from '../../../src/api/vms/vm-configs.ts'
import { useLive } from '../../api/live.ts'
import { texts } from '../../texts.ts'
import { ActionDialog, removal } from '../../ui/action-dialog.tsx'
import { AreaField, NamespaceField, SelectField, TextField, useForm } from '../../ui/field.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import { useActing } from '../acting.ts'
import { reasonAgainstDeleting } from '../vms/model.ts'
import { type Acted, confirmed, pausing } from './family.tsx'
import { badLine, emptyPool, formOf, type PoolForm, settingsOf } from './model.ts'
import { poolActions, poolTexts as words } from './texts.ts'

/** What can be done to a pool, in the order of its menu. */
export function poolItems(pool: Pool, { person, onDeleted }: Acted): readonly MenuItem[] {
  const { name, namespace, paused } = pool
  const input = { params: { namespace, pool: name } }
  const reason = reasonAgainstDeleting(pool.owner, person)
  const asked = { name, input, reason }
  return [
    { label: poolActions.update.label, reason, dialog: (onClose) => <Update pool={pool} onClose={onClose} /> },
    ...pausing({ ...asked, words: poolActions, operation: updatePool, paused, texts: words }),
    confirmed({ ...asked, words: poolActions.rotate, operation: rotatePool }),
    confirmed({ ...asked, words: poolActions.drain, operation: drainPool }),
    removal({ name, words: poolActions.delete, operation: deletePool, input, onDone: onDeleted }, reason),
  ]
}

export const PoolMenu = ({ pool, size }: { readonly pool: Pool; readonly size?: 'small' }) => (
  <ActionsMenu name={pool.name} items={poolItems(pool, useActing())} size={size} />
)

export const poolCreation = (namespace: string): MenuItem => ({
  label: poolActions.create.label,
  dialog: (onClose) => <Create namespace={namespace} onClose={onClose} />,
})

function Update({ pool, onClose }: { readonly pool: Pool; readonly onClose: () => void }) {
  const before = formOf(pool)
  const { values, field } = useForm(before)
  const body = settingsOf(values, before)
  const { namespace, name } = pool
  return (
    <ActionDialog
      words={poolActions.update}
      name={name}
      operation={updatePool}
      input={{ params: { namespace, pool: name }, body }}
      reason={faultOf(values)}
      size="large"
      onClose={onClose}
    >
      <div className="fields">
        <Settings namespace={namespace} field={field} />
      </div>
      <ScheduleField field={field} />
    </ActionDialog>
  )
}

function Create({ namespace: main, onClose }: { readonly namespace: string; readonly onClose: () => void }) {
  const [namespace, setNamespace] = useState(main)
  const { values, field } = useForm({ name: '', ...emptyPool })
  const { name, config } = values
  const missing = name === '' ? texts.common.name : config === '' ? words.columns.config : undefined
  return (
    <ActionDialog
      words={poolActions.create}
      made={name}
      operation={createPool}
      input={{ params: { namespace }, body: { name, ...settingsOf(values, emptyPool) } }}
      reason={(missing && texts.common.required(missing)) ?? faultOf(values)}
      size="large"
      onClose={onClose}
    >
      <div className="fields">
        <TextField label={texts.common.name} hint={words.nameHint} {...field('name')} autoFocus />
        <Settings namespace={namespace} field={field} />
        <NamespaceField value={namespace} onValue={setNamespace} />
      </div>
      <ScheduleField field={field} />
    </ActionDialog>
  )
}

function faultOf(form: PoolForm): string | undefined {
  const line = badLine(form)
  return line === undefined ? undefined : words.scheduleFault(line)
}

interface FieldProps {
  readonly field: (name: keyof PoolForm) => {
    readonly field: string
    readonly value: string
    readonly onValue: (value: string) => void
  }
}

function Settings({ namespace, field }: FieldProps & { readonly namespace: string }) {
  const configs = useLive(listVmConfigs, [namespace]).items
  return (
    <>
      <TextField label={words.columns.config} {...field('config')} offers={configs.map(({ name }) => name)} />
      <TextField label={words.minIdle} hint={words.minIdleHint} placeholder="1" {...field('minIdle')} />
      <TextField label={words.maxIdle} hint={words.maxIdleHint} {...field('maxIdle')} />
      <TextField label={words.maxAge} hint={words.maxAgeHint} placeholder={words.maxAgeDefault} {...field('maxAge')} />
      <SelectField label={words.warmVms} {...field('state')} labels={words.stateWords} />
      <TextField label={words.readyCommand} hint={words.readyCommandHint} {...field('readyCommand')} />
    </>
  )
}

const ScheduleField = ({ field }: FieldProps) => (
  <AreaField label={words.schedule} hint={words.scheduleHint} {...field('schedule')} />
)

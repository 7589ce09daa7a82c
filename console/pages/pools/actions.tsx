// The action menu of a pool and its dialogs.
import { useState } from 'react'
import { createPool, deletePool, drainPool, type Pool, rotatePool, updatePool } from '../../../src/api/vms/pools.ts'
import { listVmConfigs } from '../../../src/api/vms/vm-configs.ts'
import { useLive } from '../../api/live.ts'
import { ActionDialog, type ActionWords, confirmed, removal } from '../../ui/action-dialog.tsx'
import { AreaField, NamespaceField, required, SelectField, TextField, useForm } from '../../ui/field.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import { type Acting, useActing } from '../acting.ts'
import { reasonAgainstDeleting } from '../vms/model.ts'
import { pausing } from './family.tsx'
import { badLine, emptyPool, formOf, type PoolForm, poolSettings, warmStates } from './model.ts'

const poolActions = {
  create: {
    label: 'Create pool',
    done: (name) => `Pool ${name} created`,
  },
  update: {
    label: 'Change',
    title: (name) => `Change pool ${name}`,
    text: 'Warm VMs are added or removed to match.',
    done: (name) => `Pool ${name} changed`,
  },
  pause: {
    label: 'Pause',
    title: (name) => `Pause pool ${name}`,
    text: 'Starts no new warm VMs. Existing ones are still used.',
    done: (name) => `Pool ${name} paused`,
  },
  resume: {
    label: 'Resume',
    title: (name) => `Resume pool ${name}`,
    text: 'Fills the pool again.',
    done: (name) => `Pool ${name} resumed`,
  },
  rotate: {
    label: 'Rotate',
    title: (name) => `Rotate pool ${name}`,
    text: 'Replaces all warm VMs, a quarter of the pool at a time. Existing ones are used until they are replaced.',
    done: (name) => `Rotating pool ${name}`,
  },
  drain: {
    label: 'Drain',
    title: (name) => `Drain pool ${name}`,
    text: 'Pauses the pool and removes its warm VMs. VMs deployed from it are kept.',
    done: (name) => `Draining pool ${name}`,
  },
  delete: {
    label: 'Delete',
    title: (name) => `Delete pool ${name}?`,
    text: 'Its warm VMs are removed. VMs deployed from it are kept.',
    done: (name) => `Pool ${name} deleted`,
  },
} as const satisfies Record<string, ActionWords>

export function poolItems(pool: Pool, { person, onDeleted }: Acting): readonly MenuItem[] {
  const { name, namespace, paused } = pool
  const input = { params: { namespace, pool: name } }
  const reason = reasonAgainstDeleting(pool.owner, person)
  const common = { name, input, reason }
  return [
    { label: poolActions.update.label, reason, dialog: (onClose) => <Update pool={pool} onClose={onClose} /> },
    ...pausing({ ...common, words: poolActions, operation: updatePool, paused, noun: 'pool' }),
    confirmed({ ...common, words: poolActions.rotate, operation: rotatePool }),
    confirmed({ ...common, words: poolActions.drain, operation: drainPool }),
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
  const body = poolSettings(values, before)
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
  const missing = name === '' ? 'Name' : config === '' ? 'Configuration' : undefined
  return (
    <ActionDialog
      words={poolActions.create}
      createdName={name}
      operation={createPool}
      input={{ params: { namespace }, body: { name, ...poolSettings(values, emptyPool) } }}
      reason={(missing && required(missing)) ?? faultOf(values)}
      size="large"
      onClose={onClose}
    >
      <div className="fields">
        <TextField label="Name" hint="At most 50 lowercase letters, digits and dashes" {...field('name')} autoFocus />
        <Settings namespace={namespace} field={field} />
        <NamespaceField value={namespace} onValue={setNamespace} />
      </div>
      <ScheduleField field={field} />
    </ActionDialog>
  )
}

function faultOf(form: PoolForm): string | undefined {
  const line = badLine(form)
  return line === undefined
    ? undefined
    : `Invalid entry "${line}". Write minute, hour, day, month, weekday, time zone=number`
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
      <TextField label="Configuration" {...field('config')} offers={configs.map(({ name }) => name)} />
      <TextField label="Minimum idle" hint="Warm VMs to keep ready" placeholder="1" {...field('minIdle')} />
      <TextField label="Maximum idle" hint="Warm VMs above this number are removed" {...field('maxIdle')} />
      <TextField
        label="Maximum age"
        hint="Warm VMs are replaced after this time, for example 12h"
        placeholder="12h"
        {...field('maxAge')}
      />
      <SelectField label="Warm VMs" {...field('state')} labels={warmStates} />
      <TextField
        label="Readiness command"
        hint="Succeeds in the guest once a warm VM is ready (default: SSH responds)"
        {...field('readyCommand')}
      />
    </>
  )
}

const ScheduleField = ({ field }: FieldProps) => (
  <AreaField
    label="Schedule"
    hint="One entry per line, for example: 0 7 * * mon-fri Europe/Berlin=4"
    {...field('schedule')}
  />
)

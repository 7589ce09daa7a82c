// The action menu of a pool and its dialogs.
import { createPool, deletePool, drainPool, type Pool, rotatePool, updatePool } from '../../../src/api/vms/pools.ts'
import { listVmConfigs } from '../../../src/api/vms/vm-configs.ts'
import { useLive } from '../../api/live.ts'
import { confirmItem, creationOf, deletionOf, formItem, removeItem, wordsFor } from '../../ui/action-dialog.tsx'
import { AreaField, type Form, NamespaceField, SelectField, TextField } from '../../ui/field.tsx'
import type { MenuItem } from '../../ui/menu.tsx'
import type { ActionContext } from '../action-context.ts'
import { reasonAgainstDeleting } from '../vms/model.ts'
import { pausing } from './family.tsx'
import { badLine, emptyPool, formOf, type PoolForm, poolSettings, warmStates } from './model.ts'

const words = wordsFor('pool')

export function poolItems(pool: Pool, { person, onDeleted }: ActionContext): readonly MenuItem[] {
  const { name, namespace, paused } = pool
  const input = { params: { namespace, pool: name } }
  const reason = reasonAgainstDeleting(pool.owner, person)
  const common = { name, input, reason }
  const before = formOf(pool)
  return [
    formItem({
      ...common,
      words: words('Change', 'changed', 'Warm VMs are added or removed to match.'),
      operation: updatePool,
      size: 'large',
      initial: before,
      input: (values) => ({ ...input, body: poolSettings(values, before) }),
      needs: { config: 'Configuration', minIdle: 'Minimum idle', maxIdle: 'Maximum idle', maxAge: 'Maximum age' },
      faultOf,
      fields: ({ field }) => (
        <>
          <div className="fields">
            <Settings namespace={namespace} field={field} />
          </div>
          <ScheduleField field={field} />
        </>
      ),
    }),
    ...pausing({
      ...common,
      pause: words('Pause', 'paused', 'Starts no new warm VMs. Existing ones are still used.'),
      resume: words('Resume', 'resumed', 'Fills the pool again.'),
      operation: updatePool,
      paused,
      noun: 'pool',
    }),
    confirmItem({
      ...common,
      words: words(
        'Rotate',
        'is rotating',
        'Replaces all warm VMs, a quarter of the pool at a time. Existing ones are used until they are replaced.',
      ),
      operation: rotatePool,
    }),
    confirmItem({
      ...common,
      words: words('Drain', 'is draining', 'Pauses the pool and removes its warm VMs. VMs deployed from it are kept.'),
      operation: drainPool,
    }),
    removeItem({
      ...common,
      words: deletionOf('pool', 'Its warm VMs are removed. VMs deployed from it are kept.'),
      operation: deletePool,
      onDone: onDeleted,
    }),
  ]
}

export const poolCreation = (main: string): MenuItem =>
  formItem({
    words: creationOf('pool'),
    operation: createPool,
    size: 'large',
    initial: { ...emptyPool, name: '', namespace: main },
    input: ({ name, namespace, ...values }) => ({
      params: { namespace },
      body: { name, ...poolSettings(values, emptyPool) },
    }),
    createdName: ({ name }) => name,
    needs: { name: 'Name', config: 'Configuration' },
    faultOf,
    fields: ({ field, values }) => (
      <>
        <div className="fields">
          <TextField label="Name" hint="At most 50 lowercase letters, digits and dashes" {...field('name')} autoFocus />
          <Settings namespace={values.namespace} field={field} />
          <NamespaceField {...field('namespace')} />
        </div>
        <ScheduleField field={field} />
      </>
    ),
  })

function faultOf(form: PoolForm): string | undefined {
  const line = badLine(form)
  return line === undefined
    ? undefined
    : `Invalid entry "${line}". Write minute, hour, day, month, weekday, time zone=number`
}

interface FieldProps {
  readonly field: Form<PoolForm>['field']
}

function Settings({ namespace, field }: FieldProps & { readonly namespace: string }) {
  const configs = useLive(listVmConfigs, [namespace]).items
  return (
    <>
      <TextField label="Configuration" {...field('config')} suggestions={configs.map(({ name }) => name)} />
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

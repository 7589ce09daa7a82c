// Actions on several VMs: one confirmation that lists them and the ones skipped, and the failures of each.
import { type FormEvent, useState } from 'react'
import type { Operation } from '../../../src/api/operation.ts'
import { setMetadata } from '../../../src/api/service/metadata.ts'
import { deleteVm, execVm, extendVm, type Vm } from '../../../src/api/vms/vms.ts'
import type { RawInput } from '../../../src/client/client.ts'
import { relabelVm } from '../../../src/client/relabel.ts'
import { callOperation, handleUnauthorized, problemOf } from '../../api/calls.ts'
import { client } from '../../api/client.ts'
import { useSession } from '../../api/session.ts'
import { commandLine, hasCommand } from '../../show-as/commands.ts'
import { typeToConfirm } from '../../ui/action-dialog.tsx'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { Dialog, openDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Note } from '../../ui/page.tsx'
import { count } from '../../ui/sizes.ts'
import type { Selection } from '../../ui/table/selection.ts'
import { showToast } from '../../ui/toasts.tsx'
import { vmActionWords } from './actions.tsx'
import { labelChanges, labelFault, reasonAgainst, reasonAgainstDeleting } from './model.ts'

interface BulkAction {
  readonly operation: Operation
  /** `vms` is for example `3 VMs`. */
  readonly done: (vms: string) => string
  /** Why a VM is skipped. */
  readonly reason?: (vm: Vm, person: ReturnType<typeof useSession>['person']) => string | undefined
  readonly field?: { readonly label: string; readonly hint?: string; readonly initial: string }
  readonly faultOf?: (typed: string) => string | undefined
  readonly input: (vm: Vm, typed: string) => RawInput
  /** Replaces the request of `operation`. */
  readonly send?: (vm: Vm, typed: string) => Promise<unknown>
}

const inputFor = ({ namespace, name }: Vm, body?: object): RawInput => ({
  params: { namespace, vm: name },
  ...(body && { body }),
})

const actions: Readonly<Record<'start' | 'stop' | 'extend' | 'label' | 'delete', BulkAction>> = {
  start: {
    operation: execVm,
    done: (vms) => `${vms} started`,
    reason: (vm) => reasonAgainst('start', vm),
    input: (vm) => inputFor(vm, { command: 'start' }),
  },
  stop: {
    operation: execVm,
    done: (vms) => `${vms} stopped`,
    reason: (vm) => reasonAgainst('stop', vm),
    input: (vm) => inputFor(vm, { command: 'stop' }),
  },
  extend: {
    operation: extendVm,
    done: (vms) => `Expiry of ${vms} set`,
    field: { label: 'Expires in', initial: '2h' },
    input: (vm, ttl) => inputFor(vm, { ttl }),
  },
  label: {
    operation: setMetadata,
    done: (vms) => `Labels of ${vms} changed`,
    field: {
      label: 'Labels',
      hint: 'For example team=ios to set one, team- to remove it; separate several by commas',
      initial: '',
    },
    faultOf: labelFault,
    input: ({ namespace, name }, typed) => ({
      params: { namespace, record: name },
      body: { labels: Object.fromEntries(labelChanges(typed).map((each) => [each.name, each.value ?? null])) },
    }),
    // Changes only the given labels, so that concurrent changes of others are kept.
    send: ({ namespace, name }, typed) => relabelVm(client, { namespace, name, changes: labelChanges(typed) }),
  },
  delete: {
    operation: deleteVm,
    done: (vms) => `${vms} deleted`,
    reason: (vm, person) => reasonAgainstDeleting(vm.owner, person),
    input: (vm) => inputFor(vm),
  },
}
type ActionName = keyof typeof actions

const concurrency = 4
const listed = 12

export function BulkBar({ selection }: { readonly selection: Selection<Vm> }) {
  const { items, select } = selection
  if (items.length === 0) return null
  return (
    <div className="line">
      <span className="strong tabular" role="status">
        {`${items.length} selected`}
      </span>
      {(Object.keys(actions) as ActionName[]).map((name) => (
        <Button
          key={name}
          size="small"
          kind={name === 'delete' ? 'danger' : undefined}
          onClick={() =>
            openDialog((onClose) => <BulkDialog name={name} vms={items} onClose={onClose} onDone={() => select([])} />)
          }
        >
          {vmActionWords[name].label}
        </Button>
      ))}
      <Button size="small" kind="quiet" onClick={() => select([])}>
        Clear selection
      </Button>
    </div>
  )
}

interface DialogProps {
  readonly name: ActionName
  readonly vms: readonly Vm[]
  readonly onClose: () => void
  readonly onDone: () => void
}

function BulkDialog({ name, vms, onClose, onDone }: DialogProps) {
  const { person } = useSession()
  const action = actions[name]
  const { label, text } = vmActionWords[name]
  const [chosen] = useState(() => vms.map((vm) => ({ vm, reason: action.reason?.(vm, person) })))
  const can = chosen.flatMap(({ vm, reason }) => (reason === undefined ? [vm] : []))
  const skipped = chosen.filter(({ reason }) => reason !== undefined)
  const isDanger = name === 'delete'
  const confirm = typeToConfirm(String(can.length))
  const field = isDanger ? { label: confirm, initial: '' } : action.field
  const [typed, setTyped] = useState(field?.initial ?? '')
  const [done, setDone] = useState<number>()
  const [failures, setFailures] = useState<readonly string[]>([])
  const unconfirmed = isDanger && typed !== String(can.length) ? confirm : undefined
  const blocked = can.length === 0 ? 'None of the selected VMs allows this' : (unconfirmed ?? action.faultOf?.(typed))
  const isBusy = done !== undefined && done < can.length
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    if (blocked !== undefined || done !== undefined) return
    setDone(0)
    const failed = await inTurns(can, async (vm) => {
      try {
        await (action.send?.(vm, typed) ?? callOperation(action.operation, action.input(vm, typed)))
        return undefined
      } catch (error) {
        handleUnauthorized(error)
        return `${vm.name}: ${problemOf(error).message}`
      } finally {
        setDone((before = 0) => before + 1)
      }
    })
    onDone()
    if (failed.length > 0) return setFailures(failed)
    showToast(action.done(count(can.length, 'VM', 'VMs')))
    onClose()
  }
  return (
    <Dialog title={`${label}: ${count(can.length, 'VM', 'VMs')}`} onClose={onClose}>
      <form className="stack" onSubmit={(event) => void submit(event)} noValidate>
        <p className="muted">{text}</p>
        <ul className="names">
          {can.slice(0, listed).map((vm) => (
            <li key={vm.uid}>{vm.name}</li>
          ))}
          {can.length > listed && <li className="muted">{`and ${can.length - listed} more`}</li>}
        </ul>
        {skipped.length > 0 && (
          <Note tone="warn">
            <span>{`${count(skipped.length, 'VM is', 'VMs are')} skipped:`}</span>
            {skipped.slice(0, listed).map(({ vm, reason }) => (
              <span key={vm.uid}>{`${vm.name}: ${reason ?? ''}`}</span>
            ))}
          </Note>
        )}
        {field && can.length > 0 && (
          <TextField label={field.label} hint={field.hint} value={typed} onValue={setTyped} autoFocus />
        )}
        {can.length > 0 && hasCommand(action.operation) && (
          <details>
            <summary>Show as command</summary>
            <Code
              text={can.map((vm) => commandLine(action.operation, action.input(vm, typed))).join('\n')}
              what="Show as command"
            />
          </details>
        )}
        {isBusy && <p role="status">{`${done} of ${can.length} done`}</p>}
        {failures.length > 0 && (
          <Note tone="bad" role="alert">
            {failures.map((failure) => (
              <span key={failure}>{failure}</span>
            ))}
          </Note>
        )}
        <div className="dialog-foot">
          <Button onClick={onClose}>{done === undefined ? 'Cancel' : 'Close'}</Button>
          {failures.length === 0 && (
            <Button type="submit" kind={isDanger ? 'danger' : 'primary'} isBusy={isBusy} reason={blocked}>
              {label}
            </Button>
          )}
        </div>
      </form>
    </Dialog>
  )
}

/** Works on several VMs at a time. Returns the errors. */
async function inTurns(vms: readonly Vm[], work: (vm: Vm) => Promise<string | undefined>): Promise<readonly string[]> {
  const left = vms.entries()
  const failures: string[] = []
  const worker = async (): Promise<void> => {
    for (const [, vm] of left) {
      const failure = await work(vm)
      if (failure !== undefined) failures.push(failure)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  return failures
}

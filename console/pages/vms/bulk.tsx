// Actions on several VMs: one confirmation that lists them and the ones skipped, and the failures of each.
import { type FormEvent, useState } from 'react'
import type { Operation } from '../../../src/api/operation.ts'
import { setMetadata } from '../../../src/api/service/metadata.ts'
import { deleteVm, execVm, extendVm, type Vm } from '../../../src/api/vms/vms.ts'
import type { RawInput } from '../../../src/client/client.ts'
import { relabelVm } from '../../../src/client/relabel.ts'
import { callOperation, noticeRefusal, problemOf } from '../../api/calls.ts'
import { client } from '../../api/client.ts'
import { useSession } from '../../api/session.ts'
import { commandLine, hasCommand } from '../../teach/commands.ts'
import { typeToConfirm } from '../../ui/action-dialog.tsx'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { Dialog, openDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Note } from '../../ui/page.tsx'
import { count } from '../../ui/sizes.ts'
import type { Selection } from '../../ui/table/selection.ts'
import { say } from '../../ui/toasts.tsx'
import { vmActionWords } from './actions.tsx'
import { labelChanges, labelFault, reasonAgainst, reasonAgainstDeleting } from './model.ts'

const doneText = {
  start: (amount: number) => `${count(amount, 'VM', 'VMs')} started`,
  stop: (amount: number) => `${count(amount, 'VM', 'VMs')} stopped`,
  extend: (amount: number) => `Expiry of ${count(amount, 'VM', 'VMs')} set`,
  label: (amount: number) => `Labels of ${count(amount, 'VM', 'VMs')} changed`,
  delete: (amount: number) => `${count(amount, 'VM', 'VMs')} deleted`,
}

type Person = ReturnType<typeof useSession>['person']

interface BulkAction {
  readonly operation: Operation
  readonly body?: unknown
  /** Why a VM is skipped. */
  readonly reason: (vm: Vm, person: Person) => string | undefined
}

const power = (command: 'start' | 'stop'): BulkAction => ({
  operation: execVm,
  body: { command },
  reason: (vm) => reasonAgainst(command, vm),
})

const actions = {
  start: power('start'),
  stop: power('stop'),
  extend: { operation: extendVm, reason: () => undefined },
  label: { operation: setMetadata, reason: () => undefined },
  delete: { operation: deleteVm, reason: (vm, person) => reasonAgainstDeleting(vm.owner, person) },
} as const satisfies Record<string, BulkAction>
type ActionName = keyof typeof actions

/** Concurrent requests. */
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
  const action: BulkAction = actions[name]
  const [chosen] = useState(() => vms.map((vm) => ({ vm, reason: action.reason(vm, person) })))
  const can = chosen.flatMap(({ vm, reason }) => (reason === undefined ? [vm] : []))
  const leftOut = chosen.filter(({ reason }) => reason !== undefined)
  const [ttl, setTtl] = useState('2h')
  const [labels, setLabels] = useState('')
  const [typed, setTyped] = useState('')
  const [done, setDone] = useState<number>()
  const [failures, setFailures] = useState<readonly string[]>([])
  const inputFor = (vm: Vm): RawInput => {
    const { namespace } = vm
    if (name === 'label') {
      const changed = Object.fromEntries(labelChanges(labels).map((each) => [each.name, each.value ?? null]))
      return { params: { namespace, record: vm.name }, body: { labels: changed } }
    }
    const body = name === 'extend' ? { ttl } : action.body
    return { params: { namespace, vm: vm.name }, ...(body !== undefined && { body }) }
  }
  const needed = name === 'delete' ? String(can.length) : undefined
  const badLabel = name === 'label' ? labelFault(labels) : undefined
  const blocked =
    can.length === 0
      ? 'None of the selected VMs allows this'
      : badLabel !== undefined
        ? badLabel
        : needed !== undefined && typed !== needed
          ? typeToConfirm(needed)
          : undefined
  const isBusy = done !== undefined && done < can.length
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    if (blocked !== undefined || done !== undefined) return
    setDone(0)
    const failed = await inTurns(can, async (vm) => {
      try {
        // Replaces only the given labels, so that concurrent changes of others are kept.
        if (name === 'label')
          await relabelVm(client, { namespace: vm.namespace, name: vm.name, changes: labelChanges(labels) })
        else await callOperation(action.operation, inputFor(vm))
        return undefined
      } catch (error) {
        noticeRefusal(error)
        return `${vm.name}: ${problemOf(error).message}`
      } finally {
        setDone((before = 0) => before + 1)
      }
    })
    onDone()
    if (failed.length > 0) return setFailures(failed)
    say(doneText[name](can.length))
    onClose()
  }
  return (
    <Dialog title={`${vmActionWords[name].label}: ${count(can.length, 'VM', 'VMs')}`} onClose={onClose}>
      <form className="stack" onSubmit={(event) => void submit(event)} noValidate>
        <p className="muted">{vmActionWords[name].text}</p>
        <ul className="names">
          {can.slice(0, listed).map((vm) => (
            <li key={vm.uid}>{vm.name}</li>
          ))}
          {can.length > listed && <li className="muted">{`and ${can.length - listed} more`}</li>}
        </ul>
        {leftOut.length > 0 && (
          <Note tone="warn">
            <span>{`${count(leftOut.length, 'VM is', 'VMs are')} skipped:`}</span>
            {leftOut.slice(0, listed).map(({ vm, reason }) => (
              <span key={vm.uid}>{`${vm.name}: ${reason ?? ''}`}</span>
            ))}
          </Note>
        )}
        {name === 'extend' && <TextField label="Expires in" value={ttl} onValue={setTtl} autoFocus />}
        {name === 'label' && (
          <TextField
            label="Labels"
            hint="For example team=ios to set one, team- to remove it; separate several by commas"
            value={labels}
            onValue={setLabels}
            autoFocus
          />
        )}
        {needed !== undefined && can.length > 0 && (
          <TextField label={typeToConfirm(needed)} value={typed} onValue={setTyped} autoFocus />
        )}
        {can.length > 0 && hasCommand(action.operation) && (
          <details>
            <summary>Show as command</summary>
            <Code
              text={can.map((vm) => commandLine(action.operation, inputFor(vm))).join('\n')}
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
            <Button type="submit" kind={name === 'delete' ? 'danger' : 'primary'} isBusy={isBusy} reason={blocked}>
              {vmActionWords[name].label}
            </Button>
          )}
        </div>
      </form>
    </Dialog>
  )
}

/** Returns the errors in the order of the VMs. */
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

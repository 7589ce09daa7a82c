// One dialog an action of a VM, each no more than its fields and the operation that it calls.
import { useState } from 'react'
import { commitVm, deleteVm, execVm, extendVm, resizeVm, saveVm, type Vm } from '../../../src/api/vms/vms.ts'
import type { VmAction } from '../../../src/rules/vm-actions.ts'
import { useSession } from '../../api/session.ts'
import { texts } from '../../texts.ts'
import { ActionDialog, RemoveDialog } from '../../ui/action-dialog.tsx'
import { CheckField, SecretField, TextField } from '../../ui/field.tsx'
import { imagePath } from '../paths.ts'
import { VmPush } from './vm-push.tsx'

export type VmDialogName = VmAction | 'extend' | 'delete'

interface Props {
  readonly action: VmDialogName
  readonly vm: Vm
  readonly onClose: () => void
  readonly onDeleted?: () => void
}
type DialogProps = Omit<Props, 'action'>

const { actions } = texts
const paramsOf = ({ namespace, name }: Vm) => ({ namespace, vm: name })
const titleOf = (label: string, vm: Vm): string => `${label}: ${vm.name}`

export function VmActionDialog({ action, ...rest }: Props) {
  switch (action) {
    case 'resize':
      return <Resize {...rest} />
    case 'save':
      return <Save {...rest} />
    case 'commit':
      return <Commit {...rest} />
    case 'push':
      return <VmPush vm={rest.vm} onClose={rest.onClose} />
    case 'extend':
      return <Extend {...rest} />
    case 'delete':
      return <Delete {...rest} />
    default:
      return <Power {...rest} command={action} />
  }
}

type Command = 'start' | 'stop' | 'suspend' | 'resume' | 'revert'

function Power({ vm, command, onClose }: DialogProps & { readonly command: Command }) {
  const { label, text } = actions[command]
  return (
    <ActionDialog
      title={titleOf(label, vm)}
      text={text}
      label={label}
      operation={execVm}
      input={{ params: paramsOf(vm), body: { command } }}
      isDanger={command === 'revert'}
      confirm={command === 'revert' ? vm.name : undefined}
      said={actions.done(label, vm.name)}
      onClose={onClose}
    />
  )
}

function Resize({ vm, onClose }: DialogProps) {
  const [size, setSize] = useState('')
  const [user, setUser] = useState('')
  const [password, setPassword] = useState('')
  const { resize } = actions
  const body = { size: Number(size), ...(user && { user }), ...(password && { password }) }
  return (
    <ActionDialog
      title={titleOf(resize.label, vm)}
      text={resize.text}
      label={resize.label}
      operation={resizeVm}
      input={{ params: paramsOf(vm), body }}
      said={actions.done(resize.label, vm.name)}
      reason={/^\d+$/.test(size) ? undefined : texts.deploy.number}
      onClose={onClose}
    >
      {(faults) => (
        <>
          <TextField
            label={resize.size}
            hint={vm.diskGb === undefined ? undefined : resize.now(vm.diskGb)}
            fault={faults.get('size')}
            inputMode="numeric"
            value={size}
            onValue={setSize}
            autoFocus
          />
          {vm.architecture === 'amd64' && (
            <div className="fields">
              <TextField label={resize.user} hint={resize.userHint} value={user} onValue={setUser} />
              <SecretField label={resize.password} onValue={setPassword} />
            </div>
          )}
        </>
      )}
    </ActionDialog>
  )
}

function Save({ vm, onClose }: DialogProps) {
  const [imageName, setImageName] = useState(`${vm.name}-saved`)
  const [description, setDescription] = useState('')
  const { save } = actions
  return (
    <ActionDialog
      title={titleOf(save.label, vm)}
      text={save.text}
      label={save.label}
      operation={saveVm}
      input={{ params: paramsOf(vm), body: { imageName, ...(description && { description }) } }}
      said={actions.started(save.label, imageName)}
      saidOf={imagePath('image', imageName)}
      onClose={onClose}
    >
      {(faults) => (
        <>
          <TextField
            label={save.image}
            fault={faults.get('imageName') ?? faults.get('name')}
            value={imageName}
            onValue={setImageName}
            autoFocus
          />
          <TextField label={texts.common.description} value={description} onValue={setDescription} />
        </>
      )}
    </ActionDialog>
  )
}

function Commit({ vm, onClose }: DialogProps) {
  const [description, setDescription] = useState('')
  const { commit } = actions
  return (
    <ActionDialog
      title={titleOf(commit.label, vm)}
      text={commit.text(vm.image)}
      label={commit.label}
      operation={commitVm}
      input={{ params: paramsOf(vm), body: description ? { description } : {} }}
      said={actions.started(commit.label, vm.image)}
      saidOf={imagePath('image', vm.image)}
      onClose={onClose}
    >
      <TextField label={texts.common.description} value={description} onValue={setDescription} />
    </ActionDialog>
  )
}

function Extend({ vm, onClose }: DialogProps) {
  const [ttl, setTtl] = useState('2h')
  const { extend } = actions
  return (
    <ActionDialog
      title={titleOf(extend.label, vm)}
      text={extend.text}
      label={extend.label}
      operation={extendVm}
      input={{ params: paramsOf(vm), body: { ttl } }}
      said={actions.done(extend.label, vm.name)}
      onClose={onClose}
    >
      {(faults) => (
        <TextField
          label={extend.ttl}
          hint={extend.ttlHint}
          fault={faults.get('ttl')}
          value={ttl}
          onValue={setTtl}
          autoFocus
        />
      )}
    </ActionDialog>
  )
}

function Delete({ vm, onClose, onDeleted }: DialogProps) {
  const { person } = useSession()
  const [isForced, setForced] = useState(false)
  const { delete: words } = actions
  return (
    <RemoveDialog
      name={vm.name}
      text={words.text}
      operation={deleteVm}
      input={{ params: paramsOf(vm), ...(isForced && { query: { force: true } }) }}
      onClose={onClose}
      onDone={onDeleted}
    >
      {person?.admin && vm.powerState === 'unknown' && (
        <CheckField label={words.force} value={isForced} onValue={setForced} />
      )}
    </RemoveDialog>
  )
}

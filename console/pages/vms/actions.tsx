// The action menu of a VM and its dialogs.
import { type ReactNode, useState } from 'react'
import { listRegistryCredentials } from '../../../src/api/access/registry-credentials.ts'
import { listImages } from '../../../src/api/images/images.ts'
import { pushVm } from '../../../src/api/vms/push-jobs.ts'
import { commitVm, deleteVm, execVm, extendVm, resizeVm, saveVm, type Vm } from '../../../src/api/vms/vms.ts'
import { credentialFor, parseImageReference, serversOf } from '../../../src/rules/image-reference.ts'
import type { VmAction } from '../../../src/rules/vm-actions.ts'
import { useLive } from '../../api/live.ts'
import { useSession } from '../../api/session.ts'
import { ActionDialog, type ActionWords, RemoveDialog } from '../../ui/action-dialog.tsx'
import { Button } from '../../ui/button.tsx'
import { CheckField, filled, SecretField, TextField, useForm } from '../../ui/field.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import { Note } from '../../ui/page.tsx'
import { AddCredentials, addWords } from '../access/add-credentials.tsx'
import { type Acting, useActing } from '../acting.ts'
import { imagePath } from '../paths.ts'
import { reasonAgainst, reasonAgainstDeleting, vmActions } from './model.ts'

export const vmActionWords = {
  start: {
    label: 'Start',
    title: (name) => `Start VM ${name}`,
    text: 'Powers the VM on.',
    done: (name) => `VM ${name} started`,
  },
  stop: {
    label: 'Stop',
    title: (name) => `Stop VM ${name}`,
    text: 'Shuts the guest down and powers the VM off. The disk is kept.',
    done: (name) => `VM ${name} stopped`,
  },
  suspend: {
    label: 'Suspend',
    title: (name) => `Suspend VM ${name}`,
    text: 'Pauses the VM and keeps its memory.',
    done: (name) => `VM ${name} suspended`,
  },
  resume: {
    label: 'Resume',
    title: (name) => `Resume VM ${name}`,
    text: 'Continues where the VM was suspended.',
    done: (name) => `VM ${name} resumed`,
  },
  revert: {
    label: 'Revert',
    title: (name) => `Revert VM ${name} to its image?`,
    text: 'The VM restarts from the latest version of its image. All changes on its disk are lost.',
    done: (name) => `VM ${name} reverted`,
  },
  resize: {
    label: 'Resize disk',
    title: (name) => `Resize disk of VM ${name}`,
    text: 'Enlarges the disk and restarts the VM. A disk cannot shrink.',
    done: (name) => `Disk of VM ${name} resized`,
  },
  save: {
    label: 'Save as image',
    title: (name) => `Save VM ${name} as image`,
    text: 'Creates an image of the disk and memory. The VM keeps running.',
    done: (image) => `Saving image ${image}`,
  },
  commit: {
    label: 'Commit to image',
    title: (name) => `Commit VM ${name} to its image`,
    done: (image) => `Committing to image ${image}`,
  },
  push: {
    label: 'Push to registry',
    title: (name) => `Push VM ${name} to a registry`,
    text: 'Pauses the VM briefly, then pushes its disk from the node in the background.',
    done: (reference) => `Pushing ${reference}`,
  },
  extend: {
    label: 'Set expiry',
    title: (name) => `Set expiry of VM ${name}`,
    text: 'The VM and its disk are deleted when it expires.',
    done: (name) => `Expiry of VM ${name} set`,
  },
  label: {
    label: 'Set labels',
    title: (name) => `Set labels of VM ${name}`,
    text: 'Sets and removes labels. Other labels are unchanged.',
    done: (name) => `Labels of VM ${name} set`,
  },
  delete: {
    label: 'Delete',
    title: (name) => `Delete VM ${name}?`,
    text: 'Disks are deleted too. This cannot be undone.',
    done: (name) => `VM ${name} deleted`,
  },
} as const satisfies Record<string, ActionWords>

export const vmItems = (vm: Vm, { person, onDeleted }: Acting): readonly MenuItem[] => [
  ...vmActions.map((action) => ({
    label: vmActionWords[action].label,
    reason: reasonAgainst(action, vm),
    dialog: (onClose: () => void) => dialogs[action]({ vm, onClose }),
  })),
  { label: vmActionWords.extend.label, dialog: (onClose) => <Extend vm={vm} onClose={onClose} /> },
  {
    label: vmActionWords.delete.label,
    reason: reasonAgainstDeleting(vm.owner, person),
    isDanger: true,
    dialog: (onClose) => <Delete vm={vm} onClose={onClose} onDeleted={onDeleted} />,
  },
]

export function VmMenu({ vm, size }: { readonly vm: Vm; readonly size?: 'small' }) {
  const acting = useActing()
  return <ActionsMenu name={vm.name} items={() => vmItems(vm, acting)} size={size} />
}

interface DialogProps {
  readonly vm: Vm
  readonly onClose: () => void
}

const dialogs: Readonly<Record<VmAction, (props: DialogProps) => ReactNode>> = {
  start: (props) => <Power {...props} command="start" />,
  stop: (props) => <Power {...props} command="stop" />,
  suspend: (props) => <Power {...props} command="suspend" />,
  resume: (props) => <Power {...props} command="resume" />,
  revert: (props) => <Power {...props} command="revert" confirm={props.vm.name} isDanger />,
  resize: (props) => <Resize {...props} />,
  save: (props) => <Save {...props} />,
  commit: (props) => <Commit {...props} />,
  push: (props) => <Push {...props} />,
}

const paramsOf = ({ namespace, name }: Vm) => ({ namespace, vm: name })

interface PowerProps extends DialogProps {
  readonly command: 'start' | 'stop' | 'suspend' | 'resume' | 'revert'
  readonly confirm?: string
  readonly isDanger?: boolean
}

const Power = ({ vm, command, ...rest }: PowerProps) => (
  <ActionDialog
    {...rest}
    words={vmActionWords[command]}
    name={vm.name}
    operation={execVm}
    input={{ params: paramsOf(vm), body: { command } }}
  />
)

function Resize({ vm, onClose }: DialogProps) {
  const { values, field } = useForm({ size: '', user: '', password: '' })
  const { size, ...login } = values
  return (
    <ActionDialog
      words={vmActionWords.resize}
      name={vm.name}
      operation={resizeVm}
      input={{ params: paramsOf(vm), body: { size: Number(size), ...filled(login) } }}
      reason={/^\d+$/.test(size) ? undefined : 'Enter a whole number'}
      onClose={onClose}
    >
      <TextField
        label="New size in GiB"
        hint={vm.diskGb === undefined ? undefined : `Currently ${vm.diskGb} GiB`}
        inputMode="numeric"
        {...field('size')}
        autoFocus
      />
      {vm.architecture === 'amd64' && (
        <div className="fields">
          <TextField label="SSH user" hint="Optional; with a password, the file system grows too" {...field('user')} />
          <SecretField label="SSH password" {...field('password')} />
        </div>
      )}
    </ActionDialog>
  )
}

function Save({ vm, onClose }: DialogProps) {
  const { values, field } = useForm({ imageName: `${vm.name}-saved`, description: '' })
  const { imageName, description } = values
  return (
    <ActionDialog
      words={vmActionWords.save}
      name={vm.name}
      createdName={imageName}
      path={imagePath('image', imageName)}
      operation={saveVm}
      input={{ params: paramsOf(vm), body: { imageName, ...filled({ description }) } }}
      onClose={onClose}
    >
      <TextField label="Name of the new image" {...field('imageName')} also="name" autoFocus />
      <TextField label="Description" {...field('description')} />
    </ActionDialog>
  )
}

function Commit({ vm, onClose }: DialogProps) {
  const [description, setDescription] = useState('')
  const image = useLive(listImages, [vm.namespace]).items.find(({ name }) => name === vm.image)
  return (
    <ActionDialog
      words={vmActionWords.commit}
      text={`Creates the next version of image ${vm.image}. VMs on the current version are not affected.`}
      name={vm.name}
      createdName={vm.image}
      path={imagePath('image', vm.image)}
      operation={commitVm}
      input={{ params: paramsOf(vm), body: filled({ description }) }}
      onClose={onClose}
    >
      {image?.protected && (
        <Note tone="warn">{`Image ${vm.image} is protected: only administrators can commit to it`}</Note>
      )}
      <TextField label="Description" value={description} onValue={setDescription} />
    </ActionDialog>
  )
}

/** Administrators can add missing registry credentials from this dialog. */
function Push({ vm, onClose }: DialogProps) {
  const [imageReference, setReference] = useState('')
  const [adding, setAdding] = useState<string>()
  const lacking = useLackingServer(imageReference, vm.namespace)
  return (
    <>
      <ActionDialog
        words={vmActionWords.push}
        name={vm.name}
        createdName={imageReference}
        path="/pushes"
        operation={pushVm}
        input={{ params: paramsOf(vm), body: { imageReference } }}
        about={lacking}
        onClose={onClose}
      >
        <TextField
          label="Image reference"
          hint="For example ghcr.io/acme/ios/sonoma:1.2"
          field="imageReference"
          value={imageReference}
          onValue={setReference}
          autoFocus
        />
        {lacking !== undefined && (
          <Note tone="warn" role="status">
            <span>{`No credentials for ${lacking} in ${vm.namespace}`}</span>
            <div>
              <Button size="small" onClick={() => setAdding(lacking)}>
                {addWords.label}
              </Button>
            </div>
          </Note>
        )}
      </ActionDialog>
      {adding !== undefined && (
        <AddCredentials namespace={vm.namespace} server={adding} onClose={() => setAdding(undefined)} />
      )}
    </>
  )
}

/** The registry without stored credentials. Undefined for other users, who may not list credentials. */
function useLackingServer(reference: string, namespace: string): string | undefined {
  const { person } = useSession()
  const { items, isLoaded } = useLive(listRegistryCredentials, person?.admin ? [namespace] : [])
  const parsed = parseImageReference(reference, 'push')
  if (!person?.admin || !isLoaded || !parsed.ok || credentialFor(parsed.reference, items)) return undefined
  return serversOf(parsed.reference)[0]
}

function Extend({ vm, onClose }: DialogProps) {
  const [ttl, setTtl] = useState('2h')
  return (
    <ActionDialog
      words={vmActionWords.extend}
      name={vm.name}
      operation={extendVm}
      input={{ params: paramsOf(vm), body: { ttl } }}
      onClose={onClose}
    >
      <TextField
        label="Expires in"
        hint="For example 30m, 2h or 7d; 0 for never"
        field="ttl"
        value={ttl}
        onValue={setTtl}
        autoFocus
      />
    </ActionDialog>
  )
}

function Delete({ vm, onClose, onDeleted }: DialogProps & { readonly onDeleted: (() => void) | undefined }) {
  const { person } = useSession()
  const [isForced, setForced] = useState(false)
  return (
    <RemoveDialog
      name={vm.name}
      words={vmActionWords.delete}
      operation={deleteVm}
      input={{ params: paramsOf(vm), ...(isForced && { query: { force: true } }) }}
      onClose={onClose}
      onDone={onDeleted}
    >
      {person?.admin && vm.powerState === 'unknown' && (
        <CheckField label="Delete even though its node is not responding" value={isForced} onValue={setForced} />
      )}
    </RemoveDialog>
  )
}

// The action menu of a VM and its dialogs.
import { useState } from 'react'
import { listRegistryCredentials } from '../../../src/api/access/registry-credentials.ts'
import { listImages } from '../../../src/api/images/images.ts'
import { pushVm } from '../../../src/api/vms/push-jobs.ts'
import { commitVm, deleteVm, execVm, extendVm, getVm, resizeVm, saveVm, type Vm } from '../../../src/api/vms/vms.ts'
import { credentialFor, parseImageReference, serversOf } from '../../../src/rules/image-reference.ts'
import { memorySaveText } from '../../../src/rules/memory-save.ts'
import type { VmAction } from '../../../src/rules/vm-actions.ts'
import { useAnswer } from '../../api/calls.ts'
import { useLive } from '../../api/live.ts'
import { useSession } from '../../api/session.ts'
import {
  ActionDialog,
  type ActionWords,
  confirmItem,
  deletionOf,
  formItem,
  RemoveDialog,
  removeItem,
  wordsFor,
} from '../../ui/action-dialog.tsx'
import { Button } from '../../ui/button.tsx'
import { CheckField, filled, SecretField, TextField } from '../../ui/field.tsx'
import type { MenuItem } from '../../ui/menu.tsx'
import { Note } from '../../ui/page.tsx'
import { AddCredentials, addWords } from '../access/add-credentials.tsx'
import type { ActionContext } from '../action-context.ts'
import { reasonAgainstChanging } from '../images/model.ts'
import { imagePath } from '../paths.ts'
import { reasonAgainst, reasonAgainstDeleting } from './model.ts'

const words = wordsFor('VM')

export const vmActionWords = {
  start: words('Start', 'started', 'Powers the VM on.'),
  stop: words('Stop', 'stopped', 'Shuts the guest down and powers the VM off. The disk is kept.'),
  suspend: words('Suspend', 'suspended', 'Pauses the VM and keeps its memory.'),
  resume: words('Resume', 'resumed', 'Continues where the VM was suspended.'),
  revert: {
    ...words(
      'Revert',
      'reverted',
      'The VM restarts from the latest version of its image. All changes on its disk are lost.',
    ),
    title: (name) => `Revert VM ${name} to its image?`,
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
    text: 'Creates an image of the disk and, where that is possible, of the memory. The VM keeps running.',
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
  label: { label: 'Set labels', text: 'Sets and removes labels. Other labels are unchanged.' },
  delete: deletionOf('VM', 'Disks are deleted too. This cannot be undone.'),
} satisfies Record<string, ActionWords>

export function vmItems(vm: Vm, { person, onDeleted }: ActionContext): readonly MenuItem[] {
  const { name, namespace, image, diskGb } = vm
  const params = { namespace, vm: name }
  const can = (action: VmAction) => ({ words: vmActionWords[action], name, reason: reasonAgainst(action, vm) })
  const power = (command: 'start' | 'stop' | 'suspend' | 'resume' | 'revert') => ({
    ...can(command),
    operation: execVm,
    input: { params, body: { command } },
  })
  return [
    confirmItem(power('start')),
    confirmItem(power('stop')),
    confirmItem(power('suspend')),
    confirmItem(power('resume')),
    removeItem(power('revert')),
    formItem({
      ...can('resize'),
      operation: resizeVm,
      initial: { size: '', user: '', password: '' },
      input: ({ size, ...login }) => ({ params, body: { size: Number(size), ...filled(login) } }),
      faultOf: ({ size }) => (/^\d+$/.test(size) ? undefined : 'Enter a whole number'),
      fields: ({ field }) => (
        <>
          <TextField
            label="New size in GiB"
            hint={diskGb === undefined ? undefined : `Currently ${diskGb} GiB`}
            inputMode="numeric"
            {...field('size')}
            autoFocus
          />
          {vm.architecture === 'amd64' && (
            <div className="fields">
              <TextField
                label="SSH user"
                hint="Optional; with a password, the file system grows too"
                {...field('user')}
              />
              <SecretField label="SSH password" {...field('password')} />
            </div>
          )}
        </>
      ),
    }),
    formItem({
      ...can('save'),
      operation: saveVm,
      initial: { imageName: `${name}-saved`, description: '' },
      input: ({ imageName, description }) => ({ params, body: { imageName, ...filled({ description }) } }),
      createdName: ({ imageName }) => imageName,
      pathOf: ({ imageName }) => imagePath('image', imageName),
      fields: ({ field }) => (
        <>
          <MemoryNote vm={vm} />
          <TextField label="Name of the new image" {...field('imageName')} also="name" autoFocus />
          <TextField label="Description" {...field('description')} />
        </>
      ),
    }),
    formItem({
      ...can('commit'),
      text: `Creates the next version of image ${image}. VMs on the current version are not affected.`,
      operation: commitVm,
      initial: { description: '' },
      input: (values) => ({ params, body: filled(values) }),
      createdName: () => image,
      pathOf: () => imagePath('image', image),
      fields: ({ field }) => (
        <>
          <CommitNote vm={vm} />
          <MemoryNote vm={vm} />
          <TextField label="Description" {...field('description')} />
        </>
      ),
    }),
    {
      label: vmActionWords.push.label,
      reason: can('push').reason,
      dialog: (onClose) => <Push vm={vm} onClose={onClose} />,
    },
    formItem({
      words: vmActionWords.extend,
      name,
      operation: extendVm,
      initial: { ttl: '2h' },
      input: (body) => ({ params, body }),
      fields: ({ field }) => (
        <TextField label="Expires in" hint="For example 30m, 2h or 7d; 0 for never" {...field('ttl')} autoFocus />
      ),
    }),
    {
      label: vmActionWords.delete.label,
      reason: reasonAgainstDeleting(vm.owner, person),
      isDanger: true,
      dialog: (onClose) => <Delete vm={vm} onClose={onClose} onDeleted={onDeleted} />,
    },
  ]
}

interface DialogProps {
  readonly vm: Vm
  readonly onClose: () => void
}

function CommitNote({ vm: { namespace, image: name } }: { readonly vm: Vm }) {
  const { person } = useSession()
  const image = useLive(listImages, [namespace]).items.find((each) => each.name === name)
  const reason = image?.protected
    ? `Image ${name} is protected: only administrators can commit to it`
    : image && reasonAgainstChanging(image, person)
  return reason ? <Note tone="warn">{reason}</Note> : null
}

/** The list of VMs does not say it, so the VM is fetched. */
function MemoryNote({ vm: { namespace, name } }: { readonly vm: Vm }) {
  const { data } = useAnswer(getVm, { params: { namespace, vm: name } })
  const text = memorySaveText(name, data?.memorySave)
  return text === undefined ? null : <Note tone="warn">{text}</Note>
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
        input={{ params: { namespace: vm.namespace, vm: vm.name }, body: { imageReference } }}
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

/** Returns the registry that lacks credentials. Only administrators may list them, so others get undefined. */
function useLackingServer(reference: string, namespace: string): string | undefined {
  const { person } = useSession()
  const { items, isLoaded } = useLive(listRegistryCredentials, person?.admin ? [namespace] : [])
  const parsed = parseImageReference(reference, 'push')
  if (!person?.admin || !isLoaded || !parsed.ok || credentialFor(parsed.reference, items)) return undefined
  return serversOf(parsed.reference)[0]
}

function Delete({ vm, onClose, onDeleted }: DialogProps & { readonly onDeleted: (() => void) | undefined }) {
  const { person } = useSession()
  const [isForced, setForced] = useState(false)
  return (
    <RemoveDialog
      name={vm.name}
      words={vmActionWords.delete}
      operation={deleteVm}
      input={{ params: { namespace: vm.namespace, vm: vm.name }, ...(isForced && { query: { force: true } }) }}
      onClose={onClose}
      onDone={onDeleted}
    >
      {person?.admin && vm.powerState === 'unknown' && (
        <CheckField label="Delete even though its node is not responding" value={isForced} onValue={setForced} />
      )}
    </RemoveDialog>
  )
}

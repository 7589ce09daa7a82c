// Dialogs that create an empty image or pull one from a remote or registry.
import { generateImage } from '../../../src/api/images/images.ts'
import { listRemoteImages, pullRemoteImage } from '../../../src/api/images/remote-images.ts'
import { listRemoteIsos, pullRemoteIso } from '../../../src/api/images/remote-isos.ts'
import { useAnswer } from '../../api/calls.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { filled, required, SelectField, TextField, useForm } from '../../ui/field.tsx'
import { imageActions } from './kind.ts'

interface Props {
  readonly namespace: string
  readonly onClose: () => void
}

export function GenerateImage({ namespace, onClose }: Props) {
  const { values, field } = useForm({ name: '', size: '120G', firmware: '' })
  const { name, size, firmware } = values
  return (
    <ActionDialog
      words={imageActions.generate}
      createdName={name}
      operation={generateImage}
      input={{ params: { namespace }, body: { name, size, ...filled({ firmware }) } }}
      reason={name === '' ? required('Name') : undefined}
      onClose={onClose}
    >
      <div className="fields">
        <TextField label="Name" {...field('name')} autoFocus />
        <TextField label="Size" hint="For example 512M, 120G or 1T" {...field('size')} />
        <FirmwareField {...field('firmware')} />
      </div>
    </ActionDialog>
  )
}

interface FirmwareProps {
  readonly value: string
  readonly onValue: (value: string) => void
}

export const FirmwareField = ({ value, onValue }: FirmwareProps) => (
  <SelectField
    label="Firmware"
    value={value}
    onValue={onValue}
    labels={{ '': 'Default', bios: 'BIOS', uefi: 'UEFI' }}
  />
)

export function PullImage({ namespace, onClose, kind }: Props & { readonly kind: 'image' | 'iso' }) {
  const { values, field } = useForm({ remote: '', name: '' })
  const { remote, name } = values
  const isImage = kind === 'image'
  const offered = useAnswer(isImage ? listRemoteImages : listRemoteIsos, { params: { namespace } })
  const param = isImage ? { remoteimage: remote } : { remoteiso: remote }
  return (
    <ActionDialog
      words={imageActions[kind].pull}
      createdName={remote}
      operation={isImage ? pullRemoteImage : pullRemoteIso}
      input={{ params: { namespace, ...param }, body: filled({ name }) }}
      reason={remote === '' ? required('Source') : undefined}
      onClose={onClose}
    >
      <TextField
        label="Source"
        hint="Name in a remote, or a registry reference such as ghcr.io/team/sonoma:v1"
        {...field('remote')}
        offers={offered.data?.items.map((item) => item.name) ?? []}
        autoFocus
      />
      <TextField label="Name" hint="Optional; same as the source if empty" {...field('name')} />
    </ActionDialog>
  )
}

// Dialogs that create an empty image or pull one from a remote or registry.
import { generateImage } from '../../../src/api/images/images.ts'
import { listRemoteImages, pullRemoteImage } from '../../../src/api/images/remote-images.ts'
import { listRemoteIsos, pullRemoteIso } from '../../../src/api/images/remote-isos.ts'
import { useAnswer } from '../../api/calls.ts'
import { formItem } from '../../ui/action-dialog.tsx'
import { filled, SelectField, TextField } from '../../ui/field.tsx'
import type { MenuItem } from '../../ui/menu.tsx'
import { imageActions } from './kind.ts'

export const generateItem = (namespace: string): MenuItem =>
  formItem({
    words: imageActions.generate,
    operation: generateImage,
    initial: { name: '', size: '120G', firmware: '' },
    input: ({ name, size, firmware }) => ({ params: { namespace }, body: { name, size, ...filled({ firmware }) } }),
    createdName: ({ name }) => name,
    needs: { name: 'Name' },
    fields: ({ field }) => (
      <div className="fields">
        <TextField label="Name" {...field('name')} autoFocus />
        <TextField label="Size" hint="For example 512M, 120G or 1T" {...field('size')} />
        <FirmwareField {...field('firmware')} />
      </div>
    ),
  })

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

export function pullItem(kind: 'image' | 'iso', namespace: string): MenuItem {
  const isImage = kind === 'image'
  return formItem({
    words: imageActions[kind].pull,
    operation: isImage ? pullRemoteImage : pullRemoteIso,
    initial: { remote: '', name: '' },
    input: ({ remote, name }) => ({
      params: { namespace, [isImage ? 'remoteimage' : 'remoteiso']: remote },
      body: filled({ name }),
    }),
    createdName: ({ remote }) => remote,
    needs: { remote: 'Source' },
    fields: ({ field }) => (
      <>
        <SourceField list={isImage ? listRemoteImages : listRemoteIsos} namespace={namespace} {...field('remote')} />
        <TextField label="Name" hint="Optional; same as the source if empty" {...field('name')} />
      </>
    ),
  })
}

interface SourceProps {
  readonly list: typeof listRemoteImages | typeof listRemoteIsos
  readonly namespace: string
  readonly value: string
  readonly onValue: (value: string) => void
}

function SourceField({ list, namespace, ...field }: SourceProps) {
  const { data } = useAnswer(list, { params: { namespace } })
  return (
    <TextField
      label="Source"
      hint="Name in a remote, or a registry reference such as ghcr.io/team/sonoma:v1"
      {...field}
      suggestions={data?.items.map(({ name }) => name) ?? []}
      autoFocus
    />
  )
}

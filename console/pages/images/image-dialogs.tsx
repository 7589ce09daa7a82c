// New images without a file: empty ones, and those that are pulled from remotes and registries.
import { useState } from 'react'
import { generateImage } from '../../../src/api/images/images.ts'
import { listRemoteImages, pullRemoteImage } from '../../../src/api/images/remote-images.ts'
import { listRemoteIsos, pullRemoteIso } from '../../../src/api/images/remote-isos.ts'
import { useAnswer } from '../../api/answer.ts'
import { texts } from '../../texts.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'

const words = texts.images

interface Props {
  readonly namespace: string
  readonly onClose: () => void
}

export function GenerateImage({ namespace, onClose }: Props) {
  const [name, setName] = useState('')
  const [size, setSize] = useState('120G')
  const [firmware, setFirmware] = useState('')
  return (
    <ActionDialog
      title={words.generate}
      text={words.generateText}
      label={words.generate}
      operation={generateImage}
      input={{ params: { namespace }, body: { name, size, ...(firmware && { firmware }) } }}
      reason={name === '' ? texts.common.name : undefined}
      said={texts.actions.done(words.generate, name)}
      onClose={onClose}
    >
      {(faults) => (
        <div className="fields">
          <TextField label={texts.common.name} fault={faults.get('name')} value={name} onValue={setName} autoFocus />
          <TextField
            label={words.generateSize}
            hint={words.generateHint}
            fault={faults.get('size')}
            value={size}
            onValue={setSize}
          />
          <FirmwareField value={firmware} onValue={setFirmware} />
        </div>
      )}
    </ActionDialog>
  )
}

interface FirmwareProps {
  readonly value: string
  readonly onValue: (value: string) => void
}

export const FirmwareField = ({ value, onValue }: FirmwareProps) => (
  <SelectField
    label={words.firmware}
    value={value}
    onValue={onValue}
    choices={[
      { value: '', label: words.firmwareDefault },
      { value: 'bios', label: 'bios' },
      { value: 'uefi', label: 'uefi' },
    ]}
  />
)

export function PullImage({ namespace, onClose, kind }: Props & { readonly kind: 'image' | 'iso' }) {
  const [remote, setRemote] = useState('')
  const [name, setName] = useState('')
  const isImage = kind === 'image'
  const offered = useAnswer(isImage ? listRemoteImages : listRemoteIsos, { params: { namespace } })
  const param = isImage ? { remoteimage: remote } : { remoteiso: remote }
  return (
    <ActionDialog
      title={words.pullTitle}
      label={words.pull}
      operation={isImage ? pullRemoteImage : pullRemoteIso}
      input={{ params: { namespace, ...param }, body: name === '' ? {} : { name } }}
      reason={remote === '' ? words.pullFrom : undefined}
      said={texts.actions.started(words.pull, remote)}
      onClose={onClose}
    >
      {(faults) => (
        <>
          <TextField
            label={words.pullFrom}
            hint={words.pullHint}
            value={remote}
            onValue={setRemote}
            offers={offered.data?.items.map((item) => item.name) ?? []}
            autoFocus
          />
          <TextField
            label={words.pullName}
            hint={words.pullNameHint}
            fault={faults.get('name')}
            value={name}
            onValue={setName}
          />
        </>
      )}
    </ActionDialog>
  )
}

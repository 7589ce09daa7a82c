// New images without a file: empty ones, and those that are pulled from remotes and registries.
import { generateImage } from '../../../src/api/images/images.ts'
import { listRemoteImages, pullRemoteImage } from '../../../src/api/images/remote-images.ts'
import { listRemoteIsos, pullRemoteIso } from '../../../src/api/images/remote-isos.ts'
import { useAnswer } from '../../api/calls.ts'
import { texts } from '../../texts.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { filled, SelectField, TextField, useForm } from '../../ui/field.tsx'
import { imageActions, imageTexts as words } from './texts.ts'

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
      made={name}
      operation={generateImage}
      input={{ params: { namespace }, body: { name, size, ...filled({ firmware }) } }}
      reason={name === '' ? texts.common.required(texts.common.name) : undefined}
      onClose={onClose}
    >
      <div className="fields">
        <TextField label={texts.common.name} {...field('name')} autoFocus />
        <TextField label={words.generateSize} hint={words.generateHint} {...field('size')} />
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
    label={words.firmware}
    value={value}
    onValue={onValue}
    labels={{ '': words.firmwareDefault, ...words.firmwares }}
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
      made={remote}
      operation={isImage ? pullRemoteImage : pullRemoteIso}
      input={{ params: { namespace, ...param }, body: filled({ name }) }}
      reason={remote === '' ? texts.common.required(words.pullFrom) : undefined}
      onClose={onClose}
    >
      <TextField
        label={words.pullFrom}
        hint={words.pullHint}
        {...field('remote')}
        offers={offered.data?.items.map((item) => item.name) ?? []}
        autoFocus
      />
      <TextField label={words.pullName} hint={words.pullNameHint} {...field('name')} />
    </ActionDialog>
  )
}

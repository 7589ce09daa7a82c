// The actions of one image or ISO: a menu, and the dialog of the one that was chosen.
import { type ReactNode, useState } from 'react'
import { useLocation } from 'wouter'
import { addCachedImage, removeCachedImage } from '../../../src/api/images/image-cache.ts'
import type { Image } from '../../../src/api/images/images.ts'
import { serviceUrl } from '../../api/places.ts'
import { pathOf } from '../../teach/requests.ts'
import { texts } from '../../texts.ts'
import { ActionDialog, RemoveDialog } from '../../ui/action-dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Menu, type MenuItem } from '../../ui/menu.tsx'
import { openDialog } from '../../ui/open-dialog.tsx'
import type { ImageKind } from './image-kind.ts'

interface Props {
  readonly image: Image
  readonly kind: ImageKind
  readonly namespace: string
  readonly size?: 'small'
  readonly onDeleted?: () => void
}

const words = texts.images

export function ImageMenu({ image, kind, namespace, size, onDeleted }: Props) {
  const [, go] = useLocation()
  const params = { namespace, [kind.kind]: image.name }
  const notReady = image.state === 'Ready' ? undefined : `${image.name}: ${image.state}`
  const inUse = image.usedBy.length === 0 ? undefined : words.inUse(image.usedBy.length)
  const open = (draw: (shared: DialogProps) => ReactNode) => (): void =>
    openDialog((onClose) => draw({ image, kind, namespace, params, onClose, ...(onDeleted && { onDeleted }) }))
  const ofImages: MenuItem[] = [
    {
      label: texts.vms.deploy,
      reason: notReady,
      onChoose: () => go(`/vms?deploy&image=${encodeURIComponent(image.name)}`),
    },
    { label: words.cacheAdd, reason: notReady, onChoose: open((shared) => <Cache {...shared} isAdding />) },
    { label: words.cacheRemove, onChoose: open((shared) => <Cache {...shared} isAdding={false} />) },
  ]
  const items: MenuItem[] = [
    ...(kind.kind === 'image' ? ofImages : []),
    // The cookie opens it: no token is in the address.
    { label: words.download, reason: notReady, onChoose: () => download(kind, params) },
    { label: words.copy, reason: notReady, onChoose: open((shared) => <Copy {...shared} />) },
    { label: words.describe, onChoose: open((shared) => <Describe {...shared} />) },
    {
      label: texts.actions.delete.label,
      reason: inUse,
      isDanger: true,
      onChoose: open((shared) => <Delete {...shared} />),
    },
  ]
  const label = texts.common.actionsOf(image.name)
  return <Menu label={label} items={items} {...(size ? { size } : { text: texts.common.actions })} />
}

function download(kind: ImageKind, params: Readonly<Record<string, string>>): void {
  const link = document.createElement('a')
  link.href = serviceUrl + pathOf(kind.download, { params })
  link.download = ''
  link.click()
}

interface DialogProps extends Props {
  readonly params: Readonly<Record<string, string>>
  readonly onClose: () => void
}

function Copy({ image, kind, params, onClose }: DialogProps) {
  const [name, setName] = useState(`${image.name}-copy`)
  const [description, setDescription] = useState('')
  return (
    <ActionDialog
      title={`${words.copy}: ${image.name}`}
      text={words.copyText}
      label={words.copy}
      operation={kind.copy}
      input={{ params, body: { name, ...(description && { description }) } }}
      said={texts.actions.done(words.copy, name)}
      onClose={onClose}
    >
      {(faults) => (
        <>
          <TextField label={words.copyName} fault={faults.get('name')} value={name} onValue={setName} autoFocus />
          <TextField label={texts.common.description} value={description} onValue={setDescription} />
        </>
      )}
    </ActionDialog>
  )
}

function Describe({ image, kind, params, onClose }: DialogProps) {
  const [description, setDescription] = useState(image.description)
  return (
    <ActionDialog
      title={`${words.describe}: ${image.name}`}
      label={words.describe}
      operation={kind.describe}
      input={{ params, body: { description } }}
      said={texts.actions.done(words.describe, image.name)}
      onClose={onClose}
    >
      <TextField label={texts.common.description} value={description} onValue={setDescription} autoFocus />
    </ActionDialog>
  )
}

function Delete({ image, kind, params, onClose, onDeleted }: DialogProps) {
  return (
    <RemoveDialog
      name={image.name}
      text={words.deleteText}
      operation={kind.remove}
      input={{ params }}
      onClose={onClose}
      onDone={onDeleted}
    />
  )
}

function Cache({ image, params, onClose, isAdding }: DialogProps & { readonly isAdding: boolean }) {
  const label = isAdding ? words.cacheAdd : words.cacheRemove
  return (
    <ActionDialog
      title={`${label}: ${image.name}`}
      text={isAdding ? words.cacheAddText : words.cacheRemoveText}
      label={label}
      operation={isAdding ? addCachedImage : removeCachedImage}
      input={{ params, body: { all: true } }}
      said={texts.actions.started(label, image.name)}
      onClose={onClose}
    />
  )
}

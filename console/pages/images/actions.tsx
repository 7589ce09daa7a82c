// The action menu of an image or ISO, and its dialogs.
import { useState } from 'react'
import { addCachedImage, removeCachedImage } from '../../../src/api/images/image-cache.ts'
import { type Image, protectImage } from '../../../src/api/images/images.ts'
import { serviceUrl } from '../../api/places.ts'
import { pathOf } from '../../teach/requests.ts'
import { ActionDialog, confirmed, removal } from '../../ui/action-dialog.tsx'
import { filled, TextField, useForm } from '../../ui/field.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import { count } from '../../ui/sizes.ts'
import { type Acting, useActing } from '../acting.ts'
import { type ImageKind, imageActions } from './kind.ts'
import { reasonAgainstDeleting, usersOf } from './model.ts'

type Params = Readonly<Record<string, string>>

interface ImageActing extends Acting {
  readonly kind: ImageKind
  readonly namespace: string
}

export function imageItems(image: Image, { kind, namespace, person, go, onDeleted }: ImageActing): readonly MenuItem[] {
  const { name } = image
  const params: Params = { namespace, [kind.kind]: name }
  const notReady = image.state === 'Ready' ? undefined : `Not available while the state is ${image.state}`
  const users = usersOf(image)
  const undeletable =
    reasonAgainstDeleting(image, person) ??
    (users === 0 ? undefined : `${count(users, 'VM uses', 'VMs use')} this image`)
  const shared = { image, kind, params }
  const actions = imageActions[kind.kind]
  const body = { all: true }
  const ofImages: MenuItem[] = [
    {
      label: 'Deploy VM',
      reason: notReady,
      onChoose: () => go(`/vms?deploy&image=${encodeURIComponent(name)}`),
    },
    confirmed({
      words: imageActions.cacheAdd,
      name,
      operation: addCachedImage,
      input: { params, body },
      reason: notReady,
    }),
    confirmed({ words: imageActions.cacheRemove, name, operation: removeCachedImage, input: { params, body } }),
  ]
  if (person?.admin)
    ofImages.push(
      confirmed({
        words: imageActions[image.protected ? 'unprotect' : 'protect'],
        name,
        operation: protectImage,
        input: { params, body: { protected: !image.protected } },
      }),
    )
  return [
    ...(kind.kind === 'image' ? ofImages : []),
    // The session cookie authorizes the download, so the URL needs no token.
    { label: 'Download', reason: notReady, onChoose: () => download(kind, params) },
    { label: actions.copy.label, reason: notReady, dialog: (onClose) => <Copy {...shared} onClose={onClose} /> },
    { label: actions.describe.label, dialog: (onClose) => <Describe {...shared} onClose={onClose} /> },
    removal({ name, words: actions.delete, operation: kind.remove, input: { params }, onDone: onDeleted }, undeletable),
  ]
}

interface MenuProps {
  readonly image: Image
  readonly kind: ImageKind
  readonly namespace: string
  readonly size?: 'small'
}

export const ImageMenu = ({ image, kind, namespace, size }: MenuProps) => (
  <ActionsMenu name={image.name} items={imageItems(image, { ...useActing(), kind, namespace })} size={size} />
)

function download(kind: ImageKind, params: Params): void {
  const link = document.createElement('a')
  link.href = serviceUrl + pathOf(kind.download, { params })
  link.download = ''
  link.click()
}

interface DialogProps {
  readonly image: Image
  readonly kind: ImageKind
  readonly params: Params
  readonly onClose: () => void
}

function Copy({ image, kind, params, onClose }: DialogProps) {
  const { values, field } = useForm({ name: `${image.name}-copy`, description: '' })
  const { name, description } = values
  return (
    <ActionDialog
      words={imageActions[kind.kind].copy}
      name={image.name}
      createdName={name}
      operation={kind.copy}
      input={{ params, body: { name, ...filled({ description }) } }}
      onClose={onClose}
    >
      <TextField label="Name of the copy" {...field('name')} autoFocus />
      <TextField label="Description" {...field('description')} />
    </ActionDialog>
  )
}

function Describe({ image, kind, params, onClose }: DialogProps) {
  const [description, setDescription] = useState(image.description)
  return (
    <ActionDialog
      words={imageActions[kind.kind].describe}
      name={image.name}
      operation={kind.describe}
      input={{ params, body: { description } }}
      onClose={onClose}
    >
      <TextField label="Description" value={description} onValue={setDescription} autoFocus />
    </ActionDialog>
  )
}

// The action menu of an image or ISO, and its dialogs.
import { addCachedImage, removeCachedImage } from '../../../src/api/images/image-cache.ts'
import { type Image, protectImage } from '../../../src/api/images/images.ts'
import { serviceUrl } from '../../api/urls.ts'
import { pathOf } from '../../show-as/requests.ts'
import { confirmItem, formItem, removeItem } from '../../ui/action-dialog.tsx'
import { filled, TextField } from '../../ui/field.tsx'
import type { MenuItem } from '../../ui/menu.tsx'
import { count } from '../../ui/sizes.ts'
import type { ActionContext } from '../action-context.ts'
import { type ImageKind, imageActions } from './kind.ts'
import { reasonAgainstChanging, usersOf } from './model.ts'

type Params = Readonly<Record<string, string>>

export function imageItems(kind: ImageKind, image: Image, context: ActionContext): readonly MenuItem[] {
  const { main: namespace, person, go, onDeleted } = context
  const { name } = image
  const params: Params = { namespace, [kind.kind]: name }
  const notReady = image.state === 'Ready' ? undefined : `Not available while the state is ${image.state}`
  const users = usersOf(image)
  const unchangeable = reasonAgainstChanging(image, person)
  const undeletable = unchangeable ?? (users === 0 ? undefined : `${count(users, 'VM uses', 'VMs use')} this image`)
  const actions = imageActions[kind.kind]
  const body = { all: true }
  const ofImages: MenuItem[] = [
    {
      label: 'Deploy VM',
      reason: notReady,
      onChoose: () => go(`/vms?deploy&image=${encodeURIComponent(name)}`),
    },
    confirmItem({
      words: imageActions.cacheAdd,
      name,
      operation: addCachedImage,
      input: { params, body },
      reason: notReady,
    }),
    confirmItem({ words: imageActions.cacheRemove, name, operation: removeCachedImage, input: { params, body } }),
  ]
  if (person?.admin)
    ofImages.push(
      confirmItem({
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
    formItem({
      words: actions.copy,
      name,
      reason: notReady,
      operation: kind.copy,
      initial: { name: `${name}-copy`, description: '' },
      input: ({ name, description }) => ({ params, body: { name, ...filled({ description }) } }),
      createdName: (values) => values.name,
      fields: ({ field }) => (
        <>
          <TextField label="Name of the copy" {...field('name')} autoFocus />
          <TextField label="Description" {...field('description')} />
        </>
      ),
    }),
    formItem({
      words: actions.describe,
      name,
      reason: unchangeable,
      operation: kind.describe,
      initial: { description: image.description },
      input: (body) => ({ params, body }),
      fields: ({ field }) => <TextField label="Description" {...field('description')} autoFocus />,
    }),
    removeItem({
      name,
      words: actions.delete,
      reason: undeletable,
      operation: kind.remove,
      input: { params },
      onDone: onDeleted,
    }),
  ]
}

function download(kind: ImageKind, params: Params): void {
  const link = document.createElement('a')
  link.href = serviceUrl + pathOf(kind.download, { params })
  link.download = ''
  link.click()
}

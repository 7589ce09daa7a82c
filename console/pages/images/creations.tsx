// The create buttons of the image and ISO lists, also in the finder.
import type { MenuItem } from '../../ui/menu.tsx'
import { generateItem, pullItem } from './create.tsx'
import type { ImageKind } from './kind.ts'
import { UploadDialog } from './upload.tsx'

/** The first one is the primary button. */
export function imageCreations({ kind }: ImageKind, namespace: string): readonly MenuItem[] {
  const upload: MenuItem = {
    label: 'Upload',
    dialog: (onClose) => <UploadDialog kind={kind} namespace={namespace} onClose={onClose} />,
  }
  const pull = pullItem(kind, namespace)
  return kind === 'image' ? [upload, generateItem(namespace), pull] : [upload, pull]
}

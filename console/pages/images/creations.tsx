// The create buttons of the image and ISO lists, also in the finder.
import type { MenuItem } from '../../ui/menu.tsx'
import { GenerateImage, PullImage } from './create.tsx'
import { type ImageKind, imageActions } from './kind.ts'
import { UploadDialog } from './upload.tsx'

/** The first one is the primary button. */
export function imageCreations({ kind }: ImageKind, namespace: string): readonly MenuItem[] {
  const pull: MenuItem = {
    label: imageActions[kind].pull.label,
    dialog: (onClose) => <PullImage kind={kind} namespace={namespace} onClose={onClose} />,
  }
  const generate: MenuItem = {
    label: imageActions.generate.label,
    dialog: (onClose) => <GenerateImage namespace={namespace} onClose={onClose} />,
  }
  const upload: MenuItem = {
    label: 'Upload',
    dialog: (onClose) => <UploadDialog kind={kind} namespace={namespace} onClose={onClose} />,
  }
  return kind === 'image' ? [upload, generate, pull] : [upload, pull]
}

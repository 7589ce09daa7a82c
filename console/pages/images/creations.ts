// The create buttons of the image and ISO lists, also in the finder.
import type { MenuItem } from '../../ui/menu.tsx'
import { generateItem, pullItem } from './create.tsx'
import type { ImageKind } from './kind.ts'
import { uploadItem } from './upload.tsx'

/** The first one is the primary button. */
export const imageCreations = ({ kind }: ImageKind, namespace: string): readonly MenuItem[] =>
  kind === 'image'
    ? [uploadItem(kind, namespace), generateItem(namespace), pullItem(kind, namespace)]
    : [uploadItem(kind, namespace), pullItem(kind, namespace)]

// The list of images or ISOs.
import type { Image } from '../../../src/api/images/images.ts'
import { longSize, sizeText } from '../../../src/rules/sizes.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { Button } from '../../ui/button.tsx'
import { runItem } from '../../ui/menu.tsx'
import { count } from '../../ui/sizes.ts'
import { Bar } from '../../ui/state.tsx'
import type { Filter } from '../../ui/table/filters.ts'
import { type Column, timeColumn } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { menuColumn, nameColumn } from '../columns.tsx'
import { imagePath } from '../paths.ts'
import { imageItems } from './actions.tsx'
import { imageCreations } from './creations.ts'
import { type ImageKind, imageKinds } from './kind.ts'
import { sourceWords } from './lineage.ts'
import { usersOf } from './model.ts'
import { ImageState } from './state.tsx'

const columnsFor = (kind: ImageKind): readonly Column<Image>[] => [
  nameColumn((image) => imagePath(kind.kind, image.name)),
  { title: 'State', by: (image) => image.state, cell: (image) => <Progress image={image} /> },
  { title: 'Type', by: (image) => image.type, look: 'wide' },
  {
    title: 'Disk size',
    by: (image) => image.size,
    look: 'number wide',
    cell: (image) => longSize(image.size),
  },
  {
    title: 'Space used',
    by: (image) => image.spaceUsed ?? '',
    look: 'number wide',
    cell: (image) => (image.spaceUsed === undefined ? '–' : longSize(image.spaceUsed)),
  },
  {
    title: 'Source',
    by: (image) => image.sourceType,
    look: 'lesser wide',
    cell: (image) => sourceWords[image.sourceType],
  },
  {
    title: 'Used by',
    by: usersOf,
    look: 'number wide',
    cell: (image) => (usersOf(image) === 0 ? '–' : count(usersOf(image), 'VM', 'VMs')),
  },
  timeColumn('Updated', (image) => image.lastUpdatedTimestamp),
  menuColumn(
    ({ name }) => name,
    (image, context) => imageItems(kind, image, context),
  ),
]

const columns = { image: columnsFor(imageKinds.image), iso: columnsFor(imageKinds.iso) }

function Progress({ image }: { readonly image: Image }) {
  const { state, progress, name } = image
  if (state !== 'Updating' || !progress) return <ImageState image={image} />
  return (
    <div className="stack-tight">
      <span className="small tabular">{`${progress.percent}%, ${sizeText(progress.bytes)}`}</span>
      <Bar label={name} value={progress.percent} of={100} />
    </div>
  )
}

const filters: readonly Filter<Image>[] = [
  { param: 'state', label: 'State', of: (image) => image.state },
  { param: 'type', label: 'Type', of: (image) => image.type },
]

export const ImageList = () => <List kind={imageKinds.image} />
export const IsoList = () => <List kind={imageKinds.iso} />

function List({ kind }: { readonly kind: ImageKind }) {
  const { main, isLoaded } = useNamespaces()
  const list = useLive(kind.list, isLoaded ? [main] : [])
  const [upload, ...others] = imageCreations(kind, main)
  return (
    <TablePage
      title={`${kind.noun}s`}
      emptyTitle={`No ${kind.noun === 'Image' ? 'images' : 'ISOs'} yet`}
      emptyText={kind.emptyText}
      operation={kind.list}
      actions={() =>
        others.map((item) => (
          <Button key={item.label} onClick={() => runItem(item)}>
            {item.label}
          </Button>
        ))
      }
      {...(upload && { create: upload })}
      example={kind.emptyCommand}
      list={list}
      columns={columns[kind.kind]}
      filters={filters}
    />
  )
}

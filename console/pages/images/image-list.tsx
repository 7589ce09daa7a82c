// The images, or the ISOs, of the cluster: real and virtual size, where they come from, who uses them, how far they are.
import { useState } from 'react'
import { Link } from 'wouter'
import type { Image } from '../../../src/api/images/images.ts'
import { roughSize } from '../../../src/rules/sizes.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { texts } from '../../texts.ts'
import { Bar } from '../../ui/bar.tsx'
import { Button } from '../../ui/button.tsx'
import { Empty } from '../../ui/notes.tsx'
import { Loaded, Page } from '../../ui/page.tsx'
import { ImageState } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'
import { imagePath } from '../paths.ts'
import { GenerateImage, PullImage } from './image-dialogs.tsx'
import { type ImageKind, imageKinds } from './image-kind.ts'
import { ImageMenu } from './image-menu.tsx'
import { Upload } from './upload.tsx'

const words = texts.images

const columnsFor = (kind: ImageKind, namespace: string): readonly Column<Image>[] => [
  {
    title: texts.common.name,
    by: (image) => image.name,
    cell: (image) => (
      <Link className="strong" href={imagePath(kind.kind, image.name)}>
        {image.name}
      </Link>
    ),
  },
  { title: texts.common.state, by: (image) => image.state, cell: (image) => <Progress image={image} /> },
  { title: texts.common.type, by: (image) => image.type, look: 'wide', cell: (image) => image.type },
  { title: words.columns.disk, by: (image) => image.size, look: 'number', cell: (image) => image.size },
  {
    title: words.columns.space,
    by: (image) => image.spaceUsed ?? '',
    look: 'number wide',
    cell: (image) => image.spaceUsed ?? '–',
  },
  {
    title: words.columns.source,
    by: (image) => image.sourceType,
    look: 'lesser wide',
    cell: (image) => words.sources[image.sourceType],
  },
  {
    title: words.columns.usedBy,
    by: (image) => image.usedBy.length,
    look: 'number wide',
    cell: (image) => words.users(image.usedBy.length),
  },
  {
    title: texts.common.updated,
    by: (image) => image.lastUpdatedTimestamp,
    look: 'lesser wide',
    cell: (image) => <Time at={image.lastUpdatedTimestamp} />,
  },
  {
    title: texts.common.actions,
    look: 'end',
    cell: (image) => <ImageMenu image={image} kind={kind} namespace={namespace} size="small" />,
  },
]

export function Progress({ image }: { readonly image: Image }) {
  const { state, progress, name } = image
  if (state !== 'Updating' || !progress) return <ImageState image={image} />
  return (
    <div className="stack-tight">
      <span className="small tabular">{words.progress(progress.percent, roughSize(progress.bytes))}</span>
      <Bar label={name} value={progress.percent} of={100} />
    </div>
  )
}

export const ImageList = () => <List kind={imageKinds.image} />
export const IsoList = () => <List kind={imageKinds.iso} />

function List({ kind }: { readonly kind: ImageKind }) {
  const { main, isLoaded } = useNamespaces()
  const list = useLive(kind.list, isLoaded ? [main] : [])
  const [open, setOpen] = useState<'upload' | 'generate' | 'pull'>()
  const close = (): void => setOpen(undefined)
  const params = { namespace: main }
  return (
    <Page
      title={kind.title}
      actions={
        <>
          <TeachPage operation={kind.list} input={{ params }} />
          {kind.kind === 'image' && <Button onClick={() => setOpen('generate')}>{words.generate}</Button>}
          <Button onClick={() => setOpen('pull')}>{words.pull}</Button>
          <Button kind="primary" onClick={() => setOpen('upload')}>
            {words.upload}
          </Button>
        </>
      }
    >
      <Loaded
        list={{ ...list, isLoaded: list.isLoaded && isLoaded }}
        empty={
          <Empty title={kind.emptyTitle} text={kind.emptyText} command={kind.emptyCommand}>
            <Button kind="primary" onClick={() => setOpen('upload')}>
              {words.upload}
            </Button>
          </Empty>
        }
      >
        <Table label={kind.title} columns={columnsFor(kind, main)} rows={list.items} keyOf={(image) => image.name} />
      </Loaded>
      {open === 'upload' && <Upload kind={kind.kind} namespace={main} onClose={close} />}
      {open === 'generate' && <GenerateImage namespace={main} onClose={close} />}
      {open === 'pull' && <PullImage kind={kind.kind} namespace={main} onClose={close} />}
    </Page>
  )
}

// One image or ISO: its sizes, its content, where it comes from, who uses it, which nodes have a copy, what was done to it.
import { Link, useLocation } from 'wouter'
import type { Image } from '../../../src/api/images/images.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { texts } from '../../texts.ts'
import { Bar } from '../../ui/bar.tsx'
import { Copy } from '../../ui/copy.tsx'
import { Empty } from '../../ui/notes.tsx'
import { Card, Facts, Loading, Page } from '../../ui/page.tsx'
import { ImageState } from '../../ui/state.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'
import { EventFeed } from '../service/event-feed.tsx'
import { VmLink } from '../vms/vm-link.tsx'
import { CopiesOfImage } from './image-copies.tsx'
import { type ImageKind, imageKinds } from './image-kind.ts'
import { ImageMenu } from './image-menu.tsx'
import { lineageOf } from './lineage.ts'
import { LineageGraph } from './lineage-graph.tsx'

const words = texts.images

interface Props {
  readonly params: { readonly name?: string }
}

export const ImageDetail = ({ params }: Props) => <Detail kind={imageKinds.image} name={params.name ?? ''} />
export const IsoDetail = ({ params }: Props) => <Detail kind={imageKinds.iso} name={params.name ?? ''} />

function Detail({ kind, name }: { readonly kind: ImageKind; readonly name: string }) {
  const { main } = useNamespaces()
  const { items, isLoaded } = useLive(kind.list, [main])
  const [, go] = useLocation()
  const image = items.find((each) => each.name === name)
  const above = <Link href={kind.path}>{kind.title}</Link>
  if (!image)
    return (
      <Page title={name} above={above}>
        {isLoaded ? <Empty title={words.gone} text={texts.common.notFoundText} /> : <Loading />}
      </Page>
    )
  const lineage = lineageOf(image, items, words)
  return (
    <Page
      title={image.name}
      above={above}
      beside={<ImageState image={image} />}
      actions={
        <>
          <TeachPage operation={kind.list} input={{ params: { namespace: main } }} />
          <ImageMenu image={image} kind={kind} namespace={main} onDeleted={() => go(kind.path)} />
        </>
      }
    >
      {image.errorMessage !== undefined && (
        <div className="note" data-tone="bad" role="alert">
          {image.errorMessage}
        </div>
      )}
      {image.progress && image.state === 'Updating' && (
        <Bar label={image.name} value={image.progress.percent} of={100} />
      )}
      <Card title={words.lineage}>
        <LineageGraph lineage={lineage} />
      </Card>
      <div className="grid-2">
        <Card title={texts.vms.details}>
          <Details image={image} />
        </Card>
        <div className="stack">
          {kind.kind === 'image' && (
            <>
              <Card title={words.versions}>
                <Versions image={image} />
              </Card>
              <Card title={words.cached}>
                <CopiesOfImage namespace={main} name={image.name} />
              </Card>
            </>
          )}
          <Card title={words.history}>
            <EventFeed namespace={main} kinds={[kind.eventKind]} name={image.name} empty={words.noHistory} />
          </Card>
        </div>
      </div>
    </Page>
  )
}

function Details({ image }: { readonly image: Image }) {
  return (
    <Facts
      facts={[
        image.description === '' ? undefined : [texts.common.description, image.description],
        [texts.common.type, texts.vms.architectures[image.type]],
        [words.columns.disk, image.size],
        image.spaceUsed === undefined ? undefined : [words.columns.space, image.spaceUsed],
        [words.columns.source, `${words.sources[image.sourceType]}: ${image.source}`],
        [texts.common.owner, image.owner],
        [texts.common.updated, <Time key="updated" at={image.lastUpdatedTimestamp} />],
        image.checksum === undefined
          ? undefined
          : [
              words.checksum,
              <span key="sum" className="copyable mono">
                {image.checksum}
                <Copy text={image.checksum} what={words.checksum} />
              </span>,
            ],
        [
          words.columns.usedBy,
          image.usedBy.length === 0 ? (
            texts.common.none
          ) : (
            <ul key="users">
              {image.usedBy.map((user) => (
                <li key={user}>
                  <VmLink vm={user} />
                </li>
              ))}
            </ul>
          ),
        ],
      ]}
    />
  )
}

/** The newest first: what was committed when, from which VM. */
function Versions({ image }: { readonly image: Image }) {
  const versions = image.versions?.toReversed() ?? []
  if (versions.length === 0) return <p className="muted">{words.noVersions}</p>
  return (
    <ul className="feed" aria-label={words.versions}>
      {versions.map(({ version, createdAt, checksum, vm }) => (
        <li key={version}>
          <span className="line">
            {words.version(version)}
            {vm === undefined ? null : <VmLink vm={vm} />}
            {version === image.version && <span className="tag">{words.current}</span>}
          </span>
          <span className="muted small">
            <Time at={createdAt} />
          </span>
          {checksum !== undefined && <span className="small muted mono digest">{checksum}</span>}
        </li>
      ))}
    </ul>
  )
}

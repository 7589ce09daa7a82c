// One image or ISO: its sizes, its content, where it comes from, who uses it, which nodes have a copy, what was done to it.
import { useQuery } from '@tanstack/react-query'
import { Link, useLocation } from 'wouter'
import { listCachedImages } from '../../src/api/image-cache.ts'
import type { Image } from '../../src/api/images.ts'
import { listVms } from '../../src/api/vms.ts'
import { client } from '../api/client.ts'
import { useLive } from '../api/live.ts'
import { useNamespaces } from '../api/namespaces.ts'
import { texts } from '../texts.ts'
import { Bar } from '../ui/bar.tsx'
import { Copy } from '../ui/copy.tsx'
import { Empty } from '../ui/notes.tsx'
import { Card, Facts, Loading, Page } from '../ui/page.tsx'
import { ImageState, State } from '../ui/state.tsx'
import { TeachPage } from '../ui/teach.tsx'
import { Time } from '../ui/time.tsx'
import { EventFeed } from './event-feed.tsx'
import { type ImageKind, imageKinds } from './image-kind.ts'
import { ImageMenu } from './image-menu.tsx'
import { isVersionOf, lineageOf } from './lineage.ts'
import { LineageGraph } from './lineage-graph.tsx'
import { vmPath } from './paths.ts'

const words = texts.images
const copiesRefreshMs = 3_000

interface Props {
  readonly params: { readonly name?: string }
}

export const ImageDetail = ({ params }: Props) => <Detail kind={imageKinds.image} name={params.name ?? ''} />
export const IsoDetail = ({ params }: Props) => <Detail kind={imageKinds.iso} name={params.name ?? ''} />

function Detail({ kind, name }: { readonly kind: ImageKind; readonly name: string }) {
  const { main, all } = useNamespaces()
  const { items, isLoaded } = useLive(kind.list, [main])
  const vms = useLive(listVms, all)
  const [, go] = useLocation()
  const image = items.find((each) => each.name === name)
  const above = <Link href={kind.path}>{kind.title}</Link>
  if (!image)
    return (
      <Page title={name} above={above}>
        {isLoaded ? <Empty title={words.gone} text={texts.common.notFoundText} /> : <Loading />}
      </Page>
    )
  const lineage = lineageOf(image, items, vms.items, words)
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
            <Card title={words.cached}>
              <Copies namespace={main} name={image.name} />
            </Card>
          )}
          <Card title={words.history}>
            <EventFeed
              namespace={main}
              kind={kind.eventKind}
              name={image.name}
              empty={words.noHistory}
              also={(event) => isVersionOf(image, event, vms.items)}
            />
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
              {image.usedBy.map((user) => {
                const [namespace = '', name = ''] = user.split('/')
                return (
                  <li key={user}>
                    <Link href={vmPath({ namespace, name })}>{user}</Link>
                  </li>
                )
              })}
            </ul>
          ),
        ],
      ]}
    />
  )
}

/** No list that can be watched: it is worked out from what nodes say. Looked at again while it is on the screen. */
function Copies({ namespace, name }: { readonly namespace: string; readonly name: string }) {
  const { data, isPending } = useQuery({
    queryKey: ['cache', namespace],
    queryFn: ({ signal }) => client.call(listCachedImages, { params: { namespace }, signal }),
    refetchInterval: copiesRefreshMs,
  })
  if (isPending) return <Loading />
  const copies = data?.items.find((each) => each.name === name)?.nodes ?? []
  if (copies.length === 0) return <p className="muted">{words.notCached}</p>
  return (
    <ul className="feed">
      {copies.map((copy) => (
        <li key={copy.node}>
          <span className="line">
            {copy.node}
            <State
              tone={copy.state === 'Ready' ? 'good' : copy.state === 'Failed' ? 'bad' : 'busy'}
              word={copy.progress ? `${copy.state} ${texts.common.percent(copy.progress.percent)}` : copy.state}
            />
            {copy.pinned && <span className="tag">{words.pinned}</span>}
          </span>
          <span className="muted tabular">{copy.spaceUsed ?? ''}</span>
          {copy.errorMessage !== undefined && <span className="small muted">{copy.errorMessage}</span>}
        </li>
      ))}
    </ul>
  )
}

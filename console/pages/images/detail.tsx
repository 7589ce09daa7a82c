// The page of one image or ISO.
import type { Image } from '../../../src/api/images/images.ts'
import { lineageOf } from '../../../src/client/image-lineage.ts'
import { longSize, sizeText } from '../../../src/rules/sizes.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { architectures } from '../../ui/architectures.ts'
import { Copyable } from '../../ui/copy.tsx'
import { NextActions } from '../../ui/menu.tsx'
import { Card, Facts, Note } from '../../ui/page.tsx'
import { Bar } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { DetailPage } from '../detail-page.tsx'
import { EventsCard } from '../event-feed.tsx'
import { VmLink } from '../links.tsx'
import type { Named } from '../paths.ts'
import { imageItems } from './actions.tsx'
import { CopiesOfImage } from './copies.tsx'
import { type ImageKind, imageKinds } from './kind.ts'
import { sourceWords } from './lineage.ts'
import { LineageTree } from './lineage-tree.tsx'
import { ImageState } from './state.tsx'
import { UsersOfImage, VmsOfIso } from './users.tsx'

export const ImageDetail = ({ name }: Named) => <Detail kind={imageKinds.image} name={name} />
export const IsoDetail = ({ name }: Named) => <Detail kind={imageKinds.iso} name={name} />

function Detail({ kind, name }: { readonly kind: ImageKind; readonly name: string }) {
  const { main, shown } = useNamespaces()
  const list = useLive(kind.list, [main])
  return (
    <DetailPage
      list={list}
      name={name}
      noun={kind.noun}
      path={kind.path}
      operation={kind.get}
      params={{ namespace: main, [kind.kind]: name }}
      state={(image) => <ImageState image={image} />}
      itemsOf={(image, context) => imageItems(kind, image, context)}
    >
      {(image, items) => (
        <>
          {image.errorMessage !== undefined && (
            <Note tone="bad" role="alert">
              {image.errorMessage}
            </Note>
          )}
          {image.warning !== undefined && <Note tone="warn">{image.warning}</Note>}
          {image.progress && image.state === 'Updating' && <Bar label={name} value={image.progress.percent} of={100} />}
          <div className="grid-2">
            <div className="stack">
              {kind.kind === 'image' && (
                <Card title="Lineage">
                  <LineageTree name={name} lineage={lineageOf(image, list.items)} />
                </Card>
              )}
              <Card title="Used by">
                {kind.kind === 'image' ? <UsersOfImage image={image} /> : <VmsOfIso iso={image} />}
              </Card>
              <Card title="Next">
                <NextActions items={items} />
              </Card>
              <EventsCard
                title="History"
                namespaces={shown}
                kinds={[kind.eventKind]}
                name={name}
                endedBy={kind.deleted}
              />
            </div>
            <div className="stack">
              <Card title="Details">
                <Details image={image} />
              </Card>
              {kind.kind === 'image' && (
                <>
                  <Card title="Cached on nodes">
                    <CopiesOfImage name={name} />
                  </Card>
                  <Card title="Versions">
                    <Versions image={image} />
                  </Card>
                </>
              )}
            </div>
          </div>
        </>
      )}
    </DetailPage>
  )
}

const Details = ({ image }: { readonly image: Image }) => (
  <Facts
    facts={{
      Description: image.description || undefined,
      Type: architectures[image.type],
      'Disk size': longSize(image.size),
      'Space used': image.spaceUsed && longSize(image.spaceUsed),
      Source: `${sourceWords[image.sourceType]}: ${image.source || 'In another namespace'}`,
      Owner: image.owner || 'In another namespace',
      Updated: <Time at={image.lastUpdatedTimestamp} />,
      Checksum: image.checksum && <Copyable text={image.checksum} what="Checksum" />,
    }}
  />
)

function Versions({ image }: { readonly image: Image }) {
  const versions = image.versions?.toReversed() ?? []
  if (versions.length === 0) return <p className="muted">No versions yet</p>
  return (
    <ul className="feed" aria-label="Versions">
      {versions.map(({ version, createdAt, checksum, vm, by, bytesAdded }) => (
        <li key={version}>
          <span className="line">
            {`Version ${version}`}
            {vm === undefined ? null : <VmLink vm={vm} />}
            {by !== undefined && <span className="muted small">{`by ${by}`}</span>}
            {version === image.version && <span className="tag">Current</span>}
          </span>
          <span className="muted small line">
            {bytesAdded !== undefined && <span className="tabular">{`+ ${sizeText(bytesAdded)}`}</span>}
            <Time at={createdAt} />
          </span>
          {checksum !== undefined && <span className="small muted mono digest">{checksum}</span>}
        </li>
      ))}
    </ul>
  )
}

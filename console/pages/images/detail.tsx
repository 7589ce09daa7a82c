// One image or ISO: its sizes, its content, where it comes from, who uses it, which nodes have a copy, what was done to it.
import type { Image } from '../../../src/api/images/images.ts'
import { lineageOf } from '../../../src/client/image-lineage.ts'
import { longSize, sizeText } from '../../../src/rules/sizes.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { texts } from '../../texts.ts'
import { Copyable } from '../../ui/copy.tsx'
import { ActionsMenu, NextActions } from '../../ui/menu.tsx'
import { Card, DetailPage, Facts, Note } from '../../ui/page.tsx'
import { Bar } from '../../ui/state.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'
import { useActing } from '../acting.ts'
import { EventFeed } from '../event-feed.tsx'
import { VmLink } from '../links.tsx'
import type { Named } from '../paths.ts'
import { imageItems } from './actions.tsx'
import { CopiesOfImage } from './copies.tsx'
import { type ImageKind, imageKinds } from './kind.ts'
import { LineageTree } from './lineage-tree.tsx'
import { ImageState } from './state.tsx'
import { imageTexts as words } from './texts.ts'
import { UsersOfImage, VmsOfIso } from './users.tsx'

export const ImageDetail = ({ name }: Named) => <Detail kind={imageKinds.image} name={name} />
export const IsoDetail = ({ name }: Named) => <Detail kind={imageKinds.iso} name={name} />

function Detail({ kind, name }: { readonly kind: ImageKind; readonly name: string }) {
  const { main, shown } = useNamespaces()
  const acting = useActing()
  const list = useLive(kind.list, [main])
  const itemsOf = (image: Image) =>
    imageItems(image, { ...acting, kind, namespace: main, onDeleted: () => acting.go(kind.path) })
  return (
    <DetailPage
      list={list}
      name={name}
      up={[kind.title, kind.path]}
      gone={{ title: words.gone[kind.kind], text: words.goneText }}
      beside={(image) => <ImageState image={image} />}
      actions={(image) => (
        <>
          <TeachPage operation={kind.get} input={{ params: { namespace: main, [kind.kind]: name } }} />
          <ActionsMenu name={name} items={itemsOf(image)} />
        </>
      )}
    >
      {(image) => (
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
                <Card title={words.lineage}>
                  <LineageTree name={name} lineage={lineageOf(image, list.items)} />
                </Card>
              )}
              <Card title={words.columns.usedBy}>
                {kind.kind === 'image' ? <UsersOfImage image={image} /> : <VmsOfIso iso={image} />}
              </Card>
              <Card title={words.next}>
                <NextActions items={itemsOf(image)} />
              </Card>
              <Card title={words.history}>
                <EventFeed
                  namespaces={shown}
                  kinds={[kind.eventKind]}
                  name={name}
                  endedBy={kind.deleted}
                  empty={texts.common.noEvents}
                />
              </Card>
            </div>
            <div className="stack">
              <Card title={texts.common.details}>
                <Details image={image} />
              </Card>
              {kind.kind === 'image' && (
                <>
                  <Card title={words.cached}>
                    <CopiesOfImage name={name} />
                  </Card>
                  <Card title={words.versions}>
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
      [texts.common.description]: image.description || undefined,
      [texts.common.type]: texts.common.architectures[image.type],
      [words.columns.disk]: longSize(image.size),
      [words.columns.space]: image.spaceUsed && longSize(image.spaceUsed),
      [words.columns.source]: texts.common.labelled(words.sources[image.sourceType], image.source || words.elsewhere),
      [texts.common.owner]: image.owner || words.elsewhere,
      [texts.common.updated]: <Time at={image.lastUpdatedTimestamp} />,
      [words.checksum]: image.checksum && <Copyable text={image.checksum} what={words.checksum} />,
    }}
  />
)

/** The newest first: what was committed when, from which VM. */
function Versions({ image }: { readonly image: Image }) {
  const versions = image.versions?.toReversed() ?? []
  if (versions.length === 0) return <p className="muted">{words.noVersions}</p>
  return (
    <ul className="feed" aria-label={words.versions}>
      {versions.map(({ version, createdAt, checksum, vm, by, bytesAdded }) => (
        <li key={version}>
          <span className="line">
            {words.version(version)}
            {vm === undefined ? null : <VmLink vm={vm} />}
            {by !== undefined && <span className="muted small">{words.by(by)}</span>}
            {version === image.version && <span className="tag">{words.current}</span>}
          </span>
          <span className="muted small line">
            {bytesAdded !== undefined && <span className="tabular">{words.adds(sizeText(bytesAdded))}</span>}
            <Time at={createdAt} />
          </span>
          {checksum !== undefined && <span className="small muted mono digest">{checksum}</span>}
        </li>
      ))}
    </ul>
  )
}

// One image or ISO: its sizes, its content, where it comes from, who uses it, which nodes have a copy, what was done to it.
import { useLocation } from 'wouter'
import type { Image } from '../../../src/api/images/images.ts'
import { vmsElsewhere } from '../../../src/rules/ownership.ts'
import { longSize } from '../../../src/rules/sizes.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { texts } from '../../texts.ts'
import { Copyable } from '../../ui/copy.tsx'
import { Card, DetailPage, Facts, Note } from '../../ui/page.tsx'
import { Bar } from '../../ui/state.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'
import { EventFeed } from '../event-feed.tsx'
import { VmLink } from '../links.tsx'
import type { Named } from '../paths.ts'
import { ImageMenu } from './actions.tsx'
import { CopiesOfImage } from './copies.tsx'
import { type ImageKind, imageKinds } from './kind.ts'
import { lineageOf } from './lineage.ts'
import { LineageGraph } from './lineage-graph.tsx'
import { usersOf } from './model.ts'
import { ImageState } from './state.tsx'
import { imageTexts as words } from './texts.ts'

export const ImageDetail = ({ name }: Named) => <Detail kind={imageKinds.image} name={name} />
export const IsoDetail = ({ name }: Named) => <Detail kind={imageKinds.iso} name={name} />

function Detail({ kind, name }: { readonly kind: ImageKind; readonly name: string }) {
  const { main } = useNamespaces()
  const list = useLive(kind.list, [main])
  const [, go] = useLocation()
  return (
    <DetailPage
      list={list}
      name={name}
      up={[kind.title, kind.path]}
      gone={{ title: words.gone[kind.kind], text: words.goneText }}
      beside={(image) => <ImageState image={image} />}
      actions={(image) => (
        <>
          <TeachPage operation={kind.list} input={{ params: { namespace: main } }} />
          <ImageMenu image={image} kind={kind} namespace={main} onDeleted={() => go(kind.path)} />
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
          <Card title={words.lineage}>
            <LineageGraph lineage={lineageOf(image, list.items)} />
          </Card>
          <div className="grid-2">
            <Card title={texts.common.details}>
              <Details image={image} />
            </Card>
            <div className="stack">
              {kind.kind === 'image' && (
                <>
                  <Card title={words.versions}>
                    <Versions image={image} />
                  </Card>
                  <Card title={words.cached}>
                    <CopiesOfImage namespace={main} name={name} />
                  </Card>
                </>
              )}
              <Card title={texts.common.events}>
                <EventFeed namespace={main} kinds={[kind.eventKind]} name={name} empty={texts.common.noEvents} />
              </Card>
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
      [words.columns.usedBy]: usersOf(image) === 0 ? texts.common.none : <Users image={image} />,
    }}
  />
)

const Users = ({ image: { usedBy, usedElsewhere } }: { readonly image: Image }) => (
  <ul>
    {usedBy.map((name) => (
      <li key={name}>
        <VmLink vm={name} />
      </li>
    ))}
    {usedElsewhere !== undefined && <li>{vmsElsewhere(usedElsewhere)}</li>}
  </ul>
)

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

// The quota of one namespace: what its VMs have of what they may have, who has how much of it, and who is next.
import { getQuota, type Quota, type QuotaOwner, setQuota } from '../../../src/api/vms/quotas.ts'
import { askAgain, useAnswer } from '../../api/calls.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { texts } from '../../texts.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { TextField, useForm } from '../../ui/field.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import { Card, ErrorNote, Facts, Loading, Page } from '../../ui/page.tsx'
import { Bar, State } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table/table.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'
import { type Acting, useActing } from '../acting.ts'
import { EventFeed } from '../event-feed.tsx'
import { amountText, limitsBody, limitsOf, quotaNames, quotaState, usedText } from './quota-model.ts'
import { quotaActions, quotaTexts as words } from './texts.ts'

const everyMs = 10_000

/** It belongs to one namespace: that of the choice at the left, or the main one. */
export function QuotaPage() {
  const { main } = useNamespaces()
  const acting = useActing()
  const params = { namespace: main }
  const { data: quota, error } = useAnswer(getQuota, { params }, everyMs)
  return (
    <Page
      title={words.title}
      beside={
        <>
          <span className="tag">{main}</span>
          {quota && <State {...quotaState(quota)} />}
        </>
      }
      actions={
        <>
          <TeachPage operation={getQuota} input={{ params }} />
          {quota && <ActionsMenu name={main} items={quotaItems(quota, acting)} />}
        </>
      }
    >
      <p className="muted">{words.text(main)}</p>
      {quota === undefined && <ErrorNote error={error} />}
      {quota ? <Shown quota={quota} /> : error === undefined && <Loading />}
      <Card title={texts.common.events}>
        <EventFeed namespaces={[main]} kinds={['namespaces']} name={main} empty={texts.common.noEvents} />
      </Card>
    </Page>
  )
}

/** What can be done to a quota. */
const quotaItems = (quota: Quota, { person }: Acting): readonly MenuItem[] => [
  {
    label: quotaActions.set.label,
    reason: person?.admin ? undefined : words.administrators,
    dialog: (onClose) => <SetQuota quota={quota} onClose={onClose} />,
  },
]

const Shown = ({ quota }: { readonly quota: Quota }) => (
  <>
    <div className="grid-2">
      <Card title={words.inUse}>
        {quotaNames.map((name) => (
          <div key={name} className="measure">
            <div className="spread">
              <span className="muted">{words.names[name]}</span>
              <span className="tabular">{usedText(name, quota)}</span>
            </div>
            {quota.limits[name] !== undefined && (
              <Bar
                role="meter"
                label={words.names[name]}
                value={quota.used[name]}
                of={quota.limits[name]}
                text={usedText(name, quota)}
              />
            )}
          </div>
        ))}
      </Card>
      <Card title={words.settings}>
        <Facts
          facts={{
            ...Object.fromEntries(
              quotaNames.map((name) => [words.limitOf[name], amountText(name, quota.limits[name]) ?? words.noLimit]),
            ),
            [words.set]: quota.updatedAt && <Time at={quota.updatedAt} />,
            [words.setBy]: quota.updatedBy,
          }}
        />
      </Card>
    </div>
    <Card title={words.owners}>
      {quota.owners.length === 0 ? (
        <p className="muted">{words.noOwners(quota.namespace)}</p>
      ) : (
        <Table label={words.owners} columns={columns} rows={quota.owners} keyOf={({ owner }) => owner} sort={byShare} />
      )}
    </Card>
  </>
)

const columns: readonly Column<QuotaOwner>[] = [
  { title: texts.common.owner, look: 'name', by: ({ owner }) => owner },
  {
    title: words.share,
    by: ({ share }) => share,
    look: 'number',
    cell: ({ share }) => texts.common.percent(Math.round(share * 1_000) / 10),
  },
  { title: words.weight, by: ({ weight }) => weight, look: 'number wide' },
  { title: words.names.vms, by: ({ used }) => used.vms, look: 'number wide' },
  { title: words.names.cpu, by: ({ used }) => used.cpu, look: 'number wide' },
  {
    title: words.names.memory,
    by: ({ used }) => used.memory,
    look: 'number wide',
    cell: ({ used }) => amountText('memory', used.memory),
  },
  { title: words.waiting, by: ({ waiting }) => waiting, look: 'number' },
]
/** Who is next comes first. */
const byShare = [1, false] as const

function SetQuota({ quota, onClose }: { readonly quota: Quota; readonly onClose: () => void }) {
  const before = limitsOf(quota)
  const { values, field } = useForm(before)
  const body = limitsBody(values, before)
  const bad = quotaNames.find((name) => !/^\d*(\.\d+)?$/.test(values[name]))
  return (
    <ActionDialog
      words={quotaActions.set}
      name={quota.namespace}
      operation={setQuota}
      input={{ params: { namespace: quota.namespace }, body }}
      reason={bad ? words.number : Object.keys(body).length === 0 ? words.unchanged : undefined}
      onClose={onClose}
      onDone={() => {
        askAgain(getQuota)
        onClose()
      }}
    >
      <div className="fields">
        {quotaNames.map((name, index) => (
          <TextField
            key={name}
            label={words.limitOf[name]}
            placeholder={words.noLimit}
            inputMode="numeric"
            {...field(name)}
            autoFocus={index === 0}
          />
        ))}
      </div>
    </ActionDialog>
  )
}

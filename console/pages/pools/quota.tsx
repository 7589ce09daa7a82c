// The quota of one namespace: usage against limits, usage per owner, and the order of waiting owners.
import { nounOfWire } from '../../../src/api/nouns.ts'
import { getQuota, type Quota, type QuotaOwner, setQuota } from '../../../src/api/vms/quotas.ts'
import { memorySize } from '../../../src/rules/sizes.ts'
import { refreshAnswers, useAnswer } from '../../api/calls.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { type ActionWords, formItem } from '../../ui/action-dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import { Card, ErrorNote, Facts, Loading, Page } from '../../ui/page.tsx'
import { ShowAsButton } from '../../ui/show-as.tsx'
import { Bar, State } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table/table.tsx'
import { Time } from '../../ui/time.tsx'
import { type ActionContext, useActionContext } from '../action-context.ts'
import { EventsCard } from '../event-feed.tsx'
import { amountText, fieldNames, limitsBody, limitsOf, quotaNames, quotaState, usedText } from './quota-model.ts'

const limitLabels = {
  vms: 'Maximum VMs',
  cpu: 'Maximum cores',
  memory: 'Maximum memory in GiB',
  macos: 'Maximum macOS VMs',
  records: 'Maximum records of each kind',
  recordSize: 'Maximum size of records of each kind in MiB',
}

const setWords: ActionWords = {
  label: 'Set quota',
  title: (namespace) => `Set quota of ${namespace}`,
  text: 'A limit below the current usage is refused. Leave a field empty for no limit.',
  done: (namespace) => `Quota of ${namespace} set`,
}

const resourceNames = { vms: 'VMs', cpu: 'Cores', memory: 'Memory', macos: 'macOS VMs' }

const everyMs = 10_000

/** A quota belongs to one namespace: the chosen one, or the default. */
export function QuotaPage() {
  const { main } = useNamespaces()
  const context = useActionContext()
  const params = { namespace: main }
  const { data: quota, error } = useAnswer(getQuota, { params }, { everyMs })
  return (
    <Page
      title="Quota"
      beside={
        <>
          <span className="tag">{main}</span>
          {quota && <State {...quotaState(quota)} />}
        </>
      }
      actions={
        <>
          <ShowAsButton operation={getQuota} input={{ params }} />
          {quota && <ActionsMenu name={main} items={quotaItems(quota, context)} />}
        </>
      }
    >
      <p className="muted">{`Limits for all VMs in ${main} together. A VM over the quota waits; running VMs are never stopped.`}</p>
      {quota === undefined && <ErrorNote error={error} />}
      {quota ? <QuotaView quota={quota} /> : error === undefined && <Loading />}
      <EventsCard namespaces={[main]} kinds={['namespaces']} name={main} />
    </Page>
  )
}

function quotaItems(quota: Quota, { person }: ActionContext): readonly MenuItem[] {
  const { namespace } = quota
  const before = limitsOf(quota)
  return [
    formItem({
      words: setWords,
      name: namespace,
      reason: person?.admin ? undefined : 'Only administrators can set quotas',
      operation: setQuota,
      initial: before,
      input: (values) => ({ params: { namespace }, body: limitsBody(values, before) }),
      faultOf: (values) =>
        fieldNames.some((name) => !/^\d*(\.\d+)?$/.test(values[name]))
          ? 'Enter numbers, or nothing for no limit'
          : Object.keys(limitsBody(values, before)).length === 0
            ? 'Change a limit first'
            : undefined,
      onDone: refreshAnswers,
      fields: ({ field }) => (
        <div className="fields">
          {fieldNames.map((name, index) => (
            <TextField
              key={name}
              label={limitLabels[name]}
              placeholder="No limit"
              inputMode="numeric"
              {...field(name)}
              autoFocus={index === 0}
            />
          ))}
        </div>
      ),
    }),
  ]
}

const QuotaView = ({ quota }: { readonly quota: Quota }) => (
  <>
    <div className="grid-2">
      <Card title="In use">
        {quotaNames.map((name) => (
          <div key={name} className="measure">
            <div className="spread">
              <span className="muted">{resourceNames[name]}</span>
              <span className="tabular">{usedText(name, quota)}</span>
            </div>
            {quota.limits[name] !== undefined && (
              <Bar
                role="meter"
                label={resourceNames[name]}
                value={quota.used[name]}
                of={quota.limits[name]}
                text={usedText(name, quota)}
              />
            )}
          </div>
        ))}
      </Card>
      <Card title="Settings">
        <Facts
          facts={{
            ...Object.fromEntries(
              quotaNames.map((name) => [limitLabels[name], amountText(name, quota.limits[name]) ?? 'No limit']),
            ),
            [limitLabels.records]: quota.limits.records,
            [limitLabels.recordSize]: quota.limits.recordSize,
            Set: quota.updatedAt && <Time at={quota.updatedAt} />,
            'Set by': quota.updatedBy,
          }}
        />
      </Card>
    </div>
    <Card title="Records">
      {quota.stored.length === 0 ? (
        <p className="muted">{`No records in ${quota.namespace}.`}</p>
      ) : (
        <Facts
          facts={Object.fromEntries(
            quota.stored.map(({ kind, records, size }) => [
              nounOfWire(kind)?.word ?? kind,
              `${records} (${memorySize(size)})`,
            ]),
          )}
        />
      )}
    </Card>
    <Card title="Owners by share">
      {quota.owners.length === 0 ? (
        <p className="muted">{`No VMs in ${quota.namespace}.`}</p>
      ) : (
        <Table
          label="Owners by share"
          columns={columns}
          rows={quota.owners}
          keyOf={({ owner }) => owner}
          sort={byShare}
        />
      )}
    </Card>
  </>
)

const columns: readonly Column<QuotaOwner>[] = [
  { title: 'Owner', look: 'name', by: ({ owner }) => owner },
  {
    title: 'Share',
    by: ({ share }) => share,
    look: 'number',
    cell: ({ share }) => `${Math.round(share * 1_000) / 10}%`,
  },
  { title: 'Weight', by: ({ weight }) => weight, look: 'number wide' },
  { title: 'VMs', by: ({ used }) => used.vms, look: 'number wide' },
  { title: 'Cores', by: ({ used }) => used.cpu, look: 'number wide' },
  {
    title: 'Memory',
    by: ({ used }) => used.memory,
    look: 'number wide',
    cell: ({ used }) => amountText('memory', used.memory),
  },
  { title: 'Waiting', by: ({ waiting }) => waiting, look: 'number' },
]
/** The owner that is scheduled next comes first. */
const byShare = [1, false] as const

// The hosts: what they have, what is free, in which state; and how another one joins.

import { useState } from 'react'
import { createJoinToken, listNodes, type Node } from '../../../src/api/nodes/nodes.ts'
import type { ResponseOf } from '../../../src/api/operation.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { useSession } from '../../api/session.ts'
import { texts } from '../../texts.ts'
import { ActionDialog, SecretDialog } from '../../ui/action-dialog.tsx'
import { CheckField, filled, NamespaceField, TextField, useForm } from '../../ui/field.tsx'
import type { Filter } from '../../ui/table/filters.ts'
import { useQuery } from '../../ui/table/query.ts'
import { actionsColumn, type Column } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { Time } from '../../ui/time.tsx'
import { nameColumn } from '../links.tsx'
import { nodePath } from '../paths.ts'
import { NodeMenu } from './actions.tsx'
import { joinLine } from './model.ts'
import { Meter, NodeState, stateWord } from './state.tsx'
import { joinTexts, nodeTexts as words } from './texts.ts'

const meter = (node: Node, kind: 'cores' | 'memory') => (
  <Meter node={node} kind={kind}>
    {(used) => <span className="small tabular">{used}</span>}
  </Meter>
)

const columns: readonly Column<Node>[] = [
  nameColumn(nodePath),
  { title: texts.common.state, by: stateWord, cell: (node) => <NodeState node={node} /> },
  { title: texts.common.namespace, by: (node) => node.namespace, look: 'lesser wide' },
  { title: texts.common.type, by: (node) => node.architecture, look: 'wide' },
  { title: words.columns.cores, by: (node) => node.availableCpu, look: 'wide', cell: (node) => meter(node, 'cores') },
  {
    title: words.columns.memory,
    by: (node) => node.availableMemory,
    look: 'wide',
    cell: (node) => meter(node, 'memory'),
  },
  { title: words.columns.vms, by: (node) => node.vms.length, look: 'number' },
  {
    title: words.columns.disk,
    by: (node) => node.diskFreeGb ?? -1,
    look: 'number lesser wide',
    cell: ({ diskFreeGb }) => (diskFreeGb === undefined ? '–' : words.gigabytes(diskFreeGb)),
  },
  { title: words.columns.tags, look: 'lesser wide', cell: (node) => node.orkaTags.join(', ') || '–' },
  {
    title: words.columns.seen,
    by: (node) => node.lastSeenAt ?? '',
    look: 'lesser wide',
    cell: ({ phase, lastSeenAt }) => {
      if (phase === 'READY') return words.connected
      return lastSeenAt === undefined ? texts.common.never : <Time at={lastSeenAt} />
    },
  },
  actionsColumn((node) => <NodeMenu node={node} size="small" />),
]

const filters: readonly Filter<Node>[] = [
  { param: 'state', label: texts.common.state, of: stateWord },
  { param: 'type', label: texts.common.type, of: (node) => node.architecture },
  { param: 'tag', label: words.columns.tags, of: (node) => node.orkaTags },
]

export function NodeList() {
  const { shown, main } = useNamespaces()
  const { person } = useSession()
  const { params, change } = useQuery()
  return (
    <TablePage
      words={words}
      operation={listNodes}
      input={{ params: { namespace: main } }}
      create={{
        label: words.join,
        reason: person?.admin ? undefined : words.onlyAdmins,
        onChoose: () => change({ join: 'yes' }),
      }}
      list={useLive(listNodes, shown)}
      columns={columns}
      filters={filters}
    >
      {params.has('join') && person?.admin && <JoinHost onClose={() => change({ join: undefined })} />}
    </TablePage>
  )
}

export function JoinHost({ onClose }: { readonly onClose: () => void }) {
  const { main } = useNamespaces()
  const [namespace, setNamespace] = useState(main)
  const { values, field } = useForm({ duration: '1h', reusable: false })
  const [made, setMade] = useState<ResponseOf<typeof createJoinToken>>()
  const { duration, ...checks } = values
  if (made)
    return (
      <SecretDialog
        title={words.join}
        text={words.joinRun}
        secret={joinLine(made.join ?? made.token)}
        what={words.joinWhat}
        onClose={onClose}
      >
        {words.joinEnds} <Time at={made.expiresAt} />
      </SecretDialog>
    )
  return (
    <ActionDialog
      words={joinTexts}
      operation={createJoinToken}
      input={{ params: { namespace }, body: { duration, ...filled(checks) } }}
      onClose={onClose}
      onDone={setMade}
    >
      <div className="fields">
        <NamespaceField value={namespace} onValue={setNamespace} />
        <TextField label={words.joinDuration} hint={words.joinDurationHint} {...field('duration')} />
        <CheckField label={words.joinReusable} {...field('reusable')} />
      </div>
    </ActionDialog>
  )
}

// The list of nodes, and the dialog that adds one.
import { createJoinToken, listNodes, type Node } from '../../../src/api/nodes/nodes.ts'
import type { ResponseOf } from '../../../src/api/operation.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { useSession } from '../../api/session.ts'
import { type ActionWords, FormDialog, SecretDialog } from '../../ui/action-dialog.tsx'
import { openDialog } from '../../ui/dialog.tsx'
import { CheckField, filled, NamespaceField, TextField } from '../../ui/field.tsx'
import type { Filter } from '../../ui/table/filters.ts'
import { useQuery } from '../../ui/table/query.ts'
import type { Column } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { Time } from '../../ui/time.tsx'
import { menuColumn, nameColumn } from '../columns.tsx'
import { nodePath } from '../paths.ts'
import { nodeItems } from './actions.tsx'
import { joinLine } from './model.ts'
import { Meter, NodeState, stateWord } from './state.tsx'

const joinWords: ActionWords = {
  label: 'Create join command',
  title: () => 'Add node',
  text: 'Creates a command that adds a host to this namespace. It contains the server address, its key and a secret.',
}

const meter = (node: Node, kind: 'cores' | 'memory') => (
  <Meter node={node} kind={kind}>
    {(used) => <span className="small tabular">{used}</span>}
  </Meter>
)

const columns: readonly Column<Node>[] = [
  nameColumn(nodePath),
  { title: 'State', by: stateWord, cell: (node) => <NodeState node={node} /> },
  { title: 'Namespace', by: (node) => node.namespace, look: 'lesser wide' },
  { title: 'Type', by: (node) => node.architecture, look: 'wide' },
  { title: 'Cores', by: (node) => node.availableCpu, look: 'wide', cell: (node) => meter(node, 'cores') },
  {
    title: 'Memory',
    by: (node) => node.availableMemory,
    look: 'wide',
    cell: (node) => meter(node, 'memory'),
  },
  { title: 'VMs', by: (node) => node.vms.length, look: 'number' },
  {
    title: 'Disk free',
    by: (node) => node.diskFreeGb ?? -1,
    look: 'number lesser wide',
    cell: ({ diskFreeGb }) => (diskFreeGb === undefined ? '–' : `${diskFreeGb} GiB`),
  },
  { title: 'Tags', look: 'lesser wide', cell: (node) => node.orkaTags.join(', ') || '–' },
  {
    title: 'Last seen',
    by: (node) => node.lastSeenAt ?? '',
    look: 'lesser wide',
    cell: ({ phase, lastSeenAt }) => {
      if (phase === 'READY') return 'Connected'
      return lastSeenAt === undefined ? 'Never' : <Time at={lastSeenAt} />
    },
  },
  menuColumn(({ name }) => name, nodeItems),
]

const filters: readonly Filter<Node>[] = [
  { param: 'state', label: 'State', of: stateWord },
  { param: 'type', label: 'Type', of: (node) => node.architecture },
  { param: 'tag', label: 'Tags', of: (node) => node.orkaTags },
]

export function NodeList() {
  const { person } = useSession()
  const { params, change } = useQuery()
  return (
    <TablePage
      title="Nodes"
      emptyTitle="No nodes in this namespace"
      emptyText="A node is a Mac or a Linux host that runs VMs. Add one with a single command."
      operation={listNodes}
      create={{
        label: 'Add node',
        reason: person?.admin ? undefined : 'Only administrators can do this',
        onChoose: () => change({ join: 'yes' }),
      }}
      columns={columns}
      filters={filters}
    >
      {params.has('join') && person?.admin && <JoinHost onClose={() => change({ join: undefined })} />}
    </TablePage>
  )
}

function JoinHost({ onClose }: { readonly onClose: () => void }) {
  const { main } = useNamespaces()
  return (
    <FormDialog
      words={joinWords}
      operation={createJoinToken}
      initial={{ namespace: main, duration: '1h', reusable: false }}
      input={({ namespace, duration, ...checks }) => ({ params: { namespace }, body: { duration, ...filled(checks) } })}
      onClose={onClose}
      onDone={(created) => openDialog((close) => <JoinCommand created={created} onClose={close} />)}
      fields={({ field }) => (
        <div className="fields">
          <NamespaceField {...field('namespace')} />
          <TextField label="Valid for" hint="For example 30m, 1h or 7d" {...field('duration')} />
          <CheckField label="Allow several nodes to use it until it expires" {...field('reusable')} />
        </div>
      )}
    />
  )
}

interface CommandProps {
  readonly created: ResponseOf<typeof createJoinToken>
  readonly onClose: () => void
}

const JoinCommand = ({ created, onClose }: CommandProps) => (
  <SecretDialog
    title="Add node"
    text="Install svc3 on the host, then run:"
    secret={joinLine(created.join ?? created.token)}
    what="join command"
    onClose={onClose}
  >
    Shown only once. Expires <Time at={created.expiresAt} />
  </SecretDialog>
)

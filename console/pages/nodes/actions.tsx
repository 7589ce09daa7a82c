// The actions of one node, for administrators: a menu, and the dialog of each.
import { type ReactNode, useState } from 'react'
import {
  cordonNode,
  deleteNode,
  drainNode,
  moveNode,
  type Node,
  tagNode,
  uncordonNode,
  untagNode,
} from '../../../src/api/nodes/nodes.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { ActionDialog, type ActionWords, RemoveDialog } from '../../ui/action-dialog.tsx'
import { CheckField, required, SelectField, TextField } from '../../ui/field.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import { count } from '../../ui/sizes.ts'
import { type Acting, useActing } from '../acting.ts'

const nodeActions = {
  cordon: {
    label: 'Cordon',
    title: (name) => `Cordon node ${name}`,
    text: 'No new VMs are placed on this node. VMs already on it keep running.',
    done: (name) => `Node ${name} cordoned`,
  },
  uncordon: {
    label: 'Uncordon',
    title: (name) => `Uncordon node ${name}`,
    text: 'New VMs can be placed on this node again.',
    done: (name) => `Node ${name} uncordoned`,
  },
  drain: {
    label: 'Drain',
    title: (name) => `Drain node ${name}`,
    text: 'No new VMs are placed on this node. VMs cannot move to another node because their disks are local: they run until deleted.',
    done: (name) => `Draining node ${name}`,
  },
  tag: {
    label: 'Add tag',
    title: (name) => `Add tag to node ${name}`,
    text: 'Deployments can prefer or require nodes with a tag.',
    done: (name) => `Tag added to node ${name}`,
  },
  untag: {
    label: 'Remove tag',
    title: (name) => `Remove tag from node ${name}`,
    text: 'Running VMs are not affected.',
    done: (name) => `Tag removed from node ${name}`,
  },
  move: {
    label: 'Move to namespace',
    title: (name) => `Move node ${name} to another namespace`,
    text: 'The node will run VMs of that namespace only.',
    done: (name) => `Node ${name} moved`,
  },
  delete: {
    label: 'Delete',
    title: (name) => `Delete node ${name}?`,
    text: 'Its agent can no longer connect. To add the host again, create a new join command.',
    done: (name) => `Node ${name} deleted`,
  },
} as const satisfies Record<string, ActionWords>

const actions = ['cordon', 'uncordon', 'drain', 'tag', 'untag', 'move', 'delete'] as const
type Action = (typeof actions)[number]

/** Why an action is not possible, as far as the page knows; the service decides. */
function reasonAgainst(action: Action, node: Node, isAdmin: boolean): string | undefined {
  if (!isAdmin) return 'Only administrators can do this'
  if (action === 'cordon' && node.cordoned) return 'This node is already cordoned'
  if (action === 'uncordon' && !node.cordoned) return 'This node is not cordoned'
  if (action === 'untag' && node.orkaTags.length === 0) return 'This node has no tags'
  if ((action === 'delete' || action === 'move') && node.vms.length > 0)
    return `${count(node.vms.length, 'VM runs', 'VMs run')} on this node`
  return undefined
}

interface Acted extends Acting {
  readonly onDeleted?: (() => void) | undefined
}

/** What can be done to a node, in the order of its menu. */
export const nodeItems = (node: Node, { person, onDeleted }: Acted): readonly MenuItem[] =>
  actions.map((action) => ({
    label: nodeActions[action].label,
    reason: reasonAgainst(action, node, person?.admin ?? false),
    isDanger: action === 'delete',
    dialog: (onClose) => dialogs[action]({ node, onClose, onDeleted }),
  }))

export const NodeMenu = ({ node, size }: { readonly node: Node; readonly size?: 'small' }) => (
  <ActionsMenu name={node.name} items={nodeItems(node, useActing())} size={size} />
)

interface DialogProps {
  readonly node: Node
  readonly onClose: () => void
  readonly onDeleted?: (() => void) | undefined
}

const dialogs: Readonly<Record<Action, (props: DialogProps) => ReactNode>> = {
  cordon: ({ node, onClose }) => (
    <ActionDialog {...shared('cordon', node)} operation={cordonNode} input={inputFor(node)} onClose={onClose} />
  ),
  uncordon: ({ node, onClose }) => (
    <ActionDialog {...shared('uncordon', node)} operation={uncordonNode} input={inputFor(node)} onClose={onClose} />
  ),
  drain: (props) => <Drain {...props} />,
  tag: (props) => <Tag {...props} />,
  untag: (props) => <Untag {...props} />,
  move: (props) => <Move {...props} />,
  delete: ({ node, onClose, onDeleted }) => (
    <RemoveDialog
      words={nodeActions.delete}
      name={node.name}
      operation={deleteNode}
      input={inputFor(node)}
      onClose={onClose}
      onDone={onDeleted}
    />
  ),
}

const shared = (action: Action, { name }: Node) => ({ words: nodeActions[action], name })
const inputFor = ({ namespace, name }: Node, body?: object) => ({ params: { namespace, name }, ...(body && { body }) })

function Drain({ node, onClose }: DialogProps) {
  const [deleteVms, setDeleteVms] = useState(false)
  return (
    <ActionDialog
      {...shared('drain', node)}
      operation={drainNode}
      input={inputFor(node, deleteVms ? { deleteVms } : {})}
      isDanger={deleteVms}
      confirm={deleteVms ? node.name : undefined}
      onClose={onClose}
    >
      {node.vms.length > 0 && (
        <CheckField
          label={`Delete ${count(node.vms.length, 'VM', 'VMs')} on this node, disks included`}
          value={deleteVms}
          onValue={setDeleteVms}
        />
      )}
    </ActionDialog>
  )
}

function Tag({ node, onClose }: DialogProps) {
  const [tag, setTag] = useState('')
  return (
    <ActionDialog
      {...shared('tag', node)}
      operation={tagNode}
      input={inputFor(node, { tag })}
      reason={tag === '' ? required('Tag') : undefined}
      onClose={onClose}
    >
      <TextField label="Tag" field="tag" value={tag} onValue={setTag} autoFocus />
    </ActionDialog>
  )
}

function Untag({ node, onClose }: DialogProps) {
  const [tag, setTag] = useState(node.orkaTags[0] ?? '')
  return (
    <ActionDialog
      {...shared('untag', node)}
      operation={untagNode}
      input={inputFor(node, { tag })}
      reason={tag === '' ? required('Tag') : undefined}
      onClose={onClose}
    >
      <SelectField label="Tag" value={tag} onValue={setTag} choices={node.orkaTags} />
    </ActionDialog>
  )
}

function Move({ node, onClose }: DialogProps) {
  const { all } = useNamespaces()
  const others = all.filter((name) => name !== node.namespace)
  const [namespace, setNamespace] = useState(others[0] ?? '')
  return (
    <ActionDialog
      {...shared('move', node)}
      operation={moveNode}
      input={inputFor(node, { namespace })}
      reason={namespace === '' ? required('Namespace') : undefined}
      onClose={onClose}
    >
      <SelectField label="Namespace" value={namespace} onValue={setNamespace} choices={others} />
    </ActionDialog>
  )
}

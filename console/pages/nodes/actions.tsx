// The action menu of a node and its dialogs, for administrators.
import { type ComponentType, useState } from 'react'
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
import { ActionDialog, type ActionWords, confirmed, removal } from '../../ui/action-dialog.tsx'
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

export function nodeItems(node: Node, { person, onDeleted }: Acting): readonly MenuItem[] {
  const { name, cordoned, orkaTags, vms } = node
  const refused = person?.admin ? undefined : 'Only administrators can do this'
  const inUse = vms.length === 0 ? undefined : `${count(vms.length, 'VM runs', 'VMs run')} on this node`
  const common = { name, input: inputFor(node) }
  const withForm = (action: keyof typeof nodeActions, Form: ComponentType<DialogProps>, reason?: string): MenuItem => ({
    label: nodeActions[action].label,
    reason: refused ?? reason,
    dialog: (onClose) => <Form node={node} onClose={onClose} />,
  })
  return [
    confirmed({
      ...common,
      words: nodeActions.cordon,
      operation: cordonNode,
      reason: refused ?? (cordoned ? 'This node is already cordoned' : undefined),
    }),
    confirmed({
      ...common,
      words: nodeActions.uncordon,
      operation: uncordonNode,
      reason: refused ?? (cordoned ? undefined : 'This node is not cordoned'),
    }),
    withForm('drain', Drain),
    withForm('tag', Tag),
    withForm('untag', Untag, orkaTags.length === 0 ? 'This node has no tags' : undefined),
    withForm('move', Move, inUse),
    removal({ ...common, words: nodeActions.delete, operation: deleteNode, onDone: onDeleted }, refused ?? inUse),
  ]
}

export const NodeMenu = ({ node, size }: { readonly node: Node; readonly size?: 'small' }) => (
  <ActionsMenu name={node.name} items={nodeItems(node, useActing())} size={size} />
)

interface DialogProps {
  readonly node: Node
  readonly onClose: () => void
}

const shared = (action: keyof typeof nodeActions, { name }: Node) => ({ words: nodeActions[action], name })
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

// The action menu of a node and its dialogs, for administrators.
import { useState } from 'react'
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
import { ActionDialog, confirmItem, deletionOf, formItem, removeItem, wordsFor } from '../../ui/action-dialog.tsx'
import { CheckField, SelectField, TextField } from '../../ui/field.tsx'
import type { MenuItem } from '../../ui/menu.tsx'
import { count } from '../../ui/sizes.ts'
import type { ActionContext } from '../action-context.ts'

const words = wordsFor('node')

export function nodeItems(node: Node, { person, onDeleted }: ActionContext): readonly MenuItem[] {
  const { name, namespace, cordoned, orkaTags, vms } = node
  const params = { namespace, name }
  const refused = person?.admin ? undefined : 'Only administrators can do this'
  const inUse = vms.length === 0 ? undefined : `${count(vms.length, 'VM runs', 'VMs run')} on this node`
  return [
    confirmItem({
      name,
      words: words('Cordon', 'cordoned', 'No new VMs are placed on this node. VMs already on it keep running.'),
      operation: cordonNode,
      input: { params },
      reason: refused ?? (cordoned ? 'This node is already cordoned' : undefined),
    }),
    confirmItem({
      name,
      words: words('Uncordon', 'uncordoned', 'New VMs can be placed on this node again.'),
      operation: uncordonNode,
      input: { params },
      reason: refused ?? (cordoned ? undefined : 'This node is not cordoned'),
    }),
    { label: drainWords.label, reason: refused, dialog: (onClose) => <Drain node={node} onClose={onClose} /> },
    formItem({
      name,
      words: {
        label: 'Add tag',
        title: () => `Add tag to node ${name}`,
        text: 'Deployments can prefer or require nodes with a tag.',
        done: () => `Tag added to node ${name}`,
      },
      operation: tagNode,
      initial: { tag: '' },
      input: (body) => ({ params, body }),
      needs: { tag: 'Tag' },
      reason: refused,
      fields: ({ field }) => <TextField label="Tag" {...field('tag')} autoFocus />,
    }),
    formItem({
      name,
      words: {
        label: 'Remove tag',
        title: () => `Remove tag from node ${name}`,
        text: 'Running VMs are not affected.',
        done: () => `Tag removed from node ${name}`,
      },
      operation: untagNode,
      initial: { tag: orkaTags[0] ?? '' },
      input: (body) => ({ params, body }),
      reason: refused ?? (orkaTags.length === 0 ? 'This node has no tags' : undefined),
      fields: ({ field }) => <SelectField label="Tag" {...field('tag')} choices={orkaTags} />,
    }),
    formItem({
      name,
      words: {
        label: 'Move to namespace',
        title: () => `Move node ${name} to another namespace`,
        text: 'The node will run VMs of that namespace only.',
        done: () => `Node ${name} moved`,
      },
      operation: moveNode,
      initial: { namespace: '' },
      input: (body) => ({ params, body }),
      needs: { namespace: 'Namespace' },
      reason: refused ?? inUse,
      fields: ({ field }) => <OtherNamespaceField current={namespace} {...field('namespace')} />,
    }),
    removeItem({
      name,
      words: deletionOf('node', 'Its agent can no longer connect. To add the host again, create a new join command.'),
      operation: deleteNode,
      input: { params },
      onDone: onDeleted,
      reason: refused ?? inUse,
    }),
  ]
}

interface NamespaceProps {
  readonly current: string
  readonly value: string
  readonly onValue: (value: string) => void
}

function OtherNamespaceField({ current, ...field }: NamespaceProps) {
  const { all } = useNamespaces()
  return <SelectField label="Namespace" {...field} choices={all.filter((name) => name !== current)} />
}

const drainWords = words(
  'Drain',
  'is draining',
  'No new VMs are placed on this node. VMs cannot move to another node because their disks are local: they run until deleted.',
)

function Drain({ node, onClose }: { readonly node: Node; readonly onClose: () => void }) {
  const { name, namespace, vms } = node
  const [deleteVms, setDeleteVms] = useState(false)
  return (
    <ActionDialog
      words={drainWords}
      name={name}
      operation={drainNode}
      input={{ params: { namespace, name }, body: deleteVms ? { deleteVms } : {} }}
      isDanger={deleteVms}
      confirm={deleteVms ? name : undefined}
      onClose={onClose}
    >
      {vms.length > 0 && (
        <CheckField
          label={`Delete ${count(vms.length, 'VM', 'VMs')} on this node, disks included`}
          value={deleteVms}
          onValue={setDeleteVms}
        />
      )}
    </ActionDialog>
  )
}

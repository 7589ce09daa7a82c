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
import { texts } from '../../texts.ts'
import { ActionDialog, RemoveDialog } from '../../ui/action-dialog.tsx'
import { CheckField, SelectField, TextField } from '../../ui/field.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import { type Acting, useActing } from '../acting.ts'
import { nodeActions, nodeTexts as words } from './texts.ts'

const actions = ['cordon', 'uncordon', 'drain', 'tag', 'untag', 'move', 'delete'] as const
type Action = (typeof actions)[number]

/** Why an action is not possible, as far as the page knows; the service decides. */
function reasonAgainst(action: Action, node: Node, isAdmin: boolean): string | undefined {
  if (!isAdmin) return words.onlyAdmins
  if (action === 'cordon' && node.cordoned) return words.alreadyCordoned
  if (action === 'uncordon' && !node.cordoned) return words.notCordoned
  if (action === 'untag' && node.orkaTags.length === 0) return words.noTags
  if ((action === 'delete' || action === 'move') && node.vms.length > 0) return words.hasVms(node.vms.length)
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
        <CheckField label={words.drainVms(node.vms.length)} value={deleteVms} onValue={setDeleteVms} />
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
      reason={tag === '' ? texts.common.required(words.tag) : undefined}
      onClose={onClose}
    >
      <TextField label={words.tag} field="tag" value={tag} onValue={setTag} autoFocus />
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
      reason={tag === '' ? texts.common.required(words.tag) : undefined}
      onClose={onClose}
    >
      <SelectField label={words.tag} value={tag} onValue={setTag} choices={node.orkaTags} />
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
      reason={namespace === '' ? texts.common.required(texts.common.namespace) : undefined}
      onClose={onClose}
    >
      <SelectField label={texts.common.namespace} value={namespace} onValue={setNamespace} choices={others} />
    </ActionDialog>
  )
}

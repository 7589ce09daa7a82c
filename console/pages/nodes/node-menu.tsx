// The actions of one node, for administrators: a menu, and the dialog of the one that was chosen.
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
import { useSession } from '../../api/session.ts'
import { texts } from '../../texts.ts'
import { ActionDialog, RemoveDialog } from '../../ui/action-dialog.tsx'
import { CheckField, SelectField, TextField } from '../../ui/field.tsx'
import { Menu, type MenuItem } from '../../ui/menu.tsx'
import { openDialog } from '../../ui/open-dialog.tsx'

const actions = ['cordon', 'uncordon', 'drain', 'tag', 'untag', 'move', 'delete'] as const
type Action = (typeof actions)[number]
const words = texts.nodes

/** Why not, as far as the page can know; the service has the last word. */
function reasonAgainst(action: Action, node: Node, isAdmin: boolean): string | undefined {
  if (!isAdmin) return words.onlyAdmins
  if (action === 'cordon' && node.cordoned) return words.alreadyCordoned
  if (action === 'uncordon' && !node.cordoned) return words.notCordoned
  if (action === 'untag' && node.orkaTags.length === 0) return texts.common.none
  if ((action === 'delete' || action === 'move') && node.vms.length > 0) return words.hasVms(node.vms.length)
  return undefined
}

interface Props {
  readonly node: Node
  readonly size?: 'small'
  readonly onDeleted?: () => void
}

export function NodeMenu({ node, size, onDeleted }: Props) {
  const { person } = useSession()
  const items = actions.map(
    (action): MenuItem => ({
      label: words[action].label,
      reason: reasonAgainst(action, node, person?.admin ?? false),
      isDanger: action === 'delete',
      onChoose: () => openDialog((onClose) => dialogs[action]({ node, onClose, onDeleted })),
    }),
  )
  const label = texts.common.actionsOf(node.name)
  return <Menu label={label} items={items} {...(size ? { size } : { text: texts.common.actions })} />
}

interface DialogProps {
  readonly node: Node
  readonly onClose: () => void
  readonly onDeleted?: (() => void) | undefined
}

const dialogs: Readonly<Record<Action, (props: DialogProps) => ReactNode>> = {
  cordon: (props) => <Cordon {...props} action="cordon" />,
  uncordon: (props) => <Cordon {...props} action="uncordon" />,
  drain: (props) => <Drain {...props} />,
  tag: (props) => <Tag {...props} action="tag" />,
  untag: (props) => <Tag {...props} action="untag" />,
  move: (props) => <Move {...props} />,
  delete: (props) => <Delete {...props} />,
}

const shownFor = (action: Action, { name, namespace }: Node) => ({
  title: `${words[action].label}: ${name}`,
  text: words[action].text,
  label: words[action].label,
  said: texts.actions.done(words[action].label, name),
  params: { namespace, name },
})

function Cordon({ node, onClose, action }: DialogProps & { readonly action: 'cordon' | 'uncordon' }) {
  const { params, ...shown } = shownFor(action, node)
  return (
    <ActionDialog
      {...shown}
      operation={action === 'cordon' ? cordonNode : uncordonNode}
      input={{ params }}
      onClose={onClose}
    />
  )
}

function Drain({ node, onClose }: DialogProps) {
  const [deleteVms, setDeleteVms] = useState(false)
  const { params, ...shown } = shownFor('drain', node)
  return (
    <ActionDialog
      {...shown}
      operation={drainNode}
      input={{ params, body: deleteVms ? { deleteVms } : {} }}
      isDanger={deleteVms}
      confirm={deleteVms ? node.name : undefined}
      onClose={onClose}
    >
      {node.vms.length > 0 && (
        <CheckField label={words.drain.deleteVms(node.vms.length)} value={deleteVms} onValue={setDeleteVms} />
      )}
    </ActionDialog>
  )
}

function Tag({ node, onClose, action }: DialogProps & { readonly action: 'tag' | 'untag' }) {
  const [tag, setTag] = useState(action === 'untag' ? (node.orkaTags[0] ?? '') : '')
  const { params, ...shown } = shownFor(action, node)
  return (
    <ActionDialog
      {...shown}
      operation={action === 'tag' ? tagNode : untagNode}
      input={{ params, body: { tag } }}
      reason={tag === '' ? words.tag.field : undefined}
      onClose={onClose}
    >
      {(faults) =>
        action === 'tag' ? (
          <TextField label={words.tag.field} fault={faults.get('tag')} value={tag} onValue={setTag} autoFocus />
        ) : (
          <SelectField
            label={words.tag.field}
            value={tag}
            onValue={setTag}
            choices={node.orkaTags.map((each) => ({ value: each, label: each }))}
          />
        )
      }
    </ActionDialog>
  )
}

function Move({ node, onClose }: DialogProps) {
  const { all } = useNamespaces()
  const others = all.filter((name) => name !== node.namespace)
  const [namespace, setNamespace] = useState(others[0] ?? '')
  const { params, ...shown } = shownFor('move', node)
  return (
    <ActionDialog
      {...shown}
      operation={moveNode}
      input={{ params, body: { namespace } }}
      reason={namespace === '' ? texts.common.namespace : undefined}
      onClose={onClose}
    >
      <SelectField
        label={texts.common.namespace}
        value={namespace}
        onValue={setNamespace}
        choices={others.map((name) => ({ value: name, label: name }))}
      />
    </ActionDialog>
  )
}

function Delete({ node, onClose, onDeleted }: DialogProps) {
  const { params, label, text } = shownFor('delete', node)
  return (
    <RemoveDialog
      name={node.name}
      label={label}
      text={text}
      operation={deleteNode}
      input={{ params }}
      onClose={onClose}
      onDone={onDeleted}
    />
  )
}

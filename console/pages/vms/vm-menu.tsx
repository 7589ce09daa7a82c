// The actions of one VM: a menu, and the dialog of the one that was chosen.
import type { ReactNode } from 'react'
import type { Vm } from '../../../src/api/vms/vms.ts'
import { useSession } from '../../api/session.ts'
import { texts } from '../../texts.ts'
import { Menu, type MenuItem } from '../../ui/menu.tsx'
import { openDialog } from '../../ui/open-dialog.tsx'
import { VmActionDialog, type VmDialogName } from './vm-dialogs.tsx'
import { reasonAgainst, reasonAgainstDeleting, vmActions } from './vm-rules.ts'

interface Props {
  readonly vm: Vm
  readonly size?: 'small'
  readonly onDeleted?: () => void
}

export function VmMenu({ vm, size, onDeleted }: Props): ReactNode {
  const { person } = useSession()
  const choose = (action: VmDialogName) => (): void =>
    openDialog((onClose) => (
      <VmActionDialog action={action} vm={vm} onClose={onClose} {...(onDeleted && { onDeleted })} />
    ))
  const items: MenuItem[] = [
    ...vmActions.map((action) => ({
      label: texts.actions[action].label,
      reason: reasonAgainst(action, vm),
      onChoose: choose(action),
    })),
    { label: texts.actions.extend.label, onChoose: choose('extend') },
    {
      label: texts.actions.delete.label,
      reason: reasonAgainstDeleting(vm.owner, person),
      isDanger: true,
      onChoose: choose('delete'),
    },
  ]
  const label = size === 'small' ? texts.common.actionsOf(vm.name) : texts.common.actions
  return <Menu label={label} items={items} {...(size ? { size } : { text: texts.common.actions })} />
}

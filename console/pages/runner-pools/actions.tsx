// The actions of one runner pool: a menu, and the dialog of each. One is created on a command line, which reads its key from a file.
import {
  deleteRunnerPool,
  drainRunnerPool,
  type RunnerPool,
  updateRunnerPool,
} from '../../../src/api/vms/runner-pools.ts'
import { ActionDialog, removal } from '../../ui/action-dialog.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import { type Acting, useActing } from '../acting.ts'
import { runnerPoolActions as actions, runnerPoolTexts as words } from './texts.ts'

interface Acted extends Acting {
  readonly onDeleted?: (() => void) | undefined
}

/** What can be done to a runner pool, in the order of its menu. */
export function runnerPoolItems(pool: RunnerPool, { person, onDeleted }: Acted): readonly MenuItem[] {
  const { name, namespace, paused, deleting } = pool
  const input = { params: { namespace, runnerpool: name } }
  const notYours = person?.admin ? undefined : words.administrators
  const against = notYours ?? (deleting ? words.isDeleting : undefined)
  const pausing = (action: 'pause' | 'resume'): MenuItem => ({
    label: actions[action].label,
    reason: against ?? (paused === (action === 'pause') ? (paused ? words.isPaused : words.notPaused) : undefined),
    dialog: (onClose) => (
      <ActionDialog
        words={actions[action]}
        name={name}
        operation={updateRunnerPool}
        input={{ ...input, body: { paused: action === 'pause' } }}
        onClose={onClose}
      />
    ),
  })
  return [
    pausing('pause'),
    pausing('resume'),
    {
      label: actions.drain.label,
      reason: against,
      dialog: (onClose) => (
        <ActionDialog words={actions.drain} name={name} operation={drainRunnerPool} input={input} onClose={onClose} />
      ),
    },
    removal({ name, words: actions.delete, operation: deleteRunnerPool, input, onDone: onDeleted }, notYours),
  ]
}

export const RunnerPoolMenu = ({ pool, size }: { readonly pool: RunnerPool; readonly size?: 'small' }) => (
  <ActionsMenu name={pool.name} items={runnerPoolItems(pool, useActing())} size={size} />
)

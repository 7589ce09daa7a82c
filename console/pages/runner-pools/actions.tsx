// The actions of one runner pool: a menu, and the dialog of each. One is created on a command line, which reads its key from a file.
import {
  deleteRunnerPool,
  drainRunnerPool,
  type RunnerPool,
  updateRunnerPool,
} from '../../../src/api/vms/runner-pools.ts'
import { removal } from '../../ui/action-dialog.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import { useActing } from '../acting.ts'
import { type Acted, confirmed, pausing } from '../pools/family.tsx'
import { runnerPoolActions as actions, runnerPoolTexts as words } from './texts.ts'

/** What can be done to a runner pool, in the order of its menu. */
export function runnerPoolItems(pool: RunnerPool, { person, onDeleted }: Acted): readonly MenuItem[] {
  const { name, namespace, paused, deleting } = pool
  const input = { params: { namespace, runnerpool: name } }
  const notYours = person?.admin ? undefined : words.administrators
  const asked = { name, input, reason: notYours ?? (deleting ? words.isDeleting : undefined) }
  return [
    ...pausing({ ...asked, words: actions, operation: updateRunnerPool, paused, texts: words }),
    confirmed({ ...asked, words: actions.drain, operation: drainRunnerPool }),
    removal({ name, words: actions.delete, operation: deleteRunnerPool, input, onDone: onDeleted }, notYours),
  ]
}

export const RunnerPoolMenu = ({ pool, size }: { readonly pool: RunnerPool; readonly size?: 'small' }) => (
  <ActionsMenu name={pool.name} items={runnerPoolItems(pool, useActing())} size={size} />
)

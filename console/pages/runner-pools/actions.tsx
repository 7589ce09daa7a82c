// The action menu of a runner pool. Runner pools are created on the command line, which reads the key from a file.
import {
  deleteRunnerPool,
  drainRunnerPool,
  type RunnerPool,
  updateRunnerPool,
} from '../../../src/api/vms/runner-pools.ts'
import { confirmItem, deletionOf, removeItem, wordsFor } from '../../ui/action-dialog.tsx'
import type { MenuItem } from '../../ui/menu.tsx'
import type { ActionContext } from '../action-context.ts'
import { pausing } from '../pools/family.tsx'

const noun = 'runner pool'
const words = wordsFor(noun)

export function runnerPoolItems(pool: RunnerPool, { person, onDeleted }: ActionContext): readonly MenuItem[] {
  const { name, namespace, paused, deleting } = pool
  const input = { params: { namespace, runnerpool: name } }
  const notYours = person?.admin ? undefined : 'Only administrators can change runner pools'
  const common = { name, input, reason: notYours ?? (deleting ? 'The runner pool is being deleted' : undefined) }
  return [
    ...pausing({
      ...common,
      pause: words('Pause', 'paused', 'New jobs wait at GitHub. Running jobs finish, and idle runners are kept.'),
      resume: words('Resume', 'resumed', 'Accepts jobs again.'),
      operation: updateRunnerPool,
      paused,
      noun,
    }),
    confirmItem({
      ...common,
      words: words('Drain', 'is draining', 'Pauses the runner pool and removes its idle runners. Running jobs finish.'),
      operation: drainRunnerPool,
    }),
    removeItem({
      ...common,
      reason: notYours,
      words: {
        ...deletionOf(noun, 'Waits for running jobs, then deletes the scale set at GitHub and the runner pool.'),
        done: () => `Deleting runner pool ${name}`,
      },
      operation: deleteRunnerPool,
      onDone: onDeleted,
    }),
  ]
}

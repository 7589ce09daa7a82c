// The action menu of a runner pool. Runner pools are created on the command line, which reads the key from a file.
import {
  deleteRunnerPool,
  drainRunnerPool,
  type RunnerPool,
  updateRunnerPool,
} from '../../../src/api/vms/runner-pools.ts'
import { type ActionWords, confirmed, removal } from '../../ui/action-dialog.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import { type Acting, useActing } from '../acting.ts'
import { pausing } from '../pools/family.tsx'

const runnerPoolActions = {
  pause: {
    label: 'Pause',
    title: (name) => `Pause runner pool ${name}`,
    text: 'New jobs wait at GitHub. Running jobs finish, and idle runners are kept.',
    done: (name) => `Runner pool ${name} paused`,
  },
  resume: {
    label: 'Resume',
    title: (name) => `Resume runner pool ${name}`,
    text: 'Accepts jobs again.',
    done: (name) => `Runner pool ${name} resumed`,
  },
  drain: {
    label: 'Drain',
    title: (name) => `Drain runner pool ${name}`,
    text: 'Pauses the runner pool and removes its idle runners. Running jobs finish.',
    done: (name) => `Draining runner pool ${name}`,
  },
  delete: {
    label: 'Delete',
    title: (name) => `Delete runner pool ${name}?`,
    text: 'Waits for running jobs, then deletes the scale set at GitHub and the runner pool.',
    done: (name) => `Deleting runner pool ${name}`,
  },
} as const satisfies Record<string, ActionWords>

export function runnerPoolItems(pool: RunnerPool, { person, onDeleted }: Acting): readonly MenuItem[] {
  const { name, namespace, paused, deleting } = pool
  const input = { params: { namespace, runnerpool: name } }
  const notYours = person?.admin ? undefined : 'Only administrators can change runner pools'
  const common = { name, input, reason: notYours ?? (deleting ? 'The runner pool is being deleted' : undefined) }
  return [
    ...pausing({ ...common, words: runnerPoolActions, operation: updateRunnerPool, paused, noun: 'runner pool' }),
    confirmed({ ...common, words: runnerPoolActions.drain, operation: drainRunnerPool }),
    removal({ name, words: runnerPoolActions.delete, operation: deleteRunnerPool, input, onDone: onDeleted }, notYours),
  ]
}

export const RunnerPoolMenu = ({ pool, size }: { readonly pool: RunnerPool; readonly size?: 'small' }) => (
  <ActionsMenu name={pool.name} items={runnerPoolItems(pool, useActing())} size={size} />
)

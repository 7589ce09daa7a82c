// Messages about VMs for users: what happened, why, and what to do next.
import type { Architecture } from '../../api/architecture.ts'
import { reasonOf } from '../../platform/reason.ts'
import type { WorkKind } from './steps.ts'

interface Text {
  readonly what: string
  readonly next: string
  /** Apple silicon-based VMs have no power operations, so these must not be recommended. */
  readonly nextOnArm?: string
}

const texts: Readonly<Record<WorkKind, Text>> = {
  deploy: { what: 'Could not be deployed', next: 'Deploy it again' },
  start: {
    what: 'Could not be started',
    next: 'Its disk is unchanged; start it again, or check its logs',
    nextOnArm: 'Check its logs, or delete it and deploy another VM',
  },
  stop: { what: 'Could not be stopped', next: 'Try again' },
  suspend: { what: 'Could not be suspended', next: 'Try again' },
  resume: {
    what: 'Could not be resumed',
    next: 'Try again, or stop and start it',
    nextOnArm: 'Delete it and deploy another VM',
  },
  revert: { what: 'Could not be reverted', next: 'Try again' },
  resize: { what: 'Could not be resized', next: 'Check the free space of the node and try again' },
  capture: { what: 'Could not be saved', next: 'Try again' },
  claim: { what: 'Could not be deployed', next: 'Deploy it again' },
  delete: { what: 'Could not be removed', next: 'The node retries automatically' },
}

interface Where {
  readonly node: string
  readonly architecture: Architecture
}

export function failureMessage(
  kind: WorkKind,
  { node, architecture }: Where,
  error: unknown,
  leftovers: readonly unknown[],
): string {
  const { what, next: usual, nextOnArm } = texts[kind]
  const next = architecture === 'arm64' ? (nextOnArm ?? usual) : usual
  const more = leftovers.length > 0 ? `; cleaning up failed too (${leftovers.map(reasonOf).join('; ')})` : ''
  return `${what} on node ${node}: ${reasonOf(error)}${more}. ${next}`
}

export const lostProblem = (node: string): string =>
  `Its disk is no longer on node ${node}. Delete it and deploy another VM`

export const notRunningProblem = 'Only a running VM can be suspended. Start it first'

export const restartedWarning = 'Its host restarted; the VM was started again from its disk'
export const endedWithHost = 'Its host restarted, and the VM stopped'

export const interrupted = 'interrupted'

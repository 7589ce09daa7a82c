// What people read about a VM when something did not work: what happened, why, and what to do next.
import type { Architecture } from '../../api/architecture.ts'
import { reasonOf } from '../../platform/reason.ts'
import type { Kind } from './steps.ts'

interface Text {
  readonly what: string
  readonly next: string
  /** Apple silicon-based VMs have no power operations: what cannot be done must not be advised. */
  readonly nextOnArm?: string
}

const texts: Readonly<Record<Kind, Text>> = {
  deploy: { what: 'could not be deployed', next: 'nothing of it is left on the node; deploy it again' },
  start: {
    what: 'could not be started',
    next: 'its disk is as it was; start it again, or look at its logs',
    nextOnArm: 'look at its logs, or delete it and deploy another one',
  },
  stop: { what: 'could not be stopped', next: 'try again' },
  suspend: { what: 'could not be suspended', next: 'try again' },
  resume: {
    what: 'could not be resumed',
    next: 'try again, or stop and start it',
    nextOnArm: 'delete it and deploy another one',
  },
  revert: { what: 'could not be reverted', next: 'try again' },
  resize: { what: 'could not be resized', next: 'check the free space of the node and try again' },
  capture: { what: 'could not be saved', next: 'try again' },
  delete: { what: 'could not be removed', next: 'the node tries again by itself' },
}

interface Where {
  /** Its name. */
  readonly node: string
  readonly architecture: Architecture
}

export function problemOf(
  kind: Kind,
  { node, architecture }: Where,
  error: unknown,
  leftovers: readonly unknown[],
): string {
  const { what, next: usual, nextOnArm } = texts[kind]
  const next = architecture === 'arm64' ? (nextOnArm ?? usual) : usual
  const more = leftovers.length > 0 ? `; taking it back failed, too (${leftovers.map(reasonOf).join('; ')})` : ''
  return `it ${what} on node "${node}": ${reasonOf(error)}${more} (${next})`
}

export const lostProblem = (node: string): string =>
  `its disk is not on node "${node}" any more; delete it and deploy another one`

/** Intel-based VMs only: others cannot be suspended. */
export const notRunningProblem = 'only a VM that runs can be suspended, and it does not; start it first'

export const restartedWarning = 'its host was restarted; it was started again from its disk'
export const endedWithHost = 'its host was restarted, and it ended with it'

export const interrupted = 'it was interrupted'

/** The disk has grown and the file system in it has not. */
export const manualGrowth = (why: string): string =>
  `the disk has grown, but its partition and file system have not: ${why}. Grow them in the guest: on macOS with ` +
  '"diskutil repairDisk disk0", then "diskutil apfs resizeContainer disk0s2 0"; on Linux with "growpart /dev/vda 1", ' +
  'then "resize2fs /dev/vda1" or "xfs_growfs /" (names as "diskutil list" or "lsblk" show them)'

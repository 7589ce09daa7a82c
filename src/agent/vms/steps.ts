// The kinds of work on VMs, the steps that they consist of, and the points at which tests kill the agent.

/**
 * Each step can be repeated after an interruption. image: get the node's copy of the image. create: create the disk. partition:
 * grow partition and file system in the guest. claim: turn a slot of a pool into this VM. discard: remove a slot that cannot be
 * claimed.
 */
export const steps = [
  'image',
  'create',
  'start',
  'stop',
  'kill',
  'suspend',
  'resume',
  'revert',
  'grow',
  'partition',
  'capture',
  'claim',
  'discard',
  'destroy',
] as const
export type WorkStep = (typeof steps)[number]

export const phases: Readonly<Record<WorkStep, string>> = {
  image: 'getting the image',
  create: 'creating the disk',
  start: 'starting',
  stop: 'stopping',
  kill: 'stopping',
  suspend: 'freezing',
  resume: 'resuming',
  revert: 'creating a new disk',
  grow: 'growing the disk',
  partition: 'growing the file system in the guest',
  capture: 'freezing the VM for the image',
  claim: 'handing over a warm VM',
  discard: 'removing what cannot be handed over',
  destroy: 'removing',
}

/** Each kind of work with the steps that it may have, in order. */
export const workKinds = {
  deploy: ['image', 'create', 'start'],
  start: ['image', 'start'],
  stop: ['stop'],
  suspend: ['suspend'],
  resume: ['resume'],
  revert: ['image', 'kill', 'create', 'revert', 'start', 'suspend'],
  resize: ['image', 'stop', 'grow', 'start', 'suspend', 'partition'],
  capture: ['capture'],
  claim: ['claim', 'discard'],
  delete: ['destroy'],
} as const satisfies Readonly<Record<string, readonly WorkStep[]>>
export type WorkKind = keyof typeof workKinds

/** Names the point before a step, or after the last one (`done`) and before the outcome is written. */
export const failPointOf = (kind: WorkKind, step: WorkStep | 'done'): string => `agent.${kind}.${step}`

export const failPoints: readonly string[] = Object.entries(workKinds).flatMap(([kind, list]) =>
  [...list, 'done' as const].map((step) => failPointOf(kind as WorkKind, step)),
)

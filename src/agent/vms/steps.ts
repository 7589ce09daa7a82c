// The steps that work on a VM is made of, the kinds of work, and the points at which tests let the agent die.

/**
 * image: the node's copy of the image. create: the disk. kill: end it at once. partition: grow partition and file system
 * in the guest. capture: freeze it for an image. claim: a slot of a pool becomes this VM. discard: a slot that cannot. Each can
 * be done again after it was cut off.
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

/** What is shown of a step while it lasts. */
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

/** Kinds of work, with every step that they may have, in order. */
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

/** `agent.<kind>.<step>` stands before a step; `done` after the last one, before it is written down. */
export const failPointOf = (kind: WorkKind, step: WorkStep | 'done'): string => `agent.${kind}.${step}`

export const failPoints: readonly string[] = Object.entries(workKinds).flatMap(([kind, list]) =>
  [...list, 'done' as const].map((step) => failPointOf(kind as WorkKind, step)),
)

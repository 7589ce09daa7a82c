// What the pages of pools and of the quota say, in English.
import type { ActionWords } from '../../texts.ts'

export const poolTexts = {
  title: 'Pools',
  text: 'A pool keeps VMs of a configuration booted. A deployment that asks for exactly that takes one at once.',
  emptyTitle: 'No pools yet',
  emptyText: 'A pool keeps VMs booted, so that a deployment takes one at once. Create one here or from a terminal:',
  columns: {
    config: 'Configuration',
    ready: 'Ready',
    starting: 'Starting',
    wanted: 'Wanted',
    hits: 'Hits',
    misses: 'Misses',
  },
  states: { full: 'Full', filling: 'Filling', short: 'Not full', paused: 'Paused' },
  gone: 'Pool not found',
  goneText: (name: string, namespace: string) => `Pool ${name} not found in ${namespace}. It may have been deleted.`,
  warmVms: 'Warm VMs',
  deployments: 'Deployments',
  removed: 'Removed unused',
  removedNone: 'No warm VM was removed before a deployment took it.',
  settings: 'Settings',
  hitRate: 'Hit rate',
  minIdle: 'Minimum idle',
  maxIdle: 'Maximum idle',
  maxAge: 'Maximum age',
  stateWords: { running: 'Running', memory: 'As memory on disk' },
  readyCommand: 'Readiness command',
  schedule: 'Schedule',
  minIdleHint: 'Warm VMs to keep ready',
  maxIdleHint: 'Warm VMs above this number are removed',
  maxAgeDefault: '12h',
  maxAgeHint: 'Warm VMs are replaced after this time, for example 12h',
  readyCommandHint: 'Passes in the guest when a warm VM is ready (default: SSH answers)',
  scheduleHint: 'One entry per line, for example: 0 7 * * mon-fri Europe/Berlin=4',
  scheduleFault: (line: string) =>
    `"${line}" is not an entry: write minute, hour, day, month, weekday, time zone=number`,
  nameHint: 'At most 50 lowercase letters, digits and dashes',
  isPaused: 'The pool is paused',
  notPaused: 'The pool is not paused',
  /** Why warm VMs went. */
  reasons: {
    PortInUse: 'Failed: port in use',
    StartFailed: 'Failed to start',
    GuestEnded: 'Failed: guest ended',
    NoAnswer: 'Failed: no answer',
    Evicted: 'Made room for a VM',
    TooMany: 'Above the maximum',
    TooOld: 'Too old',
    Changed: 'Image or configuration changed',
    Cordoned: 'Node cordoned',
    Rotated: 'Rotated',
    Drained: 'Drained',
    PoolDeleted: 'Pool deleted',
  },
} as const

export const poolActions = {
  create: {
    label: 'Create pool',
    title: () => 'Create pool',
    done: (name) => `Pool ${name} created`,
  },
  update: {
    label: 'Change',
    title: (name) => `Change pool ${name}`,
    text: 'Warm VMs are added or removed to match.',
    done: (name) => `Pool ${name} changed`,
  },
  pause: {
    label: 'Pause',
    title: (name) => `Pause pool ${name}`,
    text: 'No warm VMs are started. Those that are there are still handed out.',
    done: (name) => `Pool ${name} paused`,
  },
  resume: {
    label: 'Resume',
    title: (name) => `Resume pool ${name}`,
    text: 'Fills the pool again.',
    done: (name) => `Pool ${name} resumed`,
  },
  rotate: {
    label: 'Rotate',
    title: (name) => `Rotate pool ${name}`,
    text: 'Replaces all warm VMs, a quarter of the pool at a time. Those that are not replaced yet are still handed out.',
    done: (name) => `Rotating pool ${name}`,
  },
  drain: {
    label: 'Drain',
    title: (name) => `Drain pool ${name}`,
    text: 'Pauses the pool and removes its warm VMs. VMs that came from it are kept.',
    done: (name) => `Draining pool ${name}`,
  },
  delete: {
    label: 'Delete',
    title: (name) => `Delete pool ${name}?`,
    text: 'Its warm VMs are removed. VMs that came from it are kept.',
    done: (name) => `Pool ${name} deleted`,
  },
} as const satisfies Record<string, ActionWords>

export const quotaTexts = {
  title: 'Quota',
  text: (namespace: string) =>
    `What the VMs of ${namespace} may have together. A VM over the quota waits; running VMs are never stopped.`,
  names: { vms: 'VMs', cpu: 'Cores', memory: 'Memory', macos: 'macOS VMs' },
  limitOf: { vms: 'Maximum VMs', cpu: 'Maximum cores', memory: 'Maximum memory in GiB', macos: 'Maximum macOS VMs' },
  states: { none: 'No limits', room: 'Room left', full: 'Full', waiting: 'VMs waiting' },
  inUse: 'In use',
  settings: 'Settings',
  noLimit: 'No limit',
  usedOf: (used: string, limit: string) => `${used} of ${limit}`,
  set: 'Set',
  setBy: 'Set by',
  owners: 'Owners by share',
  noOwners: (namespace: string) => `No VMs in ${namespace}.`,
  share: 'Share',
  weight: 'Weight',
  waiting: 'Waiting',
  administrators: 'Only administrators set quotas',
  number: 'Enter numbers, or nothing for no limit',
  unchanged: 'Change a limit first',
} as const

export const quotaActions = {
  set: {
    label: 'Set quota',
    title: (namespace) => `Set quota of ${namespace}`,
    text: 'A limit below what is in use is refused. Leave a field empty for no limit.',
    done: (namespace) => `Quota of ${namespace} set`,
  },
} as const satisfies Record<string, ActionWords>

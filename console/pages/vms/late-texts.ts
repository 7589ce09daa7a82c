// What dialogs and pages of VMs say that the first page has no part of, in English.
import { type ActionWords, count } from '../../texts.ts'

export const vmActionWords = {
  start: {
    label: 'Start',
    title: (name) => `Start VM ${name}`,
    text: 'Powers the VM on.',
    done: (name) => `VM ${name} started`,
  },
  stop: {
    label: 'Stop',
    title: (name) => `Stop VM ${name}`,
    text: 'Shuts the guest down and powers the VM off. The disk is kept.',
    done: (name) => `VM ${name} stopped`,
  },
  suspend: {
    label: 'Suspend',
    title: (name) => `Suspend VM ${name}`,
    text: 'Pauses the VM and keeps its memory.',
    done: (name) => `VM ${name} suspended`,
  },
  resume: {
    label: 'Resume',
    title: (name) => `Resume VM ${name}`,
    text: 'Continues where the VM was suspended.',
    done: (name) => `VM ${name} resumed`,
  },
  revert: {
    label: 'Revert',
    title: (name) => `Revert VM ${name} to its image?`,
    text: 'The VM restarts from the latest version of its image. All changes on its disk are lost.',
    done: (name) => `VM ${name} reverted`,
  },
  resize: {
    label: 'Resize disk',
    title: (name) => `Resize disk of VM ${name}`,
    text: 'Enlarges the disk and restarts the VM. A disk cannot shrink.',
    done: (name) => `Disk of VM ${name} resized`,
  },
  save: {
    label: 'Save as image',
    title: (name) => `Save VM ${name} as image`,
    text: 'Creates an image of the disk and memory. The VM keeps running.',
    done: (image) => `Saving image ${image}`,
  },
  commit: {
    label: 'Commit to image',
    title: (name) => `Commit VM ${name} to its image`,
    done: (image) => `Committing to image ${image}`,
  },
  push: {
    label: 'Push to registry',
    title: (name) => `Push VM ${name} to a registry`,
    text: 'Pauses the VM briefly, then pushes its disk from the node in the background.',
    done: (reference) => `Pushing ${reference}`,
  },
  extend: {
    label: 'Set expiry',
    title: (name) => `Set expiry of VM ${name}`,
    text: 'The VM and its disk are deleted when it expires.',
    done: (name) => `Expiry of VM ${name} set`,
  },
  label: {
    label: 'Set labels',
    title: (name) => `Set labels of VM ${name}`,
    text: 'Sets and removes labels. Other labels are unchanged.',
    done: (name) => `Labels of VM ${name} set`,
  },
  delete: {
    label: 'Delete',
    title: (name) => `Delete VM ${name}?`,
    text: 'Disks are deleted too. This cannot be undone.',
    done: (name) => `VM ${name} deleted`,
  },
} as const satisfies Record<string, ActionWords>

export const bulkTexts = {
  title: (action: string, amount: number) => `${action}: ${count(amount, 'VM', 'VMs')}`,
  more: (amount: number) => `and ${amount} more`,
  leftOut: (amount: number) => `${count(amount, 'VM is', 'VMs are')} skipped:`,
  none: 'None of the selected VMs allows this',
  ttl: 'Expires in',
  labels: 'Labels',
  labelsHint: 'For example team=ios to set one, team- to remove it; separate several by commas',
  badLabel: (text: string) => `Invalid label "${text}"`,
  noLabels: 'Enter at least one label',
  progress: (done: number, all: number) => `${done} of ${all} done`,
  done: {
    start: (amount: number) => `${count(amount, 'VM', 'VMs')} started`,
    stop: (amount: number) => `${count(amount, 'VM', 'VMs')} stopped`,
    extend: (amount: number) => `Expiry of ${count(amount, 'VM', 'VMs')} set`,
    label: (amount: number) => `Labels of ${count(amount, 'VM', 'VMs')} changed`,
    delete: (amount: number) => `${count(amount, 'VM', 'VMs')} deleted`,
  },
} as const

export const deployTexts = {
  deploy: {
    label: 'Deploy',
    title: () => 'Deploy VM',
  } satisfies ActionWords,
  name: 'Name',
  nameHint: 'Optional; generated if empty',
  nameRule: (rule: string) => `Invalid name. Use ${rule}`,
  image: 'Image',
  imageHint: 'Or a registry reference (Apple silicon)',
  config: 'Configuration',
  noConfig: 'None',
  configHint: 'Fields you fill in override its values',
  cpu: 'Cores',
  memory: 'Memory in GiB',
  auto: 'Automatic',
  node: 'Node',
  anyNode: 'Any',
  tag: 'Tag',
  tagHint: 'Prefer nodes with this tag',
  tagRequired: 'Require the tag',
  ttl: 'Expires in',
  ttlHint: 'For example 2h or 7d (default: never)',
  ttlRule: 'Enter a duration such as 30m, 2h or 7d',
  ports: 'Ports',
  portsHint: 'NODE:VM, separated by commas, for example 9000:80',
  labels: 'Labels',
  pairsHint: 'key=value, separated by commas',
  pairRule: (text: string) => `Invalid pair "${text}". Use key=value`,
  metadata: 'Metadata',
  userdata: 'First-boot script',
  scheduler: 'Scheduler',
  schedulers: { default: 'Spread across nodes', 'most-allocated': 'Fill one node first' },
  iso: 'ISO (Intel)',
  noIso: 'None',
  noScreen: 'No screen (disable VNC)',
  cold: 'Cold boot (ignore memory saved in the image)',
  legacyIo: 'Legacy disk devices (Intel)',
  noNetBoost: 'Disable fast network devices (Intel)',
  gpu: 'GPU passthrough (Intel, requires No screen)',
  required: 'Choose an image or a configuration',
  number: 'Enter a number',
  whole: 'Enter a whole number',
  estimate: 'Placement',
  estimating: 'Checking nodes…',
  perNode: 'All nodes',
  perNodeLine: (fits: boolean, name: string, reason: string) => `${fits ? '✓' : '–'} ${name}: ${reason}`,
  noEstimate: 'Choose an image to see which node the VM will run on.',
} as const

export const configTexts = {
  title: 'Configurations',
  emptyTitle: 'No configurations yet',
  emptyText: 'A configuration is a saved set of deploy options. Create one here or from a terminal:',
  deployFrom: 'Deploy VM',
  memory: 'Memory',
  nameHint: 'At most 50 lowercase letters, digits and dashes',
  create: {
    label: 'Create configuration',
    title: () => 'Create configuration',
    done: (name: string) => `Configuration ${name} created`,
  } satisfies ActionWords,
  lost: (pools = '') => `VMs deployed from it are not affected. ${pools}`,
  delete: {
    label: 'Delete',
    title: (name: string) => `Delete configuration ${name}?`,
    done: (name: string) => `Configuration ${name} deleted`,
  } satisfies ActionWords,
} as const

export const screenTexts = {
  title: (name: string) => `Screen of ${name}`,
  connecting: 'Connecting…',
  connected: 'Connected',
  ended: 'Disconnected',
  reconnect: 'Reconnect',
  fullScreen: 'Full screen',
  ctrlAltDel: 'Ctrl+Alt+Del',
  keys: 'Send keys',
  keysHint: 'Types the text into the VM and presses Enter',
  send: 'Send',
  paste: 'Clipboard',
  pasteHint:
    'Send copies this text to the clipboard of the VM; text copied in the VM appears here. If the VM does not share its clipboard, use Send keys.',
  scale: 'Fit to window',
  canvas: 'VM screen. Keys go to the VM while the screen has focus.',
} as const

export const terminalTexts = {
  title: (name: string) => `Terminal of ${name}`,
  text: 'Connects by SSH through the server. User name and password are sent to the VM and not stored.',
  user: 'User name',
  password: 'Password',
  open: 'Open terminal',
  ended: 'Session ended',
  label: 'Terminal',
  command: 'Or connect from your own terminal:',
  problem: (message: string, hint: string) => (hint === '' ? message : `${message}. ${hint}`),
} as const

export const queueTexts = {
  title: (waiting: number, namespace: string) => `${count(waiting, 'VM waits', 'VMs wait')} in ${namespace}`,
  line: (owner: string, message: string) => `${owner}: ${message}.`,
  expected: (wait: string) => `Expected wait: ${wait}`,
  unknown: 'Expected wait: unknown',
  more: (others: number) => `and ${others} more`,
} as const

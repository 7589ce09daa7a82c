// What the pages of nodes say, in English.
import { type ActionWords, count } from '../../texts.ts'

export const nodeTexts = {
  title: 'Nodes',
  join: 'Add node',
  emptyTitle: 'No nodes in this namespace',
  emptyText: 'A node is a Mac or a Linux host that runs VMs. Add one with a single command.',
  columns: { cores: 'Cores', memory: 'Memory', vms: 'VMs', disk: 'Disk free', tags: 'Tags', seen: 'Last seen' },
  gigabytes: (amount: number) => `${amount} GB`,
  capacity: 'Capacity',
  used: {
    cores: (used: string, whole: string) => `${used} of ${whole} used`,
    memory: (used: string, whole: string) => `${used} of ${whole} GiB used`,
  },
  vmsOn: (amount: number, most: number | undefined) =>
    most === undefined ? count(amount, 'VM', 'VMs') : `${amount} of ${most} VMs`,
  ready: 'Ready',
  connected: 'Connected',
  notReady: 'Not ready',
  cordoned: 'Cordoned',
  vmsHere: 'VMs',
  noVms: 'No VMs',
  block: (power: string, cores: number, memory: string) => `${power} · ${count(cores, 'core', 'cores')} · ${memory}`,
  blockUnseen: (namespace: string) => `In ${namespace}`,
  freeCores: (cores: number) => `${count(cores, 'core', 'cores')} free`,
  images: 'Cached images',
  address: 'Address',
  driver: 'Driver',
  system: 'System',
  version: 'Agent version',
  tag: 'Tag',
  noTags: 'This node has no tags',
  alreadyCordoned: 'This node is already cordoned',
  notCordoned: 'This node is not cordoned',
  hasVms: (amount: number) => `${count(amount, 'VM runs', 'VMs run')} on this node`,
  onlyAdmins: 'Only administrators can do this',
  drainVms: (amount: number) => `Delete ${count(amount, 'VM', 'VMs')} on this node, disks included`,
  joinReusable: 'Allow several nodes to use it until it expires',
  joinDuration: 'Valid for',
  joinDurationHint: 'For example 30m, 1h or 7d',
  joinRun: 'Install svc3 on the host, then run:',
  joinWhat: 'join command',
  joinEnds: 'Shown only once. Expires',
  gone: 'Node not found',
  goneText: (name: string, namespace: string) => `Node ${name} not found in ${namespace}. It may have been deleted.`,
} as const

export const nodeActions = {
  cordon: {
    label: 'Cordon',
    title: (name) => `Cordon node ${name}`,
    text: 'No new VMs are placed on this node. VMs already on it keep running.',
    done: (name) => `Node ${name} cordoned`,
  },
  uncordon: {
    label: 'Uncordon',
    title: (name) => `Uncordon node ${name}`,
    text: 'New VMs can be placed on this node again.',
    done: (name) => `Node ${name} uncordoned`,
  },
  drain: {
    label: 'Drain',
    title: (name) => `Drain node ${name}`,
    text: 'No new VMs are placed on this node. VMs cannot move to another node because their disks are local: they run until deleted.',
    done: (name) => `Draining node ${name}`,
  },
  tag: {
    label: 'Add tag',
    title: (name) => `Add tag to node ${name}`,
    text: 'Deployments can prefer or require nodes with a tag.',
    done: (name) => `Tag added to node ${name}`,
  },
  untag: {
    label: 'Remove tag',
    title: (name) => `Remove tag from node ${name}`,
    text: 'Running VMs are not affected.',
    done: (name) => `Tag removed from node ${name}`,
  },
  move: {
    label: 'Move to namespace',
    title: (name) => `Move node ${name} to another namespace`,
    text: 'The node will run VMs of that namespace only.',
    done: (name) => `Node ${name} moved`,
  },
  delete: {
    label: 'Delete',
    title: (name) => `Delete node ${name}?`,
    text: 'Its agent can no longer connect. To add the host again, create a new join command.',
    done: (name) => `Node ${name} deleted`,
  },
} as const satisfies Record<string, ActionWords>

export const joinTexts = {
  label: 'Create join command',
  title: () => 'Add node',
  text: 'Creates a command that adds a host to this namespace. It contains the server address, its key and a secret.',
} as const satisfies ActionWords

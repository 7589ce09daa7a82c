// What the overview, the events, the charts and the legacy usage say, in English.
import { count } from '../../texts.ts'
import { oneDecimal } from '../../ui/sizes.ts'

export const overviewTexts = {
  title: 'Overview',
  work: 'Active tasks',
  noWork: 'None',
  lately: 'Recent events',
  noEvents: 'No events yet',
  noNodes: 'No nodes yet',
  noNodesText: 'Add a Mac or a Linux host with a single command.',
  noNodesDev: 'Ask an administrator to add one.',
  startTitle: 'Deploy your first VM',
  startText: 'Choose an image and select Deploy. You can open the screen and a terminal here.',
  updating: 'Updating',
  capture: { save: (vm: string) => `Saving from ${vm}`, commit: (vm: string) => `Committing from ${vm}` },
  pushing: 'Pushing',
} as const

export const fleetTexts = {
  attention: 'Needs attention',
  tones: { bad: 'Critical', warn: 'Warning' },
  more: (amount: number) => `and ${amount} more`,
  nodeLost: (name: string) => `Node ${name} is not connected`,
  nodesLost: (amount: number) => `${count(amount, 'node is', 'nodes are')} not connected`,
  vmFailed: (name: string) => `VM ${name} failed`,
  vmsFailed: (amount: number) => `${count(amount, 'VM', 'VMs')} failed`,
  vmsPending: (amount: number) => `${count(amount, 'VM', 'VMs')} pending`,
  diskFull: (name: string, gb: number) => `Node ${name} has ${gb} GB of disk left`,
  disksFull: (amount: number, gb: number) =>
    `${count(amount, 'node has', 'nodes have')} less than ${gb} GB of disk left`,
  certificate: (days: number) =>
    days < 0 ? 'The HTTPS certificate has expired' : `The HTTPS certificate expires in ${count(days, 'day', 'days')}`,
  renew: 'Upload a new one',
  poolShort: (name: string, ready: number, wanted: number) => `Pool ${name} has ${ready} of ${wanted} warm VMs`,
  kinds: { architecture: 'Architecture', namespace: 'Namespace' },
  totals: ['Nodes ready', 'Cores free', 'Memory free', 'Largest VM that fits now'],
  moreNamespaces: (amount: number) => `${count(amount, 'more namespace', 'more namespaces')}`,
  map: 'Nodes by load',
  amount: (part: number, all: number) => `${part} of ${all}`,
  memory: (free: number, all: number) => `${oneDecimal(free)} of ${oneDecimal(all)} GiB`,
  largest: (cores: number, gib: number) => `${count(cores, 'core', 'cores')}, ${oneDecimal(gib)} GiB`,
  nothingFits: 'None',
  cell: (name: string, load: number, vms: number) => `${name}: ${load}% used, ${count(vms, 'VM', 'VMs')}`,
  cellCordoned: (text: string) => `${text}, cordoned`,
  cellLost: (name: string) => `${name}: not connected`,
  legend: (load: string) =>
    ({
      '0': 'Under 25% used',
      '25': '25%',
      '50': '50%',
      '75': '75%',
      '90': '90% or more',
      cordoned: 'Cordoned',
      lost: 'Not connected',
    })[load] ?? load,
} as const

export const timeTexts = {
  title: 'Queue and deploy time',
  queue: 'Waiting for a node',
  deploy: 'Request to running',
  hours: (amount: number) => `Last ${count(amount, 'hour', 'hours')}, every 15 minutes`,
  none: 'No deployments in this time',
  figures: (p50: string, p95: string) => `p50 ${p50}, p95 ${p95}`,
} as const

export const eventTexts = {
  title: 'Events',
  text: 'Changes in the selected namespaces, newest first.',
  emptyTitle: 'No events yet',
  emptyText: 'Changes to VMs, images, nodes and access appear here.',
  columns: { when: 'Time', what: 'Event', object: 'Object', actor: 'User', outcome: 'Outcome' },
  searchHint: 'Search events, objects, users',
  kind: 'Kind',
  within: { '1h': 'Last hour', '24h': 'Last 24 hours', '7d': 'Last 7 days' },
  json: 'event as JSON',
  close: 'Close',
  download: 'Export JSON lines',
} as const

export const legacyTexts = {
  title: 'Legacy usage',
  text: 'Clients that still call the 2.4.x API. When the list is empty, you can turn the gateway off.',
  on: 'Gateway on',
  off: 'Gateway off',
  emptyTitle: 'No legacy calls',
  emptyText: 'Calls by 2.4.x clients appear here with their replacement. To find such calls in your code, run:',
  columns: {
    call: 'Call',
    who: 'User',
    client: 'Client',
    calls: 'Calls',
    refused: 'Rejected',
    last: 'Last call',
    instead: 'Use instead',
  },
  noAdvice: 'See docs/reference/orka-2.4.md',
} as const

export const usageTexts = {
  title: 'Usage',
  text: 'By day in UTC, from placement on a node to deletion; deleted VMs count. The last 30 days unless you choose others.',
  columns: {
    day: 'Day',
    owner: 'Owner',
    namespace: 'Namespace',
    vms: 'VMs',
    vmHours: 'VM hours',
    coreHours: 'Core hours',
    queue: 'Time in the queue',
  },
  meanQueue: 'Mean time in the queue',
  from: 'From',
  to: 'To',
  download: 'Download CSV',
  searchHint: 'Search owners, namespaces, days',
} as const

// What the overview, the events, the charts and the legacy usage say, in English.

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

export const eventTexts = {
  title: 'Events',
  text: 'Changes in the selected namespaces, newest first.',
  emptyTitle: 'No events yet',
  emptyText: 'Changes to VMs, images, nodes and access appear here.',
  columns: { when: 'Time', what: 'Event', object: 'Object', actor: 'User', outcome: 'Outcome' },
  searchHint: 'Search events, objects, users',
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

export const chartTexts = {
  title: 'Charts',
  text: 'Last 24 hours, one value per minute.',
  names: {
    runningVms: 'Running VMs',
    deploySeconds: 'Time to deploy',
    bytesPerSecond: 'Data transferred',
    apiSeconds: 'API latency (median)',
    apiSecondsP99: 'API latency (p99)',
  } as Readonly<Record<string, string>>,
  latest: (value: string) => `now ${value}`,
  empty: 'No data yet',
} as const

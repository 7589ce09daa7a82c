// What the overview, the events, the charts and the legacy usage say, in English.

export const overviewTexts = {
  title: 'Overview',
  running: 'Running',
  stopped: 'Stopped',
  suspended: 'Suspended',
  pending: 'On their way',
  failed: 'Failed',
  unknown: 'Unknown',
  work: 'Work under way',
  noWork: 'Nothing is being done at the moment.',
  lately: 'What happened lately',
  noEvents: 'Nothing has happened yet.',
  noNodes: 'No hosts yet',
  noNodesText: 'VMs need a host. Make a join token and run one line on a Mac or a Linux machine.',
  noNodesDev: 'Ask an administrator to add one.',
  startTitle: 'Deploy your first VM',
  startText: 'Choose an image, press one button, and watch it start. Its screen opens in this page.',
} as const

export const eventTexts = {
  title: 'Events',
  text: 'Every change of the last days: what, by whom, with which outcome.',
  emptyTitle: 'Nothing has happened yet',
  emptyText: 'Each change of something in this namespace is written down here.',
  columns: { when: 'When', what: 'What', object: 'Object', actor: 'By', outcome: 'Outcome' },
  searchHint: 'Message, object, person',
} as const

export const legacyTexts = {
  title: 'Legacy usage',
  text: 'Who still calls the 2.4.x API. When nobody does, the gateway can be switched off.',
  on: 'The gateway answers',
  off: 'The gateway is switched off',
  emptyTitle: 'Nobody calls the old API',
  emptyText: 'Calls of 2.4.x clients would be listed here with what replaces them. To find them in your own code:',
  columns: {
    call: 'Call',
    who: 'Who',
    client: 'Client',
    calls: 'Calls',
    refused: 'Refused',
    last: 'Last',
    instead: 'Instead',
  },
  noAdvice: 'see docs/legacy.md',
} as const

export const chartTexts = {
  title: 'Charts',
  text: 'The last day, minute by minute.',
  names: {
    runningVms: 'Running VMs',
    deploySeconds: 'Time to deploy',
    bytesPerSecond: 'Bytes moved',
    apiSeconds: 'API latency',
    apiSecondsP99: 'API latency, slowest 1 %',
  } as Readonly<Record<string, string>>,
  latest: (value: string) => `now ${value}`,
  empty: 'Nothing has been measured yet.',
} as const

// Words of charts.

export const chartTexts = {
  title: 'Charts',
  text: 'The whole cluster. Up to a day has one value per minute, a week one per 15 minutes.',
  names: {
    runningVms: 'Running VMs',
    deploySeconds: 'Time to deploy (median)',
    deploySecondsP95: 'Time to deploy (p95)',
    queueSeconds: 'Time in the queue (median)',
    queueSecondsP95: 'Time in the queue (p95)',
    bytesPerSecond: 'Data transferred',
    apiSeconds: 'API latency (median)',
    apiSecondsP99: 'API latency (p99)',
    cpu: 'CPU',
    memory: 'Memory',
    diskRead: 'Disk reads',
    diskWrite: 'Disk writes',
    networkIn: 'Network in',
    networkOut: 'Network out',
    disk: 'Disk used',
    cacheHits: 'Image cache hits',
  } as Readonly<Record<string, string>>,
  latest: (value: string) => `now ${value}`,
  spoken: (title: string, latest: string, low: string, high: string) =>
    `${title}: ${latest} now, lowest ${low}, highest ${high}`,
  empty: 'No data yet',
  measured: 'Resource usage',
  notMeasured: 'The driver of this node reports no measurements.',
  range: 'Time range',
  rangeNames: { '1h': 'Last hour', '6h': 'Last 6 hours', '24h': 'Last 24 hours', '7d': 'Last 7 days' },
} as const

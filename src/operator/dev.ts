// svc3 dev: the whole service in one process, for a laptop or a single host. Its connection file has a token of the
// administrator, so that the local command line needs no login.
import { type Architecture, architectures } from '../api/architecture.ts'
import { defineCommand, type Options } from '../cli/command.ts'
import { contextElsewhere, dataDir } from '../cli/connect/connection.ts'
import type { Host } from '../cli/host.ts'
import { UsageError } from '../cli/line/usage.ts'
import { administrator, ensureAdministrator, userOf } from '../control-plane/administrator.ts'
import { type ConnectionFile, readConnection } from '../control-plane/connection.ts'
import type { ControlPlane, KubernetesListener } from '../control-plane/control-plane.ts'
import { nextSteps } from '../control-plane/next-steps.ts'
import { processExists } from '../platform/lock-file.ts'
import { isLoopback } from '../rules/addresses.ts'
import type { DevOptions } from './dev-nodes.ts'
import {
  dataOptions,
  imageQuota,
  imageQuotaOption,
  imagesAddressOf,
  imagesOption,
  type ListenAddress,
  type OperatorOptionValues,
  parseListen,
} from './options.ts'
import { parseSimulation, simulateOption } from './simulate.ts'

const devDrivers = ['qemu', 'simulated'] as const satisfies readonly DevOptions['driver'][]

const maxNodes = 1_000
const kubernetesDefault = '127.0.0.1:6443'

const devTable = {
  listen: {
    type: 'string',
    value: 'HOST:PORT',
    default: '127.0.0.1:8080',
    description: 'Loopback address to listen on (port 0: any free port)',
  },
  data: dataOptions.data,
  'kubernetes-listen': {
    type: 'string',
    value: 'HOST:PORT',
    defaultText: `${kubernetesDefault}, or any free port`,
    description: 'Loopback address of the Kubernetes API (none: close it)',
  },
  driver: { type: 'choice', choices: devDrivers, default: 'qemu', description: 'Driver that runs VMs' },
  nodes: {
    type: 'string',
    value: 'ARCH=COUNT,…',
    default: 'arm64=1,amd64=1',
    description: 'Number of nodes per architecture',
  },
  'image-quota': imageQuotaOption,
  images: imagesOption,
  simulate: simulateOption,
} as const satisfies Options

export const command = defineCommand({
  description: 'Runs server and nodes in one process. Press Ctrl-C to stop; data is kept.',
  ownSignals: true,
  arguments: {},
  options: devTable,
  examples: [
    { line: 'svc3 dev', does: 'Serve on 127.0.0.1:8080' },
    { line: 'svc3 dev --listen 127.0.0.1:0 --data /tmp/svc3', does: 'Run a second one on a free port' },
    { line: 'svc3 dev --driver simulated --nodes arm64=20', does: 'Simulate 20 nodes' },
    {
      line: 'svc3 dev --driver simulated --simulate boot=5s,fail-start=0.2,max-vms=2',
      does: 'Simulate slow and failing nodes',
    },
  ],
  async run({ host }, { options }) {
    const dev = devOptions(host, options)
    const { dataDir, listen, images } = dev
    const kubernetes = kubernetesListener(options['kubernetes-listen'], listen)
    // If another svc3 dev seems to run, this one will probably fail, so it does not announce a start.
    const { pid } = (await readConnection(dataDir)) ?? {}
    if (pid === undefined || !processExists(pid)) host.stdout.write(startingLine(dev))
    const [{ serve }, { startNodes }] = await Promise.all([
      import('../control-plane/serve.ts'),
      import('./dev-nodes.ts'),
    ])
    return serve({
      dataDir,
      listen,
      images,
      kubernetes,
      plainHttp: true,
      isDev: true,
      note: adminNote(),
      sidecar: (plane) => startNodes(plane, dev, host.typedAs),
      greet: async (plane) =>
        nextSteps({
          program: host.typedAs,
          dataDir,
          apiUrl: plane.apiUrl,
          user: plane.localUsers && administrator,
          consoleLink: await consoleLink(plane),
          context: contextElsewhere(host, plane.apiUrl),
          isSimulated: dev.driver === 'simulated',
          variables: ['SVC3_API_URL', 'SVC3_TOKEN'].filter((name) => host.env[name]),
        }),
    })
  },
})

/** Returns the line to print before the server is loaded, which takes seconds on a busy machine. */
export function startingLine({ nodes }: Pick<DevOptions, 'nodes'>): string {
  const count = architectures.reduce((sum, architecture) => sum + nodes[architecture], 0)
  return `svc3: Starting the server and ${count} ${count === 1 ? 'node' : 'nodes'}\n`
}

/** Validates the options. */
export const devOptions = (host: Host, options: OperatorOptionValues<typeof devTable>): DevOptions => ({
  listen: localListen(options.listen),
  dataDir: dataDir(host, options.data),
  driver: options.driver,
  nodes: parseNodes(options.nodes),
  simulation: parseSimulation(options.simulate, options.driver),
  imageQuotaBytes: imageQuota(options['image-quota']),
  images: imagesAddressOf(host, options.images),
})

/** Passwords and tokens are sent over plain HTTP, so they must not leave this machine. */
function localListen(text: string, option = '--listen'): ListenAddress {
  const listen = parseListen(text, option)
  if (isLoopback(listen.host)) return listen
  throw new UsageError(
    `Invalid ${option} "${text}": svc3 dev uses plain HTTP and listens on loopback addresses only`,
    'Use svc3 server, which serves HTTPS, for other machines',
  )
}

/** If another program has the default port, any free one is used, which `GET /api/v1/cluster-info` names. */
export function kubernetesListener(text: string | undefined, { port }: ListenAddress): KubernetesListener | undefined {
  if (text === 'none') return undefined
  if (text !== undefined) return localListen(text, '--kubernetes-listen')
  const place = parseListen(kubernetesDefault)
  return port === 0 ? { ...place, port: 0 } : { ...place, isAnyPort: true }
}

function parseNodes(text: string): DevOptions['nodes'] {
  const example = 'For example --nodes arm64=2,amd64=1'
  const counts = new Map<Architecture, number>()
  for (const part of text.split(',')) {
    const [name, count, ...more] = part.split('=')
    const architecture = architectures.find((known) => known === name)
    if (!architecture || count === undefined || !/^\d{1,4}$/.test(count) || more.length > 0) {
      throw new UsageError(`Invalid --nodes "${text}": use ${architectures.join('=COUNT or ')}=COUNT`, example)
    }
    if (counts.has(architecture))
      throw new UsageError(`Invalid --nodes "${text}": ${architecture} is specified twice`, example)
    if (Number(count) > maxNodes)
      throw new UsageError(`Invalid --nodes "${text}": more than ${maxNodes} nodes`, example)
    counts.set(architecture, Number(count))
  }
  return { arm64: counts.get('arm64') ?? 0, amd64: counts.get('amd64') ?? 0 }
}

type Plane = Pick<ControlPlane, 'tokens' | 'localUsers' | 'log'>

/** The link has a ticket for one login, not the token, and has it in the fragment, which browsers do not send. */
async function consoleLink(
  plane: Pick<ControlPlane, 'consoleUrl' | 'browserSessions' | 'localUsers'>,
): Promise<string | undefined> {
  const { consoleUrl, browserSessions, localUsers } = plane
  const person = userOf(localUsers)
  return consoleUrl === undefined || !person
    ? consoleUrl
    : `${consoleUrl}#ticket=${(await browserSessions.issueTicket(person)).ticket}`
}

/** Issues the administrator's token for the connection file, unless that user was removed. */
export function adminNote(): (plane: Plane) => Promise<Pick<ConnectionFile, 'adminToken'>> {
  let isFirst = true
  let isSaid = false
  return async (plane) => {
    if (isFirst) await ensureAdministrator(plane.localUsers)
    isFirst = false
    const { tokens, localUsers, log } = plane
    const user = userOf(localUsers)
    if (user) {
      isSaid = false
      return { adminToken: (await tokens.issue(user)).token }
    }
    if (!isSaid) log.warn(`user ${administrator} not found: commands on this machine need svc3 login`)
    isSaid = true
    return {}
  }
}

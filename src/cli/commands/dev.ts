// svc3 dev
import { type Architecture, architectures } from '../../api/architecture.ts'
import { isLoopback } from '../../client/transport.ts'
import { defineCommand } from '../command.ts'
import { dataDir } from '../connect/connection.ts'
import { imageQuota } from '../image-quota.ts'
import { UsageError } from '../line/usage.ts'
import { type DevOptions, devDrivers } from '../programs.ts'
import { parseSimulation, simulateOption } from '../simulate.ts'
import { imagesOf, imagesOption } from './server/options.ts'

const maxNodes = 1_000

export const command = defineCommand({
  description: 'Server and nodes in one process. Ctrl-C ends it; the next start goes on where it ended.',
  ownSignals: true,
  arguments: {},
  options: {
    listen: {
      type: 'string',
      value: 'HOST:PORT',
      default: '127.0.0.1:8080',
      description: 'Loopback address to serve; port 0 takes a free one',
    },
    data: {
      type: 'string',
      value: 'DIR',
      defaultText: '$SVC3_DATA, or .svc3 in the checkout or your home',
      description: 'Folder of all state',
    },
    driver: { type: 'choice', choices: devDrivers, default: 'qemu', description: 'What runs the virtual machines' },
    nodes: {
      type: 'string',
      value: 'ARCH=COUNT,…',
      default: 'arm64=1,amd64=1',
      description: 'Nodes of each architecture',
    },
    'image-quota': {
      type: 'string',
      value: 'SIZE',
      defaultText: '80 % of what is free',
      description: 'What the nodes may keep of images',
    },
    images: imagesOption,
    simulate: simulateOption,
  },
  examples: [
    { line: 'svc3 dev', does: 'Serve on 127.0.0.1:8080, with the data of this checkout' },
    { line: 'svc3 dev --listen 127.0.0.1:0 --data /tmp/svc3', does: 'A second one beside it, on a free port' },
    { line: 'svc3 dev --driver simulated --nodes arm64=20', does: 'Twenty nodes that only pretend' },
    {
      line: 'svc3 dev --driver simulated --simulate boot=5s,fail-start=0.2,max-vms=2',
      does: 'As slow and as unreliable as you like',
    },
  ],
  run: ({ host }, { options }) =>
    host.programs.dev({
      listen: localListen(options.listen),
      dataDir: dataDir(host, options.data),
      driver: options.driver,
      nodes: parseNodes(options.nodes),
      simulation: parseSimulation(options.simulate),
      imageQuotaBytes: imageQuota(options['image-quota']),
      images: imagesOf(host, options.images),
    }),
})

/** It serves plain HTTP: its login page and its tokens must not leave this machine. */
function localListen(text: string): DevOptions['listen'] {
  const listen = parseListen(text)
  if (isLoopback(listen.host)) return listen
  throw new UsageError(
    `--listen "${text}" is not a loopback address, and "dev" would send passwords and tokens in clear over the network`,
    'serve others with "svc3 server", which speaks HTTPS',
  )
}

export function parseListen(text: string): DevOptions['listen'] {
  const match = /^(?:\[(?<ipv6>[0-9a-fA-F:.]+)\]|(?<host>[A-Za-z0-9.-]+)):(?<port>\d{1,5})$/.exec(text)
  const { ipv6, host = ipv6, port } = match?.groups ?? {}
  if (host === undefined || port === undefined || Number(port) > 65_535) {
    throw new UsageError(
      `--listen "${text}" is not of the form HOST:PORT`,
      'for example --listen 127.0.0.1:8080 or --listen [::1]:8080',
    )
  }
  return { host, port: Number(port) }
}

export function parseNodes(text: string): DevOptions['nodes'] {
  const example = 'for example --nodes arm64=2,amd64=1'
  const counts = new Map<Architecture, number>()
  for (const part of text.split(',')) {
    const [name, count, ...more] = part.split('=')
    const architecture = architectures.find((known) => known === name)
    if (!architecture || count === undefined || !/^\d{1,4}$/.test(count) || more.length > 0) {
      throw new UsageError(`--nodes "${text}" is not a list of ${architectures.join('=COUNT or ')}=COUNT`, example)
    }
    if (counts.has(architecture)) throw new UsageError(`--nodes "${text}" names ${architecture} twice`, example)
    if (Number(count) > maxNodes)
      throw new UsageError(`--nodes "${text}" asks for more than ${maxNodes} nodes`, example)
    counts.set(architecture, Number(count))
  }
  return { arm64: counts.get('arm64') ?? 0, amd64: counts.get('amd64') ?? 0 }
}

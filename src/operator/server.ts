// svc3 server: the control plane alone, over HTTPS, with users of the identity provider. The server itself is imported
// lazily, so that help is fast.
import path from 'node:path'
import { defineCommand, type Options } from '../cli/command.ts'
import type { Host } from '../cli/host.ts'
import { UsageError } from '../cli/line/usage.ts'
import type { ControlPlane, KubernetesListener } from '../control-plane/control-plane.ts'
import { isLoopback } from '../rules/addresses.ts'
import { quoted } from '../rules/shell-word.ts'
import {
  dataOptions,
  imagesAddressOf,
  imagesOption,
  type OperatorOptionValues,
  parseListen,
  storeOf,
} from './options.ts'

/** How long load balancers have to notice that a server stops: several of their usual health checks. */
const noticeSeconds = 5
const defaultDataDir = '/var/lib/svc3'

const options = {
  listen: {
    type: 'string',
    value: 'HOST:PORT',
    default: '0.0.0.0:8443',
    description: 'Address to listen on (port 0: any free port)',
  },
  data: { ...dataOptions.data, defaultText: `$SVC3_DATA, or ${defaultDataDir}` },
  store: { ...dataOptions.store, defaultText: '$SVC3_STORE, or the data folder' },
  images: imagesOption,
  url: {
    type: 'string',
    value: 'URL',
    defaultText: 'the address it listens on',
    description: 'Public address, for example of a load balancer',
  },
  'internal-url': {
    type: 'string',
    value: 'URL',
    defaultText: 'the address it listens on',
    description: 'Address for other servers on the same store',
  },
  'kubernetes-listen': {
    type: 'string',
    value: 'HOST:PORT',
    defaultText: 'none: the port is closed',
    description: 'Also serve the Kubernetes API, for kubectl and Packer (TLS 1.3)',
  },
  'kubernetes-url': {
    type: 'string',
    value: 'URL',
    defaultText: 'the host of --url and the port it listens on',
    description: 'Public address of the Kubernetes API',
  },
  'plain-http': { type: 'boolean', description: 'Also serve plain HTTP (loopback addresses only)' },
} as const satisfies Options

export type ServerValues = OperatorOptionValues<typeof options>

export const command = defineCommand({
  description:
    'Serves the API and the console over HTTPS, with a self-signed certificate until you upload one (POST\n/api/v1/upload/cert). Press Ctrl-C to stop; data is kept.',
  ownSignals: true,
  arguments: {},
  options,
  examples: [
    { line: 'svc3 server', does: `Serve HTTPS on port 8443, with data in ${defaultDataDir}` },
    {
      line: 'svc3 server --listen 127.0.0.1:8080 --plain-http --data ./data --url https://svc3.example.com',
      does: 'Run behind a TLS proxy on this machine',
    },
    {
      line: 'svc3 server --kubernetes-listen 0.0.0.0:6443 --url https://svc3.example.com:8443',
      does: 'Also serve kubectl and Packer, on port 6443',
    },
    {
      line: 'svc3 server --store "etcd://a:2379,b:2379,c:2379/svc3?ca=/etc/svc3/ca.pem" --url https://svc3.example.com',
      does: 'Keep records in etcd',
    },
    {
      line: 'svc3 server --store "etcd://a:2379,b:2379,c:2379/svc3" --images oci://registry.example.com/svc3/images',
      does: 'Keep records in etcd and images in a registry',
    },
  ],
  async run({ host }, { options }) {
    const server = serverOptions(host, options)
    const { dataDir, plainHttp, storeAddress } = server
    const { serve } = await import('../control-plane/serve.ts')
    return serve({
      ...server,
      noticeSeconds: storeAddress === undefined ? 0 : noticeSeconds,
      note: async () => ({}),
      greet: async (plane) =>
        [
          plainHttp ? '' : await certificateLine(plane),
          addressLine(plane),
          plane.consoleUrl === undefined ? '' : `Console: ${plane.consoleUrl}\n`,
          plane.kubernetesUrl === undefined ? '' : `Kubernetes API: ${plane.kubernetesUrl}\n`,
          nextLines(plane, dataDir, host.typedAs),
        ].join(''),
    })
  },
})

/** Validates the options. */
export function serverOptions(host: Host, options: ServerValues) {
  const listen = parseListen(options.listen)
  const plainHttp = options['plain-http']
  if (plainHttp && !isLoopback(listen.host)) {
    throw new UsageError(
      `--plain-http needs a loopback address, and ${listen.host} is not one`,
      'Remove --plain-http, or listen on 127.0.0.1 behind a TLS proxy',
    )
  }
  return {
    listen,
    dataDir: path.resolve(host.workingDir, options.data ?? (host.env.SVC3_DATA || defaultDataDir)),
    plainHttp,
    publicUrl: checkedUrl(options.url, plainHttp),
    storeAddress: storeOf(host, options.store),
    internalUrl: internalUrlOf(options['internal-url']),
    images: imagesAddressOf(host, options.images),
    kubernetes: kubernetesListener(options['kubernetes-listen'], options['kubernetes-url']),
  }
}

function kubernetesListener(listen: string | undefined, text: string | undefined): KubernetesListener | undefined {
  const url = checkedUrl(text, false, '--kubernetes-url')
  if (listen !== undefined) return { ...parseListen(listen, '--kubernetes-listen'), url }
  if (url === undefined) return undefined
  throw new UsageError('--kubernetes-url requires --kubernetes-listen', 'Add --kubernetes-listen HOST:PORT')
}

function internalUrlOf(text: string | undefined): string | undefined {
  const option = '--internal-url'
  if (text !== undefined && URL.canParse(text) && new URL(text).protocol === 'http:')
    throw new UsageError(
      `Invalid ${option} "${text}": servers reach each other over HTTPS only`,
      `Use https://, for example ${option} https://10.0.0.11:8443`,
    )
  return checkedUrl(text, true, option)
}

function checkedUrl(text: string | undefined, plainHttp: boolean, option = '--url'): string | undefined {
  if (text === undefined) return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol === 'http:' && !plainHttp)
    throw new UsageError(
      `Invalid ${option} "${text}": this server does not serve plain HTTP`,
      'Use https://, or add --plain-http and listen on a loopback address',
    )
  const isHttp = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (url && isHttp && url.pathname === '/' && !url.username && !url.password && !url.search && !url.hash)
    return url.origin
  throw new UsageError(
    `Invalid ${option} "${text}": use https://HOST[:PORT]`,
    `For example ${option} https://svc3.example.com`,
  )
}

async function certificateLine({ certificates }: ControlPlane): Promise<string> {
  const { publicKeyFingerprint, selfSigned } = (await certificates.current()).facts
  const advice = selfSigned ? 'Clients show it on first use: compare before you accept it.\n' : ''
  return `SHA-256 fingerprint of its public key:\n  ${publicKeyFingerprint}\n${advice}`
}

/** A server that listens on all addresses does not know by which name clients reach it. */
const addressLine = ({ apiUrl, localUrl }: ControlPlane): string =>
  apiUrl === localUrl && new URL(apiUrl).hostname === '127.0.0.1'
    ? 'To let clients on other machines log in, set --url to the address that they use.\n'
    : ''

export const nextLines = (
  { localUsers, apiUrl }: Pick<ControlPlane, 'localUsers' | 'apiUrl'>,
  dataDir: string,
  program: string,
): string => `
${usersLine(localUsers, `${program} server users add EMAIL --admin --data ${quoted(path.resolve(dataDir))}`)}\
API reference: ${apiUrl}/api/v1/swagger
Press Ctrl-C to stop. Data is kept in ${path.resolve(dataDir)}
`

function usersLine(localUsers: ControlPlane['localUsers'], addition: string): string {
  if (!localUsers) return 'Users log in with the identity provider in config.json.\n'
  return localUsers.list().length > 0 ? '' : `Create the first user on this machine:\n  ${addition}\n`
}

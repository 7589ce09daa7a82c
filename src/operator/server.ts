// svc3 server: the control plane alone, over HTTPS, with users of the identity provider. The server itself is imported
// lazily, so that help is fast.
import path from 'node:path'
import { defineCommand } from '../cli/command.ts'
import type { Host } from '../cli/host.ts'
import { UsageError } from '../cli/line/usage.ts'
import { isLoopback } from '../client/transport.ts'
import type { ControlPlane } from '../control-plane/control-plane.ts'
import { programLine } from '../control-plane/next-steps.ts'
import { imagesOf, imagesOption, type ListenAddress, parseListen, storeOf } from './options.ts'

export interface ServerOptions {
  readonly listen: ListenAddress
  /** Absolute path of the folder that holds all state. */
  readonly dataDir: string
  /** Plain HTTP as well as HTTPS; only on loopback. */
  readonly plainHttp: boolean
  /** Where clients reach the service, when that is not where it listens. */
  readonly publicUrl: string | undefined
  /** Where the records are, when that is not the data folder. */
  readonly storeAddress: string | undefined
  /** Where other servers on the same records reach this one, when that is not where it listens. */
  readonly internalUrl: string | undefined
  /** The registry that the images are in; without it, where the settings say, or the data folder. */
  readonly images: string | undefined
}

/** Several times as long as load balancers usually take to ask again. */
const noticeSeconds = 5
const defaultDataDir = '/var/lib/svc3'

export const command = defineCommand({
  description:
    'Runs the control plane by HTTPS, with a certificate that it makes for itself until you upload one of yours\n(POST /api/v1/upload/cert). Ctrl-C ends it; the next start goes on where it ended.',
  ownSignals: true,
  arguments: {},
  options: {
    listen: {
      type: 'string',
      value: 'HOST:PORT',
      default: '0.0.0.0:8443',
      description: 'Address to serve; port 0 takes a free one',
    },
    data: {
      type: 'string',
      value: 'DIR',
      defaultText: `$SVC3_DATA, or ${defaultDataDir}`,
      description: 'Folder of all state',
    },
    store: {
      type: 'string',
      value: 'ADDRESS',
      defaultText: '$SVC3_STORE, or the data folder',
      description: 'Where the records are: etcd://HOST:PORT,…/PREFIX',
    },
    images: imagesOption,
    url: {
      type: 'string',
      value: 'URL',
      defaultText: 'where it listens',
      description: 'Address that clients use, for example behind a load balancer',
    },
    'internal-url': {
      type: 'string',
      value: 'URL',
      defaultText: 'where it listens',
      description: 'Address that other servers on the same store use for this one',
    },
    'plain-http': { type: 'boolean', description: 'Serve plain HTTP as well; only on a loopback address' },
  },
  examples: [
    { line: 'svc3 server', does: `HTTPS on port 8443 of every address, with the data in ${defaultDataDir}` },
    {
      line: 'svc3 server --listen 127.0.0.1:8080 --plain-http --data ./data --url https://svc3.example.com',
      does: 'Behind a proxy on this machine that ends TLS',
    },
    {
      line: 'svc3 server --store "etcd://a:2379,b:2379,c:2379/svc3?ca=/etc/svc3/ca.pem" --url https://svc3.example.com',
      does: 'With the records in a cluster of etcd',
    },
    {
      line: 'svc3 server --store "etcd://a:2379,b:2379,c:2379/svc3" --images oci://registry.example.com/svc3/images',
      does: 'And the images in a registry',
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
          plane.consoleUrl === undefined ? '' : `The console is at ${plane.consoleUrl}\n`,
          firstUser(plane, dataDir),
        ].join(''),
    })
  },
})

interface Given {
  readonly listen: string
  readonly data: string | undefined
  readonly store: string | undefined
  readonly images: string | undefined
  readonly url: string | undefined
  readonly 'internal-url': string | undefined
  readonly 'plain-http': boolean
}

/** The options, validated. */
export function serverOptions(host: Host, options: Given): ServerOptions {
  const listen = parseListen(options.listen)
  const plainHttp = options['plain-http']
  if (plainHttp && !isLoopback(listen.host)) {
    throw new UsageError(
      `--plain-http would send tokens in clear over the network: ${listen.host} is not a loopback address`,
      'leave --plain-http out, or listen on 127.0.0.1 with a proxy in front that ends TLS',
    )
  }
  return {
    listen,
    dataDir: path.resolve(host.workingDir, options.data ?? (host.env.SVC3_DATA || defaultDataDir)),
    plainHttp,
    publicUrl: checkedUrl(options.url, plainHttp),
    storeAddress: storeOf(host, options.store),
    internalUrl: checkedUrl(options['internal-url'], false, '--internal-url'),
    images: imagesOf(host, options.images),
  }
}

function checkedUrl(text: string | undefined, plainHttp: boolean, option = '--url'): string | undefined {
  if (text === undefined) return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol === 'http:' && !plainHttp)
    throw new UsageError(
      `${option} "${text}" is plain HTTP, which this server does not serve`,
      'write https://, or add --plain-http and listen on a loopback address',
    )
  const isHttp = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (url && isHttp && url.pathname === '/' && !url.username && !url.password && !url.search && !url.hash)
    return url.origin
  throw new UsageError(
    `${option} "${text}" is not of the form https://HOST[:PORT]`,
    `for example ${option} https://svc3.example.com`,
  )
}

async function certificateLine({ certificates }: ControlPlane): Promise<string> {
  const { publicKeyFingerprint, selfSigned } = (await certificates.current()).facts
  const advice = selfSigned ? 'svc3 shows it on first use: compare the two before you say yes.\n' : ''
  return `Fingerprint of its public key (SHA-256):\n  ${publicKeyFingerprint}\n${advice}`
}

/** Where it listens everywhere, only the operator knows by which name others reach it. */
const addressLine = ({ apiUrl, localUrl }: ControlPlane): string =>
  apiUrl === localUrl && new URL(apiUrl).hostname === '127.0.0.1'
    ? 'Clients on other machines can log in only when --url names the address that they use.\n'
    : ''

const firstUser = ({ localUsers }: ControlPlane, dataDir: string): string => `
${
  localUsers
    ? `To make the first user, on this machine:\n  ${programLine()} server users add EMAIL --admin --data ${path.resolve(dataDir)}`
    : 'Users come from the identity provider in config.json.'
}
The API is described at /api/v1/swagger. Ctrl-C stops the service; the data stays.
`

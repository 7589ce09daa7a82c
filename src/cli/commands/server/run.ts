// svc3 server

import { isLoopback } from '../../../client/transport.ts'
import { defineCommand } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import { parseListen } from '../dev.ts'
import { checkedStore, imagesOf, imagesOption } from './options.ts'

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
  run({ host }, { options }) {
    const path = process.getBuiltinModule('node:path')
    const listen = parseListen(options.listen)
    const plainHttp = options['plain-http']
    if (plainHttp && !isLoopback(listen.host)) {
      throw new UsageError(
        `--plain-http would send tokens in clear over the network: ${listen.host} is not a loopback address`,
        'leave --plain-http out, or listen on 127.0.0.1 with a proxy in front that ends TLS',
      )
    }
    const dataDir = path.resolve(host.workingDir, options.data ?? (host.env.SVC3_DATA || defaultDataDir))
    const storeAddress = checkedStore(options.store ?? (host.env.SVC3_STORE || undefined))
    const publicUrl = checkedUrl(options.url, plainHttp)
    const internalUrl = checkedUrl(options['internal-url'], false, '--internal-url')
    const images = imagesOf(host, options.images)
    return host.programs.server({ listen, dataDir, plainHttp, publicUrl, storeAddress, internalUrl, images })
  },
})

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

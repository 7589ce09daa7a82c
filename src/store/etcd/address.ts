// The address of a store on etcd: etcd://HOST:PORT,HOST:PORT/PREFIX?ca=FILE&cert=FILE&key=FILE&user=NAME&… Secrets are
// in files, because every user of a machine can read command lines.
import fs from 'node:fs/promises'
import type { SecureClientSessionOptions } from 'node:http2'
import { StoreError } from '../store.ts'
import type { EtcdOptions } from './engine.ts'

const form = 'etcd://HOST:PORT[,HOST:PORT…][/PREFIX][?ca=FILE&cert=FILE&key=FILE&user=NAME&password-file=FILE]'
const defaultPrefix = 'svc3'
const defaultPort = 2379

const known: ReadonlySet<string> = new Set(['ca', 'cert', 'key', 'tls', 'server-name', 'user', 'password-file', 'keep'])

const wrong = (problem: string): StoreError =>
  new StoreError('Unavailable', `Invalid store address: ${problem}; use the form ${form}`)

/** `place` is the part after `etcd:`. */
export function parseEtcdAddress(place: string, notice: (text: string) => void): EtcdOptions {
  const found = /^\/\/([^/?#]+)(?:\/([^?#]*))?(?:\?([^#]*))?$/.exec(place)
  if (!found) throw wrong('it has no host')
  const [, hosts = '', path = '', search = ''] = found
  // This check comes first, because messages repeat the address and must not repeat a password.
  if (hosts.includes('@')) throw wrong('remove user and password: use user= and password-file=')
  const query = new URLSearchParams(search)
  for (const name of new Set(query.keys())) {
    if (!known.has(name)) throw wrong(`unknown option "${name}"`)
    if (query.getAll(name).length > 1 || query.get(name) === '') throw wrong(`"${name}" needs one value`)
  }
  const {
    ca,
    cert,
    key,
    user,
    keep,
    'password-file': passwordFile,
    'server-name': serverName,
  } = Object.fromEntries(query)
  if ((cert === undefined) !== (key === undefined)) throw wrong('cert and key must be used together')
  if ((user === undefined) !== (passwordFile === undefined)) throw wrong('user and password-file must be used together')
  const tls = query.get('tls') ?? String(ca !== undefined || cert !== undefined)
  if (tls !== 'true' && tls !== 'false') throw wrong('tls must be true or false')
  if (tls === 'false' && (ca ?? cert) !== undefined) throw wrong('certificates require TLS')
  const isTls = tls === 'true'
  const urls = hosts.split(',').map((host) => memberUrl(host, isTls))
  if (user !== undefined && !isTls && !urls.every(isLoopback))
    notice('The etcd password is sent unencrypted: give the members certificates, and add ca=FILE to the store address')
  const secure = { ca, cert, key, serverName }
  return {
    endpoints: urls.map((url) => ({ url, ...(isTls && { tls: () => readTls(secure) }) })),
    prefix: prefixOf(path),
    credentials:
      user === undefined ? undefined : async () => ({ user, password: await readPassword(passwordFile ?? '') }),
    notice,
    ...(keep !== undefined && { keepRevisions: keepOf(keep) }),
  }
}

function memberUrl(host: string, isTls: boolean): string {
  const url = `${isTls ? 'https' : 'http'}://${host}`
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (!parsed || parsed.host === '') throw wrong(`"${host}" is not a host`)
  // URL omits the default port of its scheme.
  const port = /:(\d+)$/.exec(host)?.[1] ?? defaultPort
  return `${parsed.protocol}//${parsed.hostname}:${port}`
}

const isLoopback = (url: string): boolean => /^(127\.|\[::1\]$|localhost$)/.test(new URL(url).hostname)

function prefixOf(path: string): string {
  const prefix = path.replace(/\/$/, '') || defaultPrefix
  if (/^[\w.-]+(\/[\w.-]+)*$/.test(prefix)) return prefix
  throw wrong(`the prefix "${prefix}" may have only letters, digits and ._-`)
}

function keepOf(text: string): number {
  if (text === 'all') return 0
  if (/^[1-9]\d{2,8}$/.test(text)) return Number(text)
  throw wrong('keep must be a number of revisions (100 or more), or "all" if another program compacts')
}

interface TlsFiles {
  readonly ca: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
  readonly serverName: string | undefined
}

async function readTls({ ca, cert, key, serverName }: TlsFiles): Promise<SecureClientSessionOptions> {
  const [caText, certText, keyText] = await Promise.all([ca, cert, key].map((file) => file && readFile(file)))
  return {
    ...(caText && { ca: caText }),
    ...(certText && keyText && { cert: certText, key: keyText }),
    ...(serverName && { servername: serverName }),
  }
}

const readPassword = async (file: string): Promise<string> => (await readFile(file)).replace(/\r?\n$/, '')

async function readFile(file: string): Promise<string> {
  try {
    return await fs.readFile(file, 'utf8')
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new StoreError('Unavailable', `Cannot read a file of the store address: ${reason}`, {
      cause,
    })
  }
}

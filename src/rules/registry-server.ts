// Registry addresses (docs/spec.md R15): `<scheme>://<hostname>[:<port>]`, their normal form, so that `https://GHCR.io`
// and `https://ghcr.io:443` are one address, and the registry at an address, which may have several addresses.

type RegistryServer =
  | {
      readonly ok: true
      readonly server: string
      /** Host and port, whatever the scheme: `ghcr.io`, `10.0.0.7:5000`. */
      readonly registry: string
      readonly scheme: 'http' | 'https'
      readonly host: string
      readonly port: number
    }
  | {
      readonly ok: false
      readonly problem: string
      readonly hint: string
      /** The intended address, if only the scheme is missing. */
      readonly meant?: string
    }

/** Docker Hub is one registry with several names. */
export const dockerHubApiHost = 'registry-1.docker.io'
export const dockerHubHosts: readonly string[] = ['docker.io', 'index.docker.io', dockerHubApiHost]

const defaultPorts = { http: 80, https: 443 } as const
const form = /^(?<scheme>[a-z][a-z0-9+.-]*):\/\/(?<authority>[^/?#\\]*)(?<rest>.*)/is
const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
const hostname = new RegExp(`^${label}(?:\\.${label})*$`)

export function parseRegistryServer(text: string): RegistryServer {
  // These checks come first, because later messages repeat the text, which must not contain a password.
  if (text.startsWith('-')) {
    return {
      ok: false,
      problem: 'Invalid registry address: it starts with a dash',
      hint: 'Use for example https://ghcr.io',
    }
  }
  if (text.includes('@')) {
    const hint = 'Specify user name and password separately'
    return { ok: false, problem: 'Invalid registry address: it contains a user name or password', hint }
  }
  const match = form.exec(text)
  if (!match?.groups) {
    const bare = parseAuthority(text, 'https', text.toLowerCase().split('/')[0] ?? '')
    const meant = bare.ok ? { meant: bare.server } : {}
    const hint = meant.meant === undefined ? 'Use for example https://ghcr.io' : `Use ${meant.meant}`
    return { ...refuse(text, 'use the form <scheme>://<hostname>[:<port>]', hint), ...meant }
  }
  const { scheme = '', authority = '', rest = '' } = match.groups
  const lowerScheme = scheme.toLowerCase()
  if (lowerScheme !== 'http' && lowerScheme !== 'https') {
    return refuse(text, `unknown scheme "${scheme}"`, 'Use https, or http with allowInsecure')
  }
  if (rest !== '') {
    return refuse(text, `it has a ${partName(rest)} after the host`, `Use ${lowerScheme}://${authority.toLowerCase()}`)
  }
  return parseAuthority(text, lowerScheme, authority.toLowerCase())
}

function parseAuthority(text: string, scheme: 'http' | 'https', authority: string): RegistryServer {
  const match = /^(?<name>\[[0-9a-f:.]*\]|[^:[\]]*)(?::(?<port>\d*))?$/.exec(authority)
  if (!match?.groups) {
    return refuse(text, 'the host is invalid', 'Put an IPv6 address in brackets, as in https://[2001:db8::1]:5000')
  }
  const { name = '', port: portText } = match.groups
  const host = normalHost(name)
  if (host === undefined) {
    return refuse(text, 'the host name is invalid', 'Use letters, digits, dashes and periods, or an IP address')
  }
  const port = portText === undefined ? defaultPorts[scheme] : Number(portText)
  if (portText === '' || !(port >= 1 && port <= 65_535)) {
    return refuse(text, `the port "${portText}" is invalid`, 'Use a port from 1 to 65535')
  }
  const suffix = port === defaultPorts[scheme] ? '' : `:${port}`
  return { ok: true, server: `${scheme}://${host}${suffix}`, registry: registryAt(host, port), scheme, host, port }
}

/** Omits both default ports, because a reference without a port may mean either. Docker Hub has one name. */
function registryAt(host: string, port: number): string {
  const isDefault = port === defaultPorts.http || port === defaultPorts.https
  return isDefault && dockerHubHosts.includes(host) ? 'docker.io' : `${host}${isDefault ? '' : `:${port}`}`
}

/** A host in the normal form of the URL standard; undefined if it is invalid. */
function normalHost(name: string): string | undefined {
  const isAddress = name.startsWith('[') || /^[\d.]+$/.test(name)
  if (!isAddress && (name.length > 253 || !hostname.test(name))) return undefined
  return URL.parse(`https://${name}`)?.hostname
}

const partNames: Readonly<Record<string, string>> = { '/': 'path', '\\': 'path', '?': 'query', '#': 'fragment' }
const partName = (rest: string): string => partNames[rest.charAt(0)] ?? 'part'

const refuse = (text: string, problem: string, hint: string): Extract<RegistryServer, { ok: false }> => ({
  ok: false,
  problem: `Invalid registry address ${JSON.stringify(clip(text))}: ${problem}`,
  hint,
})

const clip = (text: string): string => (text.length > 100 ? `${text.slice(0, 100)}…` : text)

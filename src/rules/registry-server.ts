// What a registry address may be (docs/spec.md R15): `<scheme>://<hostname>[:<port>]`, and its one normal form,
// so that `https://GHCR.io` and `https://ghcr.io:443` are one registry.

type RegistryServer =
  | {
      readonly ok: true
      readonly server: string
      readonly scheme: 'http' | 'https'
      readonly host: string
      readonly port: number
    }
  | { readonly ok: false; readonly problem: string; readonly hint: string }

/** Docker Hub is one registry with several names, and answers at one of them. */
export const dockerHubApiHost = 'registry-1.docker.io'
export const dockerHubHosts: readonly string[] = ['docker.io', 'index.docker.io', dockerHubApiHost]

const defaultPorts = { http: 80, https: 443 } as const
const form = /^(?<scheme>[a-z][a-z0-9+.-]*):\/\/(?<authority>[^/?#\\]*)(?<rest>.*)$/is
const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
const hostname = new RegExp(`^${label}(?:\\.${label})*$`)

export function parseRegistryServer(text: string): RegistryServer {
  // Before anything repeats the text: it may carry a password.
  if (text.startsWith('-')) {
    return { ok: false, problem: 'the registry address begins with a dash', hint: 'write for example https://ghcr.io' }
  }
  if (text.includes('@')) {
    const hint = 'give user name and password in fields of their own'
    return { ok: false, problem: 'the registry address contains user info', hint }
  }
  const match = form.exec(text)
  if (!match?.groups) {
    return refuse(
      text,
      'is not of the form <scheme>://<hostname>[:<port>]',
      `write for example https://${bareHost(text)}`,
    )
  }
  const { scheme = '', authority = '', rest = '' } = match.groups
  const lowerScheme = scheme.toLowerCase()
  if (lowerScheme !== 'http' && lowerScheme !== 'https') {
    return refuse(text, `has the scheme "${scheme}"`, 'use https, or http together with allowInsecure')
  }
  if (rest !== '') {
    return refuse(
      text,
      `has a ${partName(rest)} after the host`,
      `leave it out: ${lowerScheme}://${authority.toLowerCase()}`,
    )
  }
  return parseAuthority(text, lowerScheme, authority.toLowerCase())
}

function parseAuthority(text: string, scheme: 'http' | 'https', authority: string): RegistryServer {
  const match = /^(?<name>\[[0-9a-f:.]*\]|[^:[\]]*)(?::(?<port>\d*))?$/.exec(authority)
  if (!match?.groups) {
    return refuse(
      text,
      'has a host that cannot be read',
      'write an IPv6 address in brackets, as in https://[2001:db8::1]:5000',
    )
  }
  const { name = '', port: portText } = match.groups
  const host = normalHost(name)
  if (host === undefined) {
    return refuse(text, 'has no valid host name', 'use letters, digits, dashes and periods, or an IP address')
  }
  const port = portText === undefined ? defaultPorts[scheme] : Number(portText)
  if (portText === '' || !(port >= 1 && port <= 65_535)) {
    return refuse(text, `has the port "${portText}"`, 'a port is a number from 1 to 65535')
  }
  const suffix = port === defaultPorts[scheme] ? '' : `:${port}`
  return { ok: true, server: `${scheme}://${host}${suffix}`, scheme, host, port }
}

/** The normal form of a host, by the URL standard for addresses; undefined when it is none. */
function normalHost(name: string): string | undefined {
  const isAddress = name.startsWith('[') || /^[\d.]+$/.test(name)
  if (!isAddress && (name.length > 253 || !hostname.test(name))) return undefined
  return URL.parse(`https://${name}`)?.hostname
}

const partNames: Readonly<Record<string, string>> = { '/': 'path', '\\': 'path', '?': 'query', '#': 'fragment' }
const partName = (rest: string): string => partNames[rest.charAt(0)] ?? 'part'

const bareHost = (text: string): string => (hostname.test(text.toLowerCase()) ? text.toLowerCase() : 'ghcr.io')

const refuse = (text: string, problem: string, hint: string): RegistryServer => ({
  ok: false,
  problem: `the registry address ${JSON.stringify(clip(text))} ${problem}`,
  hint,
})

const clip = (text: string): string => (text.length > 100 ? `${text.slice(0, 100)}…` : text)

// The host names in a self-signed certificate.
import net from 'node:net'
import os from 'node:os'

/** Names of this machine, the address that the server listens on, and the host of the public URL. */
export function ownNames(listenHost: string, publicUrl?: string): readonly string[] {
  const host = os.hostname().toLowerCase()
  const isEverywhere = listenHost === '0.0.0.0' || listenHost === '::'
  const names = ['localhost', '127.0.0.1', '::1', host, ...(isEverywhere ? [] : [listenHost])]
  if (publicUrl !== undefined) names.push(new URL(publicUrl).hostname.replace(/^\[|\]$/g, ''))
  return [...new Set(names)].filter(
    (name) => net.isIP(name) !== 0 || /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i.test(name),
  )
}

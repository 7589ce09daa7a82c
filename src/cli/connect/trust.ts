// Decides which https servers are trusted: with a fingerprint pinned in the config file, only the server with that public
// key; otherwise those with a certificate of a trusted CA. A pin applies until `config set` removes or replaces it.

import { findUntrustedPeer, isUntrusted, type TlsPeer, type Trust, type UntrustedPeer } from '../../client/tls.ts'
import { ConnectionError } from '../../client/transport.ts'
import type { Host } from '../host.ts'
import { readInputFile, readLine } from '../input.ts'
import { Failure, UsageError } from '../line/usage.ts'
import { editConfig } from './config.ts'
import { fieldsOf, readCliConfig, type ServerConnection, textField } from './connection.ts'

const probeMs = 5_000

/** Returns the rule for new connections; undefined without TLS. */
export function trustFor(host: Host, { apiUrl, ca }: ServerConnection): Trust | undefined {
  if (!apiUrl.startsWith('https:')) return undefined
  // Reports configuration errors now, and not as failures of the connection.
  const { origin } = new URL(apiUrl)
  const authorities = ca === undefined ? undefined : readAuthorities(host, ca)
  expectedFingerprint(host, origin, ca)
  return {
    ca: authorities,
    judge: (peer) => {
      if (ca !== undefined && isUntrusted(peer)) return foreign(peer, ca)
      const expected = expectedFingerprint(host, origin, ca)
      if (expected !== undefined) return peer.fingerprint === expected ? undefined : changed(host, peer, expected)
      return isUntrusted(peer) ? unknown(peer) : undefined
    },
  }
}

/** On a terminal, asks about an unknown server with an untrusted certificate, before anything is sent to it. */
export async function meetServer(host: Host, { apiUrl, ca }: ServerConnection, signal: AbortSignal): Promise<void> {
  const { hostname, port, origin } = new URL(apiUrl)
  const canAsk = host.stdin.isTerminal && host.stderr.isTerminal
  if (!canAsk || ca !== undefined || expectedFingerprint(host, origin, ca) !== undefined) return
  const target = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 443) }
  // An unreachable server is reported when the request is sent.
  const peer = await findUntrustedPeer(target, probeMs).catch(() => undefined)
  if (!peer) return
  if (!(await isAccepted(host, peer, signal)))
    throw new Failure(
      `You did not accept the certificate of ${origin}; nothing was sent`,
      "Ask the server's administrator for its fingerprint",
    )
  await pin(host, origin, peer.fingerprint)
}

/** The fingerprint from the environment or the config file. A configured CA replaces accepted fingerprints. */
function expectedFingerprint(host: Host, origin: string, ca: string | undefined): string | undefined {
  const variable = host.env.SVC3_FINGERPRINT
  if (variable) return checkFingerprint(variable, 'SVC3_FINGERPRINT')
  return ca === undefined ? textField(fieldsOf(readCliConfig(host).config?.pins)?.[origin]) : undefined
}

/** Without a fingerprint, removes the pin. */
export async function pin(host: Host, origin: string, fingerprint: string | undefined): Promise<void> {
  await editConfig(host, (config) => ({ ...config, pins: { ...fieldsOf(config.pins), [origin]: fingerprint } }))
}

/** Accepts upper and lower case, with or without colons. */
export function checkFingerprint(text: string, source: string): string {
  const digits = text.trim().replaceAll(':', '').toUpperCase()
  const pairs = /^[0-9A-F]{64}$/.test(digits) ? digits.match(/../g) : null
  if (pairs) return pairs.join(':')
  throw new UsageError(
    `${source} is not the SHA-256 fingerprint of a public key`,
    'Use the 32 pairs of hexadecimal digits that the server prints when it starts',
  )
}

export function readAuthorities(host: Host, file: string): string {
  const hint = 'Choose another file with svc3 config set --ca FILE'
  const text = readInputFile(host, file, hint).toString('utf8')
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text
  throw new Failure(`${file} contains no PEM certificate`, hint)
}

async function isAccepted(
  host: Host,
  { origin, problem, fingerprint }: UntrustedPeer,
  signal: AbortSignal,
): Promise<boolean> {
  const { stderr, calledAs } = host
  stderr.write(`${calledAs}: The certificate of ${origin} ${flawOf(problem)}.\n`)
  stderr.write(`${calledAs}: SHA-256 fingerprint of its public key:\n  ${fingerprint}\n`)
  stderr.write(`${calledAs}: Compare it with what the server printed when it started. Trust this server? [yes/no] `)
  return /^(y|yes)$/i.test(await readLine(host, signal))
}

const flaws: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'is signed by an unknown CA',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'is signed by an unknown CA',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'is signed by an unknown CA',
  CERT_HAS_EXPIRED: 'has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'is for another host name',
}
const flawOf = (problem: string): string => flaws[problem] ?? `is not trusted (${problem})`

const refused = (peer: TlsPeer, what: string, next: string): ConnectionError =>
  new ConnectionError('unusable', peer.origin, what, next)

const unknown = (peer: UntrustedPeer): ConnectionError =>
  refused(
    peer,
    `The certificate of ${peer.origin} ${flawOf(peer.problem)}. SHA-256 fingerprint of its public key: ${peer.fingerprint}`,
    `If the server printed the same, run svc3 config set --api-url ${peer.origin} --fingerprint ${peer.fingerprint}`,
  )

/** A server that now has a trusted certificate needs no pin. */
const remedy = ({ env }: Host, peer: TlsPeer): string => {
  if (env.SVC3_FINGERPRINT) return 'correct or unset SVC3_FINGERPRINT'
  return isUntrusted(peer)
    ? `run svc3 config set --api-url ${peer.origin} --fingerprint ${peer.fingerprint}`
    : `run svc3 config set --api-url ${peer.origin} --fingerprint none`
}

const changed = (host: Host, peer: TlsPeer, expected: string): ConnectionError =>
  refused(
    peer,
    `THE KEY OF ${peer.origin} HAS CHANGED: the connection may be intercepted. Nothing was sent. Accepted SHA-256 fingerprint: ${expected}, now: ${peer.fingerprint}${isUntrusted(peer) ? '' : ' (with a certificate of a trusted CA)'}`,
    `Ask the server's administrator. If the new key is right, ${remedy(host, peer)}`,
  )

const foreign = (peer: UntrustedPeer, file: string): ConnectionError =>
  refused(
    peer,
    `The certificate of ${peer.origin} is not signed by a CA in ${file} (${peer.problem})`,
    `Check the address, or choose another file with svc3 config set --ca FILE`,
  )

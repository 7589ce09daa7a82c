// References to images in OCI registries (docs/spec.md R36): `<registry_host>/<repository>/<image>[:TAG]`, where a
// repository may have one part (`host/image`), for pulls also `@sha256:…`; and which stored credentials apply to one.
import { dockerHubHosts, parseRegistryServer } from './registry-server.ts'

export interface ImageReference {
  /** Host and port in normal form: `ghcr.io`, `localhost:5000`, `[::1]:5000`. */
  readonly registry: string
  readonly repository: string
  /** Undefined if there is only a digest. */
  readonly tag: string | undefined
  readonly digest: string | undefined
  /** What identifies the manifest in the registry: the digest, or else the tag. */
  readonly target: string
  /** The whole reference in normal form. */
  readonly text: string
}

type ParsedReference =
  | { readonly ok: true; readonly reference: ImageReference }
  | { readonly ok: false; readonly problem: string; readonly hint: string }

const imageReferenceRule = '<registry_host>/<repository>/<image>[:TAG], such as ghcr.io/team/image:v1'
const defaultTag = 'latest'

const component = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*$/
const tagForm = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/
const badBeginnings: Readonly<Record<string, string>> = {
  '-': 'the tag cannot begin with a dash',
  '.': 'the tag cannot begin with a period',
}
const digestForm = /^sha256:[0-9a-f]{64}$/
const longestRepository = 255

/** Names of images in the cluster have no slash. */
export const isImageReference = (name: string): boolean => name.includes('/')

/** Finds `user:password@…`, `user@host/…` and `scheme://…@`. A digest is not a credential. */
function hasCredentials(text: string): boolean {
  const parts = text.split('/')
  const [head = ''] = parts
  if (head.includes('@sha')) return false
  const at = head.lastIndexOf('@')
  const colon = head.indexOf(':')
  if (at !== -1 && (parts.length > 1 || (colon !== -1 && colon < at))) return true
  return parts.some((part, index) => part.includes('@') && parts[index - 1] === '' && parts[index - 2]?.endsWith(':'))
}

export function parseImageReference(text: string, use: 'push' | 'pull'): ParsedReference {
  // These checks come first, because later messages repeat the text, which must not contain a password.
  if (text.startsWith('-')) return { ok: false, problem: 'Invalid image reference: it starts with a dash', hint: useIt }
  if (hasCredentials(text)) {
    const hint = `Store the user name and password with svc3 regcred add, then use ${imageReferenceRule}`
    return { ok: false, problem: 'Invalid image reference: it contains a user name or password', hint }
  }
  const [, scheme] = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text) ?? []
  if (scheme !== undefined)
    return refuse(text, `it starts with a scheme ("${clip(scheme)}")`, `Remove the scheme. ${useIt}`)
  const { name, digest } = splitDigest(text)
  if (digest !== undefined && use === 'push') return refuse(text, 'a push cannot have a digest', `Use a tag. ${useIt}`)
  if (digest !== undefined && !digestForm.test(digest))
    return refuse(text, 'the digest must be sha256: and 64 hexadecimal digits', useIt)
  const slash = name.indexOf('/')
  if (slash === -1) return refuse(text, 'it has no registry', useIt)
  const server = parseRegistryServer(`https://${name.slice(0, slash)}`)
  if (!server.ok)
    return refuse(text, 'the registry host is invalid', 'Start with a host and an optional port, as in localhost:5000')
  const { repository, tag } = splitTag(name.slice(slash + 1))
  const problem = repositoryProblem(repository)
  if (problem !== undefined) return refuse(text, problem, useIt)
  if (tag !== undefined && !tagForm.test(tag))
    return refuse(
      text,
      badBeginnings[tag.charAt(0)] ?? `the tag "${clip(tag)}" is invalid`,
      'Use at most 128 letters, digits, periods, dashes and _ in a tag; begin with a letter, a digit or _',
    )
  const chosen = tag ?? (digest === undefined ? defaultTag : undefined)
  const registry = name.slice(0, slash).toLowerCase()
  const host = server.host + (/:\d+$/.test(registry) ? `:${server.port}` : '')
  return { ok: true, reference: makeReference(host, repository, chosen, digest) }
}

/** Returns text that is no valid reference unchanged. */
export function normalReference(text: string): string {
  const parsed = parseImageReference(text, 'pull')
  return parsed.ok ? parsed.reference.text : text
}

function makeReference(
  registry: string,
  repository: string,
  tag: string | undefined,
  digest: string | undefined,
): ImageReference {
  const text = `${registry}/${repository}${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`
  return { registry, repository, tag, digest, target: digest ?? tag ?? defaultTag, text }
}

function splitDigest(text: string): { name: string; digest: string | undefined } {
  const at = text.indexOf('@')
  return at === -1 ? { name: text, digest: undefined } : { name: text.slice(0, at), digest: text.slice(at + 1) }
}

function splitTag(path: string): { repository: string; tag: string | undefined } {
  const colon = path.lastIndexOf(':')
  return colon <= path.lastIndexOf('/')
    ? { repository: path, tag: undefined }
    : { repository: path.slice(0, colon), tag: path.slice(colon + 1) }
}

function repositoryProblem(repository: string): string | undefined {
  const components = repository.split('/')
  if (repository === '') return 'it has no repository'
  if (repository.length > longestRepository) return `the repository has more than ${longestRepository} characters`
  const bad = components.find((each) => !component.test(each))
  if (bad === undefined) return undefined
  return bad === ''
    ? 'it has an empty part between slashes'
    : `"${clip(bad)}" may have only lowercase letters and digits, with single . or _ or dashes between them`
}

interface StoredServer {
  readonly server: string
  readonly allowInsecure: boolean
}

/** The server addresses under which credentials for a reference may be stored, in order of preference. */
export function serversOf({ registry }: Pick<ImageReference, 'registry'>): readonly string[] {
  return ['https', 'http'].flatMap((scheme) => {
    const parsed = parseRegistryServer(`${scheme}://${registry}`)
    return parsed.ok ? [parsed.server] : []
  })
}

const dockerHub = ['https', 'http'].map((scheme) => dockerHubHosts.map((host) => `${scheme}://${host}`))

/** Other names of the same registry. */
const sameAs = (server: string): readonly string[] => dockerHub.find((names) => names.includes(server)) ?? []

/** Prefers HTTPS, uses HTTP only where it was allowed, and prefers the exact name to other names of the registry. */
export function credentialFor<T extends StoredServer>(
  reference: Pick<ImageReference, 'registry'>,
  stored: Iterable<T>,
): T | undefined {
  const all = [...stored]
  for (const server of serversOf(reference).flatMap((each) => [each, ...sameAs(each)])) {
    const found = all.find((each) => each.server === server && (server.startsWith('https:') || each.allowInsecure))
    if (found) return found
  }
  return undefined
}

/**
 * Says that a registry has no credentials, and how to store them. `isPlain`: the registry is known to speak HTTP
 * only. `hasStored`: credentials for HTTPS exist and have to be replaced.
 */
export function noCredentials(
  reference: ImageReference,
  namespace: string,
  { isPlain = false, hasStored = false }: { readonly isPlain?: boolean; readonly hasStored?: boolean } = {},
): { problem: string; hint: string } {
  const [secure, plain] = serversOf(reference)
  const add = `${isPlain ? `${plain} --allow-insecure` : secure}${hasStored ? ' --replace' : ''}`
  return {
    problem: `No credentials for registry ${reference.registry} in ${namespace}`,
    hint: `Ask an administrator to run svc3 regcred add ${add} -u USER --password-stdin -n ${namespace}`,
  }
}

const useIt = `Use ${imageReferenceRule}`

const refuse = (text: string, problem: string, hint: string): ParsedReference => ({
  ok: false,
  problem: `Invalid image reference ${JSON.stringify(clip(text))}: ${problem}`,
  hint,
})

const clip = (text: string): string => (text.length > 100 ? `${text.slice(0, 100)}…` : text)

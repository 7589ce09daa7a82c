// The address of the registry that holds a cluster's images: `oci://HOST[:PORT]/REPOSITORY`, or `oci+http://…` to
// allow plain HTTP.
import { parseRegistryServer } from './registry-server.ts'

export interface ImagesAddress {
  readonly text: string
  readonly server: string
  readonly isPlain: boolean
  readonly repository: string
}

type ParsedImagesAddress =
  | ({ readonly ok: true } & ImagesAddress)
  | { readonly ok: false; readonly problem: string; readonly hint: string }

const form = /^oci(?<plain>\+http)?:\/\/(?<host>[^/?#]*)\/(?<path>[^?#]*)$/
const repositoryForm = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$/
const maxPathLength = 200
const hint = 'Use for example oci://registry.example.com/svc3/images'

/** Messages do not repeat the text, because it may contain a password. */
export function parseImagesAddress(text: string): ParsedImagesAddress {
  if (text.includes('@'))
    return {
      ok: false,
      problem: 'Invalid images address: it contains a user name or password',
      hint: 'Set SVC3_IMAGES_USERNAME and SVC3_IMAGES_PASSWORD, or use config.json',
    }
  const { plain, host = '', path = '' } = form.exec(text)?.groups ?? {}
  const repository = path.replace(/(?<!\/)\/+$/, '')
  if (host === '' || !repositoryForm.test(repository) || repository.length > maxPathLength)
    return { ok: false, problem: 'Invalid images address: use the form oci://REGISTRY/PREFIX', hint }
  const scheme = plain === undefined ? 'https' : 'http'
  const parsed = parseRegistryServer(`${scheme}://${host}`)
  if (!parsed.ok) return { ok: false, problem: parsed.problem, hint }
  const { host: normalHost } = new URL(parsed.server)
  return {
    ok: true,
    text: `oci${plain ?? ''}://${normalHost}/${repository}`,
    server: parsed.server,
    isPlain: plain !== undefined,
    repository,
  }
}

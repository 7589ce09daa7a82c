// Where the images of a cluster are, when that is a registry: `oci://HOST[:PORT]/REPOSITORY`, or `oci+http://…` for one
// that speaks plain HTTP: who writes that allows it.
import { parseRegistryServer } from './registry-server.ts'

export interface ImagesAddress {
  /** In its one normal form. */
  readonly text: string
  /** `https://host[:port]`, or `http://…`. */
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

/** What is wrong is said without the text: somebody may have put a password into it. */
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

// The GitHub URL that a runner pool takes jobs from: an organization, repository or enterprise of github.com, ghe.com
// or a GitHub Enterprise Server.
import { isLoopback } from '../addresses.ts'

export interface RunnerScope {
  readonly url: string
  /** The base URL of the REST API. */
  readonly api: string
  readonly kind: 'organization' | 'repository' | 'enterprise'
  /** The path of runners in that API: `orgs/acme`. */
  readonly path: string
}

type Parsed = { readonly ok: true; readonly scope: RunnerScope } | { readonly ok: false; readonly problem: string }

const form = 'use https://github.com/ORGANIZATION, https://github.com/OWNER/REPOSITORY or https://HOST/enterprises/NAME'
const partForm = /^[A-Za-z0-9._-]{1,100}$/

export function parseRunnerScope(text: string): Parsed {
  const wrong = (what: string): Parsed => ({ ok: false, problem: `url ${what}: ${form}` })
  if (text.length > 300) return wrong('is too long')
  const url = URL.parse(text)
  if (!url) return wrong('is not an address')
  if (url.username || url.password || url.search || url.hash) return wrong('must not have credentials or a query')
  // Plain HTTP is allowed only to this machine.
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname)))
    return wrong('must begin with https://')
  const parts = url.pathname.split('/').filter((part) => part !== '')
  if (parts.length === 0 || parts.length > 2 || !parts.every((part) => partForm.test(part) && !/^\.+$/.test(part)))
    return wrong('names no organization, repository or enterprise')
  const [first = '', second] = parts
  const [kind, path] =
    second === undefined
      ? (['organization', `orgs/${first}`] as const)
      : first === 'enterprises'
        ? (['enterprise', `enterprises/${second}`] as const)
        : (['repository', `repos/${first}/${second}`] as const)
  const isHosted = url.hostname === 'github.com' || url.hostname.endsWith('.ghe.com')
  const api = isHosted ? `${url.protocol}//api.${url.host}` : `${url.protocol}//${url.host}/api/v3`
  return { ok: true, scope: { url: `${url.origin}/${parts.join('/')}`, api, kind, path } }
}

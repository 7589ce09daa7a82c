// Redacts requests and responses for --debug. Only texts of listed headers and fields are shown, because others may
// contain secrets or data of customers.
import { parseJson } from '../../api/json.ts'

const hidden = '[redacted]'

const headers: ReadonlySet<string> = new Set([
  'accept',
  'content-length',
  'content-range',
  'content-type',
  'etag',
  'idempotency-key',
  'if-range',
  'range',
  'retry-after',
  'user-agent',
  'x-request-id',
])

export const shownHeader = (name: string, value: string): string => (headers.has(name.toLowerCase()) ? value : hidden)

/** Fields whose texts are shown, and whose objects are redacted field by field. */
const fields: ReadonlySet<string> = new Set(
  `actor advice allocatableMemory apiDomain apiEndpoint apiVersion appClientId architecture at availableMemory
  baseOauthEndpoint causes check checks checksum code command conditions context continue createdAt deployDate details digest driver
  email errorMessage expiresAt field found hint id image images involved iso isos items kind memory message
  metadataKeys name namespace noMacos node nodeIP nodeType nodes object operation orkaTags os outcome owner phase powerState
  progress reason requestId result reservedPorts resourceVersion role scheduler serviceaccounts server size source sourceType
  spaceUsed state status subjects tag ttl type uid updatedAt updatedBy usedBy user username users version vm vmConfig
  vmconfig vms warning`.split(/\s+/),
)

export function shownValue(value: unknown, isNamed = true): unknown {
  if (typeof value === 'string') return isNamed ? value : hidden
  if (typeof value !== 'object' || value === null) return value
  if (!isNamed) return hidden
  if (Array.isArray(value)) return value.map((item) => shownValue(item))
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, shownValue(field, fields.has(name))]))
}

/** Returns JSON with texts redacted, and for other bodies only their length. */
export function shownBody(text: string): string {
  const value = parseJson(text)
  return value === undefined ? `${Buffer.byteLength(text)} bytes` : JSON.stringify(shownValue(value))
}

/** Shows a query only on paths of the API, because that of an identity provider may contain a login code. */
export function shownUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url) return hidden
  const address = `${url.origin}${url.pathname}`
  if (url.search === '') return address
  return url.pathname.startsWith('/api/') ? address + url.search : `${address}?${hidden}`
}

/** Removes tokens and known secrets. This is a safety net: messages should not contain any in the first place. */
export function withoutSecrets(text: string, secrets: ReadonlySet<string>): string {
  let clean = text.replace(/(Bearer\s+)[\w.~+/=-]{8,}/gi, `$1${hidden}`)
  for (const secret of secrets) if (secret.length >= 4) clean = clean.replaceAll(secret, hidden)
  return clean
}

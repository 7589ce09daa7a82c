// Everything a host needs to join, in one string: the URLs of the servers, their public key and a secret. Only letters,
// digits, dashes and underscores, so that shells and chats do not change it.

export interface JoinString {
  /** URLs of the servers. Any of them works. */
  readonly urls: readonly string[]
  /** SHA-256 of the servers' public key, for certificates without a known authority. */
  readonly pin?: string | undefined
  readonly token: string
}

const prefix = 'svc3-join-1-'
const longest = 32_768
const pinForm = /^[0-9A-F]{2}(:[0-9A-F]{2}){31}$/

export const encodeJoinString = ({ urls, pin, token }: JoinString): string =>
  prefix + Buffer.from(JSON.stringify({ urls, ...(pin !== undefined && { pin }), token })).toString('base64url')

/** Whether the text looks like a join string, even if it is incomplete. */
export const isJoinString = (text: string): boolean => text.startsWith('svc3-join-')

/** Returns undefined for an invalid or truncated string. */
export function decodeJoinString(text: string): JoinString | undefined {
  if (!text.startsWith(prefix) || text.length > longest) return undefined
  try {
    const value: unknown = JSON.parse(Buffer.from(text.slice(prefix.length), 'base64url').toString())
    const { urls, pin, token } = value as Record<string, unknown>
    const areUrls = Array.isArray(urls) && urls.length > 0 && urls.every(isAddress)
    if (!areUrls || typeof token !== 'string' || token === '') return undefined
    if (pin !== undefined && !(typeof pin === 'string' && pinForm.test(pin))) return undefined
    return { urls, token, ...(pin !== undefined && { pin }) }
  } catch {
    return undefined
  }
}

const isAddress = (value: unknown): value is string =>
  typeof value === 'string' && URL.canParse(value) && ['http:', 'https:'].includes(new URL(value).protocol)

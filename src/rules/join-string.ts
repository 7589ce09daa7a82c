// What a host needs to join, as one string: where the servers are, by which key they are known, and a secret. Plain
// letters, digits, dashes and underscores, so that it survives every shell and every chat.

export interface JoinString {
  /** Of the servers, each good. */
  readonly urls: readonly string[]
  /** SHA-256 of the servers' public key, where no authority vouches for it. */
  readonly pin?: string | undefined
  readonly token: string
}

const prefix = 'svc3-join-1-'
const longest = 32_768
const pinForm = /^[0-9A-F]{2}(:[0-9A-F]{2}){31}$/

export const encodeJoinString = ({ urls, pin, token }: JoinString): string =>
  prefix + Buffer.from(JSON.stringify({ urls, ...(pin !== undefined && { pin }), token })).toString('base64url')

/** Whether it is meant to be one, whole or not. */
export const isJoinString = (text: string): boolean => text.startsWith('svc3-join-')

/** Undefined for what is none, or was cut off. */
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

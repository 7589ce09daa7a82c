// A browser as the server sees it: it keeps cookies, sends its origin, and follows no redirects.
import type { Answer, TestService } from '../rigs/service.ts'

interface BrowserOptions {
  readonly body?: unknown
  readonly headers?: Record<string, string>
  /** Another origin than the console's. */
  readonly from?: string
}

export interface Browser {
  readonly cookies: Map<string, string>
  cookieHeader(): string
  call(method: string, url: string, options?: BrowserOptions): Promise<Answer>
}

export const ownOrigin = 'http://console.test'

export function openBrowser(service: TestService, origin = ownOrigin): Browser {
  const cookies = new Map<string, string>()
  const cookieHeader = (): string => [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  return {
    cookies,
    cookieHeader,
    async call(method, url, { body, headers = {}, from = origin } = {}) {
      const isUnsafe = method !== 'GET' && method !== 'HEAD'
      const isOwn = from === origin
      const told: Record<string, string> = {
        host: new URL(origin).host,
        ...(cookies.size > 0 && { cookie: cookieHeader() }),
        'sec-fetch-site': isOwn ? 'same-origin' : 'cross-site',
        ...((isUnsafe || !isOwn) && { origin: from }),
        ...(isUnsafe && isOwn && { 'x-svc3-console': '1' }),
        ...headers,
      }
      // Empty headers are omitted, because not every browser sends all of them.
      const sent = Object.fromEntries(Object.entries(told).filter(([, value]) => value !== ''))
      const answer = await service.call(method, url, { token: null, body, headers: sent })
      for (const line of [answer.headers['set-cookie'] ?? []].flat()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(String(line)) ?? []
        if (/Max-Age=0/.test(String(line))) cookies.delete(name)
        else cookies.set(name, value)
      }
      return answer
    },
  }
}

export async function logIn(browser: Browser, token: string): Promise<void> {
  const answer = await browser.call('POST', '/console/session', { body: { token } })
  if (answer.status !== 201) throw new Error(answer.text)
}

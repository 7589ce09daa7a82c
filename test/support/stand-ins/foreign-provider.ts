// An organisation's identity provider: a real oidc-provider on loopback with plain pages. The user NAME is
// NAME@corp.example; `groupsOf` has the groups.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import Provider from 'oidc-provider'
import type { Page } from 'playwright-core'

export interface ForeignProvider extends AsyncDisposable {
  readonly issuer: string
  readonly clientId: string
  readonly groupsOf: Map<string, string[]>
  /** Takes it off the network, as in an outage; `start` brings it back with its state. */
  stop(): Promise<void>
  start(): Promise<void>
}

export async function startForeignProvider(): Promise<ForeignProvider> {
  const groupsOf = new Map<string, string[]>()
  let server = createServer()
  const port = await listenBelow(server)
  const issuer = `http://127.0.0.1:${port}`
  const clientId = 'svc3-at-corp'
  const answer = quietly(() => makeProvider(issuer, clientId, groupsOf)).callback()
  server.on('request', answer)
  const stop = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return {
    issuer,
    clientId,
    groupsOf,
    stop,
    async start() {
      server = createServer(answer).listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
    [Symbol.asyncDispose]: stop,
  }
}

/** On a port outside of the system's automatic range, so that it is free when the provider returns. */
async function listenBelow(server: Server): Promise<number> {
  for (;;) {
    const port = randomInt(30_001, 32_000)
    const isOurs = await once(server.listen(port, '127.0.0.1'), 'listening').then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EADDRINUSE') throw error
        return false
      },
    )
    if (isOurs) return port
  }
}

function makeProvider(issuer: string, clientId: string, groupsOf: Map<string, string[]>): Provider {
  return new Provider(issuer, {
    clients: [
      {
        client_id: clientId,
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        redirect_uris: ['http://127.0.0.1/callback', 'http://127.0.0.1/console/callback'],
        response_types: ['code'],
        grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
      },
    ],
    claims: { openid: ['sub'], email: ['email'], groups: ['groups'] },
    issueRefreshToken: () => true,
    expiresWithSession: () => false,
    features: { deviceFlow: { enabled: true } },
    findAccount: (_ctx, sub) => ({
      accountId: sub,
      claims: () => ({ sub, email: `${sub}@Corp.Example`, groups: groupsOf.get(sub) ?? [] }),
    }),
  })
}

/** oidc-provider prints advice for production. */
function quietly<T>(work: () => T): T {
  const { warn, info } = console
  try {
    console.warn = console.info = () => undefined
    return work()
  } finally {
    Object.assign(console, { warn, info })
  }
}

/** Its login form and its consent page. */
export async function passForeignPages(page: Page, name: string): Promise<void> {
  await page.locator('input[name=login]').fill(name)
  await page.locator('input[name=password]').fill('anything')
  await page.getByRole('button', { name: 'Sign-in' }).click()
  await page.getByRole('button', { name: 'Continue' }).click()
}

/** The same without a browser: from the address of the request to the address of the redirect. */
export async function passForeignForms(start: string, name: string): Promise<URL> {
  const cookies = new Map<string, string>()
  let url = new URL(start)
  let body: URLSearchParams | undefined
  for (let step = 0; step < 12; step++) {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ')
    const method = body ? 'POST' : 'GET'
    const answer = await fetch(url, { method, redirect: 'manual', headers: { cookie }, ...(body && { body }) })
    for (const line of answer.headers.getSetCookie()) {
      const [, key = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(key, value)
    }
    const location = answer.headers.get('location')
    const page = await answer.text()
    if (location !== null) {
      body = undefined
      url = new URL(location, url)
      if (url.pathname === '/console/callback') return url
      continue
    }
    const [, action = '', prompt = ''] = /action="([^"]+)"[\s\S]*?name="prompt" value="(\w+)"/.exec(page) ?? []
    if (action === '') throw new Error(`no form at ${url}: ${page.slice(0, 200)}`)
    url = new URL(action, url)
    body = new URLSearchParams({ prompt, login: name, password: 'anything' })
  }
  throw new Error('the provider asks and asks')
}

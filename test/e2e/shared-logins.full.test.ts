// A browser behind a load balancer that gives each of its requests to another server, one of which receives changes
// late: the login, the session, its end and the count of wrong passwords are the same everywhere.
import assert from 'node:assert/strict'
import http from 'node:http'
import { after, before, describe, it } from 'node:test'
import type { ControlPlane } from '../../src/control-plane/control-plane.ts'
import { type SharedServers, startShared } from '../support/processes/shared-servers.ts'
import { startTcpProxy, type TcpProxy } from '../support/stand-ins/tcp-proxy.ts'
import { eventually } from '../support/tools/eventually.ts'

const publicUrl = 'http://svc3.test'
const email = 'ada@example.com'
const password = 'a long pass phrase'
/** Longer than it takes to follow a redirect. */
const lateMs = 40

let shared: SharedServers
let proxy: TcpProxy
let planes: ControlPlane[]
before(async () => {
  shared = await startShared()
  const { hostname, port } = new URL(shared.etcd.urls[0] ?? '')
  proxy = await startTcpProxy(Number(port))
  const quick = await shared.start({ publicUrl })
  await quick.localUsers?.add(email, { admin: true, password })
  const storeAddress = shared.storeAddress.replace(`${hostname}:${port}`, `127.0.0.1:${proxy.port}`)
  planes = [quick, await shared.start({ publicUrl, storeAddress })]
  proxy.delay(lateMs)
})
after(async () => {
  proxy?.delay(0)
  await shared?.[Symbol.asyncDispose]()
  await proxy?.[Symbol.asyncDispose]()
})

interface Seen {
  readonly status: number
  readonly location: string
  readonly text: string
}

class Browser {
  readonly #cookies = new Map<string, string>()
  #turn: number

  /** The server that it comes to first. */
  constructor(turn: number) {
    this.#turn = turn
  }

  call(method: string, where: string, body?: string, headers: Record<string, string> = {}): Promise<Seen> {
    const { pathname, search } = new URL(where, publicUrl)
    const sent = {
      host: new URL(publicUrl).host,
      accept: 'text/html',
      cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      ...(method !== 'GET' && { origin: publicUrl, 'x-svc3-console': '1' }),
      ...headers,
    }
    return new Promise((resolve, reject) => {
      const target = new URL(pathname + search, planes[this.#turn++ % planes.length]?.localUrl)
      const request = http.request(target, { method, headers: sent, agent: false }, (response) => {
        for (const line of response.headers['set-cookie'] ?? []) this.#keep(line)
        let text = ''
        response.setEncoding('utf8').on('data', (chunk) => {
          text += chunk
        })
        const { statusCode: status = 0, headers: told } = response
        response.on('end', () => resolve({ status, location: told.location ?? '', text }))
      })
      request.on('error', reject).end(body)
    })
  }

  /** The form of the built-in provider: where it is sent to. */
  async openForm(): Promise<string> {
    const begun = await this.call('GET', '/console/login')
    const authorize = await this.call('GET', begun.location)
    const form = await this.call('GET', authorize.location)
    const [, action = ''] = /<form[^>]*action="([^"]+)"/.exec(form.text) ?? []
    assert.match(action, /\/oidc\/login\//, form.text)
    return action
  }

  sendForm(action: string, given: string): Promise<Seen> {
    const form = new URLSearchParams({ email, password: given }).toString()
    return this.call('POST', action, form, { 'content-type': 'application/x-www-form-urlencoded' })
  }

  #keep(line: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    if (/Max-Age=0|01 Jan 1970/i.test(line)) this.#cookies.delete(name)
    else this.#cookies.set(name, value)
  }
}

describe('a browser that comes to another server each time', () => {
  for (const first of [0, 1])
    it(`a browser that comes to another server each time logs in, works and logs out, beginning at server ${first}`, async () => {
      const browser = new Browser(first)
      let answer = await browser.sendForm(await browser.openForm(), password)
      while (!answer.location.endsWith('/console/')) {
        assert.ok([302, 303].includes(answer.status), `${answer.status} ${answer.text}`)
        answer = await browser.call('GET', answer.location)
      }
      const session = await browser.call('GET', '/console/session')
      assert.equal(JSON.parse(session.text).user?.name, email, session.text)
      for (let n = 0; n < 2; n++) assert.equal((await browser.call('GET', '/api/v1/namespaces')).status, 200)
      assert.equal((await browser.call('DELETE', '/console/session')).status, 204)
      assert.equal((await browser.call('GET', '/api/v1/namespaces')).status, 401)
    })

  it('a browser that comes to another server each time may use a session at once, of whichever server it is', async () => {
    const { token } = (await planes[0]?.tokens.issue({ kind: 'user', name: email, admin: true })) ?? {}
    const browser = new Browser(0)
    const json = { 'content-type': 'application/json' }
    assert.equal((await browser.call('POST', '/console/session', JSON.stringify({ token }), json)).status, 201)
    assert.equal((await browser.call('GET', '/api/v1/namespaces')).status, 200)
  })

  it('a browser that comes to another server each time has its wrong passwords counted together', async () => {
    const browser = new Browser(0)
    const action = await browser.openForm()
    const statuses: number[] = []
    while (statuses.at(-1) !== 429) {
      statuses.push((await browser.sendForm(action, 'not the pass phrase')).status)
      assert.ok(statuses.length < 12, statuses.join())
    }
    const wrong = statuses.filter((status) => status === 401).length
    assert.ok(wrong >= 5 && statuses.length === wrong + 1, statuses.join())
    for (const { collections } of planes)
      await eventually(async () => {
        const counts = collections.loginTries.list().map(({ value }) => value.wrong)
        // For the account, and for the address that they came from.
        assert.deepEqual(counts, [wrong, wrong])
      })
  })
})

// Followed logs against a server that closes silent connections, as fetch and proxies do: nothing is lost or
// repeated, and the caller does not notice.
import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../test/support/tools/eventually.ts'
import { getVmLogs } from '../api/vms/vms.ts'
import { createClient } from './client.ts'
import { fetchTransport } from './fetch.ts'
import { followLogs } from './follow-logs.ts'

/** No test takes that long: connections are replaced, or the test fails. */
const never = 10 * 60_000

/** A console log, as an agent follows it: from the start, or with `tail=0` from the end. */
async function serveLog(cutMs: number) {
  const followers = new Map<ServerResponse, NodeJS.Timeout>()
  let log = ''
  let requests = 0
  let cuts = 0
  /** Refuses that many of the next requests. */
  let refusals = 0
  const silentFrom = (response: ServerResponse): NodeJS.Timeout =>
    setTimeout(() => {
      cuts += 1
      response.destroy()
    }, cutMs)
  const server = createServer((request, response) => {
    requests += 1
    if (refusals-- > 0) return void response.writeHead(503).end('{}')
    response.writeHead(200, { 'content-type': 'text/plain' }).flushHeaders()
    if (!request.url?.includes('tail=0')) response.write(log)
    followers.set(response, silentFrom(response))
    response.on('close', () => {
      clearTimeout(followers.get(response))
      followers.delete(response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    client: createClient({
      baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      transport: fetchTransport({ fetch }),
    }),
    get seen() {
      return { log, requests, cuts, open: followers.size }
    },
    refuse(count: number): void {
      refusals = count
    },
    print(text: string): void {
      log += text
      for (const [response, timer] of followers) {
        clearTimeout(timer)
        followers.set(response, silentFrom(response))
        response.write(text)
      }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

type Server = Awaited<ReturnType<typeof serveLog>>

/** Follows until all that the log has is read, or for good. */
function follow({ client }: Server, options: { readonly silentMs: number; readonly overlapMs: number }) {
  const ending = new AbortController()
  const followed = { text: '', losses: 0, end: (): void => ending.abort(new Error('enough')), done: Promise.resolve() }
  const onLost = (): void => {
    followed.losses += 1
  }
  const read = async (): Promise<void> => {
    const where = { namespace: 'svc-default', vm: 'demo', signal: ending.signal, onLost }
    for await (const chunk of followLogs(client, { operation: getVmLogs, ...where, ...options }))
      followed.text += Buffer.from(chunk)
  }
  followed.done = assert.rejects(read(), /enough/)
  return followed
}

describe('followed logs', () => {
  it('followed logs outlast any silence: each connection is replaced before it is cut', async () => {
    await using server = await serveLog(never)
    server.print('boot\n')
    const followed = follow(server, { silentMs: 100, overlapMs: 20 })
    await eventually(() => assert.ok(server.seen.requests >= 8, `${server.seen.requests} connections`))
    server.print('at last\n')
    await eventually(() => assert.equal(followed.text, 'boot\nat last\n'))
    followed.end()
    await followed.done
    assert.deepEqual([followed.text, followed.losses, server.seen.cuts], ['boot\nat last\n', 0, 0])
  })

  it('followed logs lose nothing and repeat nothing while connections are replaced', async () => {
    await using server = await serveLog(never)
    const followed = follow(server, { silentMs: 15, overlapMs: 15 })
    for (let line = 1; line <= 100 || server.seen.requests <= 20; line++) {
      server.print(`line ${line}\n`)
      // Around the times at which a connection is replaced.
      await sleep(Math.random() * 45)
    }
    await eventually(() => assert.equal(followed.text, server.seen.log))
    followed.end()
    await followed.done
    assert.equal(followed.text, server.seen.log)
  })

  it('followed logs keep the current connection if they cannot open another', async () => {
    await using server = await serveLog(never)
    const followed = follow(server, { silentMs: 30, overlapMs: 5 })
    await eventually(() => assert.equal(server.seen.open, 1))
    server.refuse(1_000)
    const { requests } = server.seen
    await eventually(() => assert.ok(server.seen.requests > requests + 3))
    server.print('still here\n')
    await eventually(() => assert.equal(followed.text, 'still here\n'))
    followed.end()
    await followed.done
    assert.deepEqual([followed.text, followed.losses], ['still here\n', 0])
  })

  it('followed logs report a lost connection, continue with another, and leave none open at the end', async () => {
    await using server = await serveLog(60)
    const followed = follow(server, { silentMs: 10_000, overlapMs: 10_000 })
    await eventually(() => assert.ok(followed.losses >= 1 && server.seen.cuts >= 2, JSON.stringify(server.seen)))
    followed.end()
    await followed.done
    await eventually(() => assert.equal(server.seen.open, 0))
  })
})

// A host behind a router that translates addresses and lets nothing in, with a real guest on it: SSH, the screen, the
// log and a terminal reach the guest through either of two servers, though none of them can reach the host.
import assert from 'node:assert/strict'
import path from 'node:path'
import type { Duplex } from 'node:stream'
import { it } from 'node:test'
import { Client } from 'ssh2'
import { WebSocket } from 'ws'
import { buildGuest } from '../../packages/tiny-guests/build.ts'
import { createJoinToken } from '../../src/api/nodes/nodes.ts'
import { deleteVm, deployVm } from '../../src/api/vms/vms.ts'
import { createClient } from '../../src/client/client.ts'
import { httpTransport } from '../../src/client/http.ts'
import { dialTunnel } from '../../src/client/tunnel.ts'
import { greeting, tinyCache } from '../support/guests/guest.ts'
import { type DevServer, program, startDev, svc3 } from '../support/processes/dev-server.ts'
import { openNetwork } from '../support/processes/hosts.ts'
import { service } from '../support/processes/operated-cluster.ts'
import { startShared, tokenFor } from '../support/processes/shared-servers.ts'
import { eventually } from '../support/tools/eventually.ts'

const params = { namespace: 'svc-default' }
const vmPath = '/api/v1/namespaces/svc-default/vms/demo'
const trust = { judge: () => undefined }
/** A guest that is emulated on a busy machine boots slowly. */
const bootMs = 300_000

it('a host behind NAT is reached through any server', { timeout: 900_000 }, async (t) => {
  await using cleanup = new AsyncDisposableStack()
  const network = cleanup.use(await openNetwork())
  const shared = cleanup.use(await startShared())
  const start = async (): Promise<DevServer> => {
    const args = ['--store', shared.storeAddress]
    const env = { SVC3_MASTER_KEY: shared.masterKey }
    const listen = `${network.address}:0`
    return cleanup.use(await startDev(await shared.folder(), { command: [program, 'server'], listen, args, env }))
  }
  const servers = [await start(), await start()]
  const token = await tokenFor(shared)
  const clients = servers.map(({ apiUrl }) =>
    createClient({ baseUrl: apiUrl, transport: httpTransport({ trust }), token, timeoutMs: bootMs }),
  )
  const [near, far] = clients as [(typeof clients)[0], (typeof clients)[0]]

  const host = await network.hostBehindNat('home')
  const folder = await shared.folder()
  await buildGuest({ name: 'tiny-amd64', folder: tinyCache, signal: AbortSignal.timeout(bootMs) })
  const [, fingerprint = ''] = /((?:[0-9A-F]{2}:){31}[0-9A-F]{2})/i.exec(servers[0]?.output() ?? '') ?? []
  const env = { SVC3_API_URL: servers[0]?.apiUrl ?? '', SVC3_TOKEN: token, SVC3_FINGERPRINT: fingerprint }
  const disk = path.join(tinyCache, 'tiny-amd64', 'disk.raw')
  const uploading = ['image', 'upload', disk, '--name', 'tiny', '--type', 'amd64', '--firmware', 'uefi']
  const uploaded = await svc3(uploading, { env, cwd: folder, timeoutMs: bootMs })
  assert.equal(uploaded.code, 0, uploaded.stderr)
  const { join = '' } = await near.call(createJoinToken, { params, body: {} })
  const words = ['agent', '--name', 'home', '--architecture', 'amd64', '--data', path.join(folder, 'agent')]
  const agent = service(host, program, [...words, '--join', join], {}, async (one) =>
    assert.match(one.output(), /connected/),
  )
  cleanup.defer(async () => void (await agent.stop()))
  await agent.start()
  const body = { name: 'demo', image: 'tiny', cpu: 1, memory: 0.5 }
  const vm = await far.call(deployVm, { params, body })
  cleanup.defer(async () => void (await near.call(deleteVm, { params: { ...params, vm: 'demo' } })))
  assert.equal(vm.ip, host.address)

  for (const [n, { apiUrl: baseUrl }] of servers.entries()) {
    const dial = (query: string) =>
      dialTunnel({ baseUrl, path: `${vmPath}/${query}`, token, trust, signal: AbortSignal.timeout(bootMs) })
    await eventually(
      async () => assert.equal(await overSsh(await dial('connect'), 'echo through NAT'), 'through NAT'),
      bootMs,
    )
    const screen = await dial('connect?port=vnc')
    const [hello] = await new Promise<Buffer[]>((resolve) => screen.once('data', (chunk) => resolve([chunk])))
    assert.match(String(hello), /^RFB 003\.\d{3}\n/)
    screen.destroy()
    const transport = httpTransport({ trust })
    const answer = await transport({
      method: 'GET',
      url: `${baseUrl}${vmPath}/logs`,
      headers: { authorization: `Bearer ${token}` },
      body: undefined,
      fresh: false,
      signal: AbortSignal.timeout(bootMs),
    })
    let log = ''
    for await (const chunk of answer.body) log += Buffer.from(chunk).toString()
    assert.equal(answer.status, 200)
    assert.match(log, /Linux version|login:/)
    assert.match(await inTerminal(baseUrl, token, 'echo typed-$((40 + 2))'), /typed-42/)
    t.diagnostic(`server ${n + 1}: SSH, screen, log (${log.length} characters) and terminal reach the guest`)
  }
  // The guest answers there, but the port is unreachable from outside.
  assert.equal(await greeting(host.address, Number(vm.ssh)), undefined)
})

function overSsh(sock: Duplex, command: string): Promise<string> {
  const client = new Client()
  return new Promise<string>((resolve, reject) => {
    client.on('error', reject).on('close', () => reject(new Error('closed')))
    client.on('ready', () =>
      client.exec(command, (error, channel) => {
        if (error) return reject(error)
        channel.on('data', (chunk: Buffer) => resolve(String(chunk).trim()))
      }),
    )
    client.connect({ sock, username: 'admin', password: 'admin', readyTimeout: 60_000 })
  }).finally(() => {
    client.destroy()
    sock.destroy()
  })
}

/** What a terminal of the console shows after a line was typed. */
function inTerminal(baseUrl: string, token: string, line: string): Promise<string> {
  const socket = new WebSocket(`${baseUrl.replace('http', 'ws')}${vmPath}/terminal`, {
    headers: { authorization: `Bearer ${token}` },
    rejectUnauthorized: false,
  })
  return new Promise<string>((resolve, reject) => {
    let shown = ''
    const timer = setTimeout(() => reject(new Error(`the terminal shows ${shown}`)), bootMs)
    socket.on('error', reject).on('close', () => clearTimeout(timer))
    const open = { type: 'open', user: 'admin', password: 'admin', columns: 80, rows: 24 }
    socket.on('open', () => socket.send(JSON.stringify(open)))
    socket.on('message', (data, isBinary) => {
      if (isBinary) {
        shown += String(data)
        if (/typed-\d/.test(shown)) resolve(shown)
        return
      }
      const told = JSON.parse(String(data)) as { type: string; message?: string }
      if (told.type === 'opened') socket.send(Buffer.from(`${line}\n`))
      else reject(new Error(told.message))
    })
  }).finally(() => socket.terminate())
}

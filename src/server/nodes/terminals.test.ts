// Terminals and screens in a browser, over real connections: a real SSH server plays the guest.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { afterEach, beforeEach, describe, it } from 'node:test'
import ssh2, { type ServerChannel } from 'ssh2'
import WebSocket from 'ws'
import { logIn, openBrowser } from '../../../test/support/processes/browser.ts'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage, type NodeStandIn, startNode, startScheduler } from '../../../test/support/stand-ins/node.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { dialTunnel } from '../../client/tunnel.ts'

let service: TestService
let scheduler: AsyncDisposable
let node: NodeStandIn
let url: string
const open: WebSocket[] = []
// Long, because a slow machine must not fail the tests.
const { signal } = new AbortController()

beforeEach(async () => {
  service = await startService()
  scheduler = startScheduler(service)
  await addImage(service, 'intel', 'amd64')
  node = await startNode(service)
  url = await service.listen()
  await service.call('POST', `${vms}`, { body: { image: 'intel', name: 'demo' } })
})
afterEach(async () => {
  for (const socket of open.splice(0)) socket.terminate()
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const vms = '/api/v1/namespaces/svc-default/vms'
const { privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2_048,
  privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  publicKeyEncoding: { type: 'pkcs1', format: 'pem' },
})

/** Connects the agent for the next tunnel to the SSH server of the guest. */
async function answerDial(
  shell: (channel: ServerChannel, size: { cols: number; rows: number }) => void,
  asked: (agentSide: Duplex, accept: () => void) => void = (_, accept) => accept(),
): Promise<void> {
  const tunnel = await dialled()
  const agentSide = await dialTunnel({
    baseUrl: url,
    path: `/api/v1/agent/tunnels/${tunnel}`,
    token: node.token,
    signal,
  })
  const guest = new ssh2.Server({ hostKeys: [privateKey] }, (client) => {
    let size = { cols: 0, rows: 0 }
    client.on('error', () => undefined)
    client.on('authentication', (attempt) => {
      const isRight = attempt.method === 'password' && attempt.username === 'admin' && attempt.password === 'hunter2!'
      return isRight ? attempt.accept() : attempt.reject(['password'])
    })
    client.on('session', (accept) => {
      const session = accept()
      session.on('pty', (accepted, _reject, info) => {
        size = { cols: info.cols, rows: info.rows }
        accepted?.()
      })
      session.on('window-change', (_accept, _reject, info) => sizes.push({ cols: info.cols, rows: info.rows }))
      session.on('shell', (accepted) => asked(agentSide, () => shell(accepted(), size)))
    })
  })
  guest.injectSocket(agentSide as never)
}
const sizes: { cols: number; rows: number }[] = []

async function dialled(): Promise<string> {
  return eventually(() => {
    const found = node.told.findIndex(({ type }) => type === 'DIAL')
    assert.ok(found >= 0, 'nothing was dialled')
    return (node.told.splice(found, 1)[0] as unknown as { tunnel: string }).tunnel
  })
}

interface Terminal {
  readonly socket: WebSocket
  readonly told: { type: string; message?: string; hint?: string; hostKey?: string }[]
  output: string
  readonly closed: Promise<number>
}

async function connect(headers: Record<string, string>, path = `${vms}/demo/terminal`): Promise<Terminal> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, { headers })
  open.push(socket)
  const terminal: Terminal = {
    socket,
    told: [],
    output: '',
    closed: new Promise((resolve) => socket.once('close', resolve)),
  }
  socket.on('message', (data, isBinary) => {
    if (isBinary) terminal.output += String(data)
    else terminal.told.push(JSON.parse(String(data)))
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve).once('error', reject)
    socket.once('unexpected-response', (_, { statusCode }) => reject(new Error(`refused: ${statusCode}`)))
  })
  return terminal
}
const bearer = (token = service.adminToken) => ({ authorization: `Bearer ${token}` })
const login = (password = 'hunter2!') =>
  JSON.stringify({ type: 'open', user: 'admin', password, columns: 100, rows: 30 })

describe('a terminal', () => {
  it('a terminal carries keys, output and sizes, and ends with the shell', async () => {
    const terminal = await connect(bearer())
    terminal.socket.send(login())
    await answerDial((channel, size) => {
      channel.write(`welcome ${size.cols}x${size.rows}\r\n`)
      channel.on('data', (keys: Buffer) => {
        if (String(keys) !== 'exit\r') return void channel.write(`you typed ${keys}`)
        channel.exit(3)
        channel.end()
      })
    })
    await eventually(() => assert.match(terminal.output, /welcome 100x30/))
    assert.equal(terminal.told[0]?.type, 'opened')
    assert.match(terminal.told[0]?.hostKey ?? '', /^SHA256:[+/\w]{43}$/)
    terminal.socket.send(Buffer.from('ls ü\r'))
    await eventually(() => assert.match(terminal.output, /you typed ls ü/))
    terminal.socket.send(JSON.stringify({ type: 'resize', columns: 80, rows: 24 }))
    await eventually(() => assert.deepEqual(sizes.at(-1), { cols: 80, rows: 24 }))
    terminal.socket.send(Buffer.from('exit\r'))
    await terminal.closed
    assert.deepEqual(terminal.told.at(-1), { type: 'closed', message: 'The shell ended with code 3' })
    assert.ok(service.logLines.every((line) => !line.includes('hunter2')))
    assert.ok(!JSON.stringify(await service.services.store.list('/')).includes('hunter2'))
  })

  it('a terminal ends after ten unknown messages', async () => {
    const terminal = await connect(bearer())
    for (let sent = 0; sent < 1_000; sent++) terminal.socket.send('{}')
    await terminal.closed
    assert.equal(terminal.told.length, 11)
    assert.match(terminal.told.at(-1)?.message ?? '', /Unknown terminal messages/)
  })

  it('a terminal explains a failed login, allows another try, and ends after three', async () => {
    const terminal = await connect(bearer())
    terminal.socket.send('nonsense')
    await eventually(() => assert.match(terminal.told[0]?.message ?? '', /Unknown terminal message/))
    for (let tries = 1; tries <= 3; tries++) {
      terminal.socket.send(login(`wrong${tries}`))
      await answerDial(() => assert.fail('a shell for a wrong password'))
      await eventually(() => assert.equal(terminal.told.filter(({ type }) => type === 'refused').length, tries + 1))
      assert.match(terminal.told[tries]?.message ?? '', /refused user "admin"/)
      assert.match(terminal.told[tries]?.hint ?? '', /inside the VM/)
    }
    await terminal.closed
    assert.match(terminal.told.at(-1)?.message ?? '', /Too many/)
  })

  it('a terminal reports a guest that does not respond', async () => {
    const terminal = await connect(bearer())
    terminal.socket.send(login())
    const tunnel = await dialled()
    const path = `/api/v1/agent/tunnels/${tunnel}`
    const agentSide = await dialTunnel({ baseUrl: url, path, token: node.token, signal })
    agentSide.end()
    await eventually(() => assert.match(terminal.told[0]?.message ?? '', /is not responding/))
    node.disconnect()
    terminal.socket.send(login())
    await eventually(() => assert.match(terminal.told[1]?.message ?? '', /Node node-1 .* is not responding/))
  })

  it('a terminal that is closed while its shell opens leaves no connection to the guest', async () => {
    const terminal = await connect(bearer())
    terminal.socket.send(login())
    const asked = Promise.withResolvers<Duplex>()
    await answerDial(() => assert.fail('a shell that nobody gave'), asked.resolve)
    const agentSide = await asked.promise
    terminal.socket.terminate()
    await eventually(() => assert.ok(agentSide.destroyed), 5_000)
  })

  it('a terminal buffers little when the browser does not read', async () => {
    const terminal = await connect(bearer())
    terminal.socket.send(login())
    let writtenBytes = 0
    await answerDial((channel) => {
      const chunk = Buffer.alloc(32_768, 'x')
      const more = (): void => {
        while (writtenBytes < 512 * 2 ** 20) {
          writtenBytes += chunk.length
          if (!channel.write(chunk)) return void channel.once('drain', more)
        }
      }
      more()
    })
    await eventually(() => assert.equal(terminal.told[0]?.type, 'opened'))
    terminal.socket.pause()
    const pausedAt = writtenBytes
    // Wait until the guest is blocked: its count of written bytes stays the same.
    let before = -1
    await eventually(async () => {
      before = writtenBytes
      await new Promise((resolve) => setTimeout(resolve, 300))
      assert.equal(writtenBytes, before)
    })
    assert.ok(before - pausedAt < 64 * 2 ** 20, `the guest could write ${before - pausedAt} bytes to nobody`)
    terminal.socket.resume()
    await eventually(() => assert.ok(writtenBytes > before))
  })
})

const unreachable = ['terminal', 'connect?port=vnc']
for (const kind of unreachable) {
  describe(`${kind} of a VM`, () => {
    it(`${kind} of a VM requires permission for the VM, and the console's page or a token`, async () => {
      const path = `${vms}/demo/${kind}`
      await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-other' } })
      await assert.rejects(connect({}, path), /401/)
      await assert.rejects(connect(bearer('nonsense'), path), /401/)
      await assert.rejects(connect(bearer(), path.replace('demo', 'none')), /404/)
      await assert.rejects(connect(bearer(service.devToken), path.replace('svc-default', 'svc-other')), /403/)
      await assert.rejects(connect(bearer(node.token), path), /403/)
      const browser = openBrowser(service, url)
      await logIn(browser, service.devToken)
      const cookie = browser.cookieHeader()
      await assert.rejects(connect({ cookie }, path), /403/)
      await assert.rejects(connect({ cookie, origin: 'https://evil.example' }, path), /403/)
      await assert.rejects(connect({ cookie, origin: 'null' }, path), /403/)
      const plain = await browser.call('GET', path)
      assert.equal(plain.status, 400)
      assert.equal(node.told.filter(({ type }) => type === 'DIAL').length, 0)
    })

    it(`${kind} of a VM ends when the browser logs out`, async () => {
      const browser = openBrowser(service, url)
      await logIn(browser, service.devToken)
      const opening = connect({ cookie: browser.cookieHeader(), origin: url }, `${vms}/demo/${kind}`)
      if (kind !== 'terminal') {
        const path = `/api/v1/agent/tunnels/${await dialled()}`
        const agentSide = await dialTunnel({ baseUrl: url, path, token: node.token, signal })
        agentSide.write('RFB 003.008\n')
        const screen = await opening
        await eventually(() => assert.equal(screen.output, 'RFB 003.008\n'))
      }
      const { closed } = await opening
      await browser.call('DELETE', '/console/session')
      assert.equal(await closed, 4401)
    })
  })
}

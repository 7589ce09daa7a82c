// Many light agents in one process: node agents.ts FILE, with `Given` as JSON. Each has a separate key and token and
// the link of a real agent (stream, heartbeat, reports), and speaks the real wire; its VMs run the moment they are
// desired. Their calls share connections, so that ten thousand nodes need fewer files than a process may have. Twice a
// second it prints how many streams are open. A line `cut` ends all of its connections, as a network does; `quit`, or
// the end of its input, ends it.
import { createPrivateKey, sign } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'
import fs from 'node:fs/promises'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { createAddresses } from '../../src/agent/link/addresses.ts'
import { createConnection } from '../../src/agent/link/connection.ts'
import { startHeartbeat } from '../../src/agent/link/heartbeat.ts'
import type { NodeIdentity } from '../../src/agent/link/identity.ts'
import { createNodeReporter } from '../../src/agent/link/node-reporter.ts'
import { Reports } from '../../src/agent/link/reports.ts'
import { ServerStream } from '../../src/agent/link/stream.ts'
import { type DesiredVm, issueAgentToken, reportVms } from '../../src/api/nodes/agent.ts'
import type { NodeReport } from '../../src/api/nodes/node-report.ts'
import { httpTransport } from '../../src/client/http.ts'
import { timestamp } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'

export interface LightNode {
  readonly name: string
  readonly uid: string
  /** PKCS #8 in base64. */
  readonly privateKey: string
  readonly report: NodeReport
}

export interface Given {
  readonly apiUrl: string
  readonly nodes: readonly LightNode[]
}

export interface Said {
  readonly open: number
  /** Streams that were opened so far. */
  readonly opened: number
  readonly helloBytes: number
  readonly reports: number
}

const callSockets = 256
const firstHeartbeatSeconds = 10
/** A token is renewed well before its hour ends. */
const renewMs = 50 * 60_000

const { apiUrl, nodes } = JSON.parse(await fs.readFile(process.argv[2] ?? '', 'utf8')) as Given
const calls = httpTransport({ maxSockets: callSockets })
const totals = { opened: 0, helloBytes: 0, reports: 0 }
const all: ServerStream[] = []

/** As many as a server lets wait. How all of them come back at once is measured later, when each has its token. */
const startedAtOnce = 100
const waiting = nodes.values()
const startNext = (): void => {
  const { value: node } = waiting.next()
  if (node) startNode(node)
}
for (let n = 0; n < startedAtOnce; n++) startNext()
setInterval(() => {
  const said: Said = { open: all.filter(({ isOpen }) => isOpen).length, ...totals }
  process.stdout.write(`${JSON.stringify(said)}\n`)
}, 500)
const sockets = new Set<Socket>()
subscribe('net.client.socket', (message) => {
  const { socket } = message as { readonly socket: Socket }
  sockets.add(socket)
  socket.once('close', () => sockets.delete(socket))
})
createInterface(process.stdin)
  .on('line', (line) => {
    if (line === 'quit') process.exit(0)
    for (const socket of sockets) socket.destroy()
  })
  .once('close', () => process.exit(0))

function identityOf({ name, uid, privateKey }: LightNode): NodeIdentity {
  const key = createPrivateKey({ key: Buffer.from(privateKey, 'base64'), format: 'der', type: 'pkcs8' })
  return {
    name,
    uid,
    credentials: undefined,
    join: async () => undefined,
    renewKey: async () => undefined,
    remember: async () => undefined,
    async issueToken(client, signal) {
      const at = timestamp(new Date())
      const signature = sign(null, Buffer.from(`svc3-agent\n${name}\n${at}`), key).toString('base64')
      const { token } = await client.call(issueAgentToken, { body: { name, at, signature }, signal })
      return { token, renewAtMs: performance.now() + renewMs }
    },
  }
}

function startNode(node: LightNode): void {
  const log = silentLog
  let isFirst = true
  const connection = createConnection({
    addresses: createAddresses([apiUrl], node.name),
    identity: identityOf(node),
    version: node.report.version,
    transport: calls,
    log,
  })
  const reporter = createNodeReporter(connection)
  const reports = new Reports({
    send: async (vms, signal) => {
      totals.reports += vms.length
      return (await connection.call(reportVms, { body: { vms: [...vms] } }, signal)).unknown
    },
    unknown: () => undefined,
    log,
  })
  const reportSelf = async (signal: AbortSignal): Promise<void> => void (await reporter.report(node.report, signal))
  const setDesired = ({ uid, namespace, name, generation, power }: DesiredVm): void =>
    reports.send({ uid, namespace, name, generation, power: power === 'deleted' ? 'removed' : power })

  const stream = new ServerStream({
    connection,
    prepare: async (signal) => {
      reporter.forget()
      await reportSelf(signal)
    },
    received(message) {
      if (message.type === 'VM') setDesired(message.vm)
      if (message.type !== 'HELLO') return
      totals.opened++
      if (isFirst) startNext()
      isFirst = false
      for (const vm of message.vms) setDesired(vm)
      heartbeat.every(message.heartbeatSeconds)
      reports.repeat()
    },
    refused: (error) => process.stderr.write(`${node.name}: ${error.message}\n`),
    log,
  })
  const heartbeat = startHeartbeat({
    firstSeconds: firstHeartbeatSeconds,
    check: () => stream.check(heartbeat.everyMs),
    beat: async (signal) => {
      if (stream.isOpen) await reportSelf(signal)
    },
    failed: () => undefined,
  })
  all.push(stream)
}

// Creates over HTTP through one server on etcd, of three members as in production and of one: 32 clients on connections
// that stay open, against a bare client that has the leader make as much durable, all on one connection: each of its 32
// writers creates a record and then its event. Short rounds of both alternate, and medians count. `node bench/creates.ts`
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { program, startDev } from '../test/support/processes/dev-server.ts'
import { startShared, tokenFor } from '../test/support/processes/shared-servers.ts'
import { openBare, round, writers } from './etcd.ts'
import { type BenchRow, median, printRows } from './row.ts'

const rounds = 21
/** Rounds that do not count: a service runs for months, and Node compiles and compiles again in its first half minute. */
const warmUp = 100
const where = '/api/v1/namespaces/svc-default/secrets/registrycredentials/add'

interface Client {
  post(body: string): Promise<void>
  close(): void
}

/** As little as a client can be: what it costs is not the server's. */
async function connect(apiUrl: string, token: string): Promise<Client> {
  const { hostname, port, host } = new URL(apiUrl)
  const socket = net.connect(Number(port), hostname)
  socket.setNoDelay(true)
  await once(socket, 'connect')
  let text = ''
  let answered: (status: string) => void = () => undefined
  socket.setEncoding('latin1').on('data', (piece: string) => {
    text += piece
    const end = text.indexOf('\r\n\r\n')
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1])
    if (end < 0 || text.length < end + 4 + length) return
    const [, status = ''] = text.split(' ', 2)
    text = ''
    answered(status)
  })
  const head = `POST ${where} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\n`
  return {
    async post(body) {
      const answer = new Promise<string>((resolve) => {
        answered = resolve
      })
      socket.write(`${head}content-length: ${body.length}\r\n\r\n${body}`)
      const status = await answer
      if (status !== '201') throw new Error(`a create was refused: ${status}`)
    },
    close: () => socket.destroy(),
  }
}

async function measure(members: number): Promise<BenchRow> {
  await using shared = await startShared({ isDurable: true, size: members })
  const folder = await shared.folder()
  const settings = { logLevel: 'warn', limits: { requestsPerMinute: 1_000_000_000 } }
  await fs.writeFile(path.join(folder, 'config.json'), JSON.stringify(settings))
  await using server = await startDev(folder, {
    command: [program, 'server'],
    args: ['--plain-http', '--store', shared.storeAddress],
    env: { SVC3_MASTER_KEY: shared.masterKey },
  })
  const token = await tokenFor(shared)
  const clients = await Promise.all(Array.from({ length: writers }, () => connect(server.apiUrl, token)))
  const { url } = await shared.etcd.leader()
  const bare = await openBare(url)
  const rates = { ours: [] as number[], reference: [] as number[], ratio: [] as number[], bareRatio: [] as number[] }
  const password = 'x'.repeat(700)
  let number = 0
  const create = (writer: number): Promise<void> => {
    const body = { server: `https://r${++number}.example.com`, username: 'robot', password }
    return (clients[writer] as Client).post(JSON.stringify(body))
  }
  for (let i = 0; i < warmUp; i++) await round(create)
  for (let i = -2; i < rounds; i++) {
    const reference = await round(async () => {
      await bare.put()
      await bare.put()
    })
    const ours = await round(create)
    const alone = await round(bare.put)
    if (i < 0) continue
    rates.bareRatio.push(ours / alone)
    rates.ours.push(ours)
    rates.reference.push(reference)
    rates.ratio.push(ours / reference)
  }
  bare.close()
  for (const client of clients) client.close()
  // What it would be without the record of who did it.
  console.log(`against a bare client that writes no events: ${median(rates.bareRatio).toFixed(2)} (${members} members)`)
  const etcd = members === 1 ? 'one member' : `${members} members`
  return {
    name: `creates over HTTP through one server on etcd of ${etcd}, ${writers} clients, against a bare client of it`,
    ours: median(rates.ours),
    reference: median(rates.reference),
    unit: 'writes/s',
    ratio: median(rates.ratio),
    target: 0.7,
    better: 'higher',
  }
}

export const createsBench = async (): Promise<BenchRow[]> => [await measure(3), await measure(1)]

if (import.meta.main) printRows(await createsBench())

// Creates on etcd by 32 writers: at our store against a bare client of the same etcd that sends the same transactions, and
// over HTTP through a server, against a bare client that makes as much durable: a record, and then its event.
import { once } from 'node:events'
import fs from 'node:fs/promises'
import http from 'node:http'
import http2 from 'node:http2'
import path from 'node:path'
import { openEtcd } from '../src/store/etcd/engine.ts'
import { encodeCreate, methods } from '../src/store/etcd/protocol.ts'
import { program, startDev } from '../test/support/processes/dev-server.ts'
import { startEtcd } from '../test/support/processes/etcd.ts'
import { startShared, tokenFor } from '../test/support/processes/shared-servers.ts'
import { inTurns, sized, writesPerSecond } from './measure.ts'
import { type BenchRow, compared } from './row.ts'

const writers = 32
const pace = { writers, durationMs: sized(250, 20) }
/** Node compiles and compiles again in its first seconds, and in the first half minute of a server. */
const turns = (warmUp: number) => ({ rounds: sized(21, 1), warmUp: sized(warmUp, 0) })
const value = { username: 'robot', sealed: 'x'.repeat(950), updatedBy: 'admin@example.com' }

async function openBare(url: string) {
  const session = http2.connect(url)
  await once(session, 'connect')
  const headers = { ':method': 'POST', ':path': methods.txn, 'content-type': 'application/grpc', te: 'trailers' }
  const text = Buffer.from(JSON.stringify(value))
  let number = 0
  return {
    async create(): Promise<void> {
      const body = encodeCreate(Buffer.from(`/bare/${++number}`), text)
      const frame = Buffer.alloc(5 + body.length)
      frame.writeUInt32BE(body.length, 1)
      body.copy(frame, 5)
      const stream = session.request(headers)
      stream.resume().end(frame)
      await once(stream, 'close')
    },
    [Symbol.dispose]: () => session.destroy(),
  }
}

async function atTheStore(): Promise<BenchRow> {
  await using etcd = await startEtcd()
  const [url = ''] = etcd.urls
  const store = await openEtcd({ endpoints: [{ url }], prefix: 'bench', notice: () => undefined })
  using bare = await openBare(url)
  let number = 0
  const figures = await inTurns(
    turns(40),
    () => writesPerSecond(pace, () => store.create(`/ours/${++number}`, value)),
    () => writesPerSecond(pace, bare.create),
  )
  await store.close()
  const what = `Creates of 1 KB at our store on etcd, ${writers} writers`
  return compared({ what, reference: 'a bare client of the same etcd', unit: '/s' }, ...figures)
}

async function overHttp(): Promise<BenchRow> {
  await using shared = await startShared({ isDurable: true, size: 3 })
  const folder = await shared.folder()
  const settings = { logLevel: 'warn', limits: { requestsPerMinute: 1_000_000_000 } }
  await fs.writeFile(path.join(folder, 'config.json'), JSON.stringify(settings))
  await using server = await startDev(folder, {
    command: [program, 'server'],
    args: ['--plain-http', '--store', shared.storeAddress],
    env: { SVC3_MASTER_KEY: shared.masterKey },
  })
  const headers = { authorization: `Bearer ${await tokenFor(shared)}`, 'content-type': 'application/json' }
  const url = `${server.apiUrl}/api/v1/namespaces/svc-default/secrets/registrycredentials/add`
  const agent = new http.Agent({ keepAlive: true, maxSockets: writers })
  const password = 'x'.repeat(700)
  let number = 0
  const create = async (): Promise<void> => {
    const request = http.request(url, { method: 'POST', headers, agent })
    request.end(JSON.stringify({ server: `https://r${++number}.example.com`, username: 'robot', password }))
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage]
    answer.resume()
    await once(answer, 'end')
    if (answer.statusCode !== 201) throw new Error(`a create was refused: ${answer.statusCode}`)
  }
  using bare = await openBare((await shared.etcd.leader()).url)
  const figures = await inTurns(
    turns(100),
    () => writesPerSecond(pace, create),
    () => writesPerSecond(pace, () => bare.create().then(bare.create)),
  )
  agent.destroy()
  const what = `Creates over HTTP through one server on etcd of three members, ${writers} clients`
  return compared({ what, reference: 'a bare client that writes a record, then its event', unit: '/s' }, ...figures)
}

export const bench = async (): Promise<BenchRow[]> => [await atTheStore(), await overHttp()]

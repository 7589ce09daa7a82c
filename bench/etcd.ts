// Creates on etcd: 32 writers through our store, against a bare client that sends the same transaction to the same member,
// looks at no answer and watches nothing. Short rounds of both alternate, and medians count. `node bench/etcd.ts`
import { once } from 'node:events'
import http2 from 'node:http2'
import { openEtcd } from '../src/store/etcd/engine.ts'
import { encodeCreate, methods } from '../src/store/etcd/protocol.ts'
import { startEtcd } from '../test/support/processes/etcd.ts'
import { type BenchRow, median, printRows } from './row.ts'

export const writers = 32
const rounds = 21
const roundMs = 250
/** Rounds of each that do not count: Node compiles and compiles again in the first seconds. */
const warmUp = 40
const value = { username: 'robot', sealed: 'x'.repeat(950), updatedBy: 'admin@example.com' }

/** Writes by so many writers for a while; returns the rate. */
export async function round(write: (writer: number) => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  let writes = 0
  const writer = async (_: unknown, number: number): Promise<void> => {
    for (; performance.now() - startMs < roundMs; writes++) await write(number)
  }
  await Promise.all(Array.from({ length: writers }, writer))
  return (writes * 1_000) / (performance.now() - startMs)
}

export async function openBare(url: string) {
  const session = http2.connect(url)
  await once(session, 'connect')
  const headers = {
    ':method': 'POST',
    ':path': methods.txn,
    'content-type': 'application/grpc',
    te: 'trailers',
  }
  const text = Buffer.from(JSON.stringify(value))
  let number = 0
  return {
    put: () =>
      new Promise<void>((resolve, reject) => {
        const body = encodeCreate(Buffer.from(`/bare/${++number}`), text)
        const frame = Buffer.alloc(5 + body.length)
        frame.writeUInt32BE(body.length, 1)
        body.copy(frame, 5)
        const stream = session.request(headers)
        stream.on('data', () => undefined)
        stream.on('error', reject)
        stream.on('close', resolve)
        stream.end(frame)
      }),
    close: () => session.destroy(),
  }
}

export async function etcdBench(): Promise<BenchRow[]> {
  await using etcd = await startEtcd()
  const [url = ''] = etcd.urls
  const store = await openEtcd({ endpoints: [{ url }], prefix: 'bench', notice: () => undefined })
  const bare = await openBare(url)
  const rates = { ours: [] as number[], reference: [] as number[], ratio: [] as number[] }
  let number = 0
  for (let i = -warmUp; i < rounds; i++) {
    const reference = await round(bare.put)
    const ours = await round(() => store.create(`/ours/${++number}`, value))
    if (i < 0) continue
    rates.ours.push(ours)
    rates.reference.push(reference)
    rates.ratio.push(ours / reference)
  }
  bare.close()
  await store.close()
  return [
    {
      name: `creates of 1 KB on etcd, ${writers} writers, against a bare client`,
      ours: median(rates.ours),
      reference: median(rates.reference),
      unit: 'writes/s',
      ratio: median(rates.ratio),
      target: 0.7,
      better: 'higher',
    },
  ]
}

if (import.meta.main) printRows(await etcdBench())

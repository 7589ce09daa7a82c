// The API against a bare Fastify server that returns the same prepared bytes, both in processes of their own and asked
// in turns by the same client: how much of the machine's request rate is left after tokens, routing and all that.
import { fork } from 'node:child_process'
import autocannon from 'autocannon'
import { type BenchRow, median, printRows } from './row.ts'

interface Running {
  readonly url: string
  readonly token: string
  stop(): void
}

function start(kind: 'ours' | 'bare'): Promise<Running> {
  const child = fork(new URL('./http-server.ts', import.meta.url), [kind], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  return new Promise((resolve) => {
    child.once('message', (message) =>
      resolve({ ...(message as { url: string; token: string }), stop: () => child.kill() }),
    )
  })
}

async function rate({ url, token }: Running, path: string): Promise<number> {
  const result = await autocannon({
    url: url + path,
    connections: 16,
    duration: 3,
    headers: { authorization: `Bearer ${token}` },
  })
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${path}: ${result.non2xx} refused, ${result.errors} failed`)
  return result.requests.average
}

export async function httpBench(): Promise<BenchRow[]> {
  const [ours, bare] = await Promise.all([start('ours'), start('bare')])
  const paths = [
    { name: 'GET one object', path: '/api/v1/namespaces/svc-default', target: 0.5 },
    { name: 'LIST 1,000 objects', path: '/api/v1/namespaces/svc-default/secrets/registrycredentials', target: 0.3 },
  ]
  const rows: BenchRow[] = []
  try {
    for (const { name, path, target } of paths) {
      const rates = { ours: [] as number[], bare: [] as number[] }
      for (let round = 0; round < 3; round++) {
        rates.bare.push(await rate(bare, path))
        rates.ours.push(await rate(ours, path))
      }
      const [mine, reference] = [median(rates.ours), median(rates.bare)]
      rows.push({
        name: `${name} (reference: bare Fastify, prepared bytes)`,
        ours: mine,
        reference,
        unit: 'requests/s',
        ratio: mine / reference,
        target,
        better: 'higher',
      })
    }
  } finally {
    ours.stop()
    bare.stop()
  }
  return rows
}

if (import.meta.main) printRows(await httpBench())

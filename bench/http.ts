// The API against a bare Fastify server that returns the same prepared bytes, both in processes of their own: how much of
// the machine's request rate is left after tokens, routing and all that.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import autocannon from 'autocannon'
import { inTurns, sized } from './measure.ts'
import { type BenchRow, compared } from './row.ts'

const paths = [
  { what: '`GET` of one object, token check included', path: '/api/v1/namespaces/svc-default', atLeast: 0.5 },
  {
    what: '`LIST` of 1,000 objects',
    path: '/api/v1/namespaces/svc-default/secrets/registrycredentials',
    atLeast: 0.3,
  },
]

interface Running extends Disposable {
  readonly url: string
  readonly token: string
}

async function start(kind: 'ours' | 'bare'): Promise<Running> {
  const child = fork(new URL('./http-server.ts', import.meta.url), [kind, String(sized(1_000, 10))])
  const [message] = await once(child, 'message')
  return { ...message, [Symbol.dispose]: () => child.kill() }
}

async function rate({ url, token }: Running, path: string): Promise<number> {
  const result = await autocannon({
    url: url + path,
    connections: 16,
    duration: sized(3, 0.3),
    ...sized({}, { sampleInt: 100 }),
    headers: { authorization: `Bearer ${token}` },
  })
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${path}: ${result.non2xx} refused, ${result.errors} failed`)
  return result.requests.average
}

export async function bench(): Promise<BenchRow[]> {
  using ours = await start('ours')
  using bare = await start('bare')
  const rows: BenchRow[] = []
  for (const { path, ...about } of paths) {
    const figures = await inTurns(
      { rounds: sized(3, 1) },
      () => rate(ours, path),
      () => rate(bare, path),
    )
    rows.push(compared({ ...about, reference: 'bare Fastify that returns the same bytes', unit: '/s' }, ...figures))
  }
  return rows
}

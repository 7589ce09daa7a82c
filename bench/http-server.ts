// One of the two servers that bench/http.ts compares: `node bench/http-server.ts ours|bare COUNT`.
import fastify from 'fastify'
import { startService } from '../test/support/rigs/service.ts'

const [, , kind, count] = process.argv
const service = await startService({ settings: { limits: { requestsPerMinute: 1_000_000_000 } }, logLevel: 'info' })
const one = '/api/v1/namespaces/svc-default'
const list = `${one}/secrets/registrycredentials`
for (let index = 0; index < Number(count); index++) {
  const body = { server: `https://registry-${index}.example.com`, username: `robot-${index}`, password: 'x' }
  await service.call('POST', `${list}/add`, { body })
}

async function bareServer(): Promise<string> {
  const app = fastify()
  for (const path of [one, list]) {
    const bytes = Buffer.from((await service.call('GET', path)).text)
    app.get(path, (_request, reply) => reply.type('application/json; charset=utf-8').send(bytes))
  }
  return app.listen({ host: '127.0.0.1', port: 0 })
}

const url = kind === 'bare' ? await bareServer() : await service.listen()
process.send?.({ url, token: service.adminToken })

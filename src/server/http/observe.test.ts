// The log of a flood of refused requests, on both ports.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { describe, it } from 'node:test'
import { startKubernetes } from '../../../test/support/rigs/kubernetes.ts'
import { startService } from '../../../test/support/rigs/service.ts'

describe('a flood of refused requests', () => {
  it('a flood of refused requests is a few lines of the log', async () => {
    await using service = await startService({ logLevel: 'info', settings: { limits: { anonymousPerMinute: 6 } } })
    await using kube = startKubernetes(service)
    const from = service.logLines.length
    for (let count = 0; count < 200; count++) {
      await service.call('GET', `/nothing-${count}`, { token: null })
      await service.call('GET', '/api/v1/namespaces', { token: `guess${count}` })
      await kube.call('GET', '/apis', { token: null })
    }
    const port = Number(new URL(await service.listen()).port)
    for (let count = 0; count < 20; count++) {
      const socket = net.connect(port, '127.0.0.1', () => socket.write('hello\r\n\r\n'))
      socket.resume()
      await once(socket, 'close')
    }
    const lines = service.logLines.slice(from)
    assert.ok(lines.some((line) => line.includes('a request could not be read')))
    // Six kinds, each of which begins twice if the test takes longer than ten seconds.
    assert.ok(lines.length <= 14, lines.join(''))
  })

  it('a flood of requests that fail has each fault with its stack', async () => {
    await using service = await startService()
    const faults = [new Error('first'), new TypeError('second')]
    const path = '/api/v1/namespaces/svc-default/secrets/registrycredentials'
    Object.defineProperty(service.services.collections.registryCredentials, 'at', {
      value: () => {
        faults.push(faults.shift() as Error)
        throw faults[1]
      },
    })
    const body = { server: 'https://registry.example.com', username: 'u', password: 'p' }
    for (let count = 0; count < 20; count++)
      assert.equal((await service.call('POST', `${path}/add`, { body })).status, 500)
    const errors = service.logLines.filter((line) => line.includes('"level":"error"')).map((line) => JSON.parse(line))
    assert.deepEqual(errors.map(({ problem }) => problem).toSorted(), ['first', 'second'])
    for (const { stack } of errors) assert.match(stack, /observe\.test\.ts/)
  })
})

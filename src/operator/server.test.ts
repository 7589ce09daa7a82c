// How svc3 dev and svc3 server read their options.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type FakeHostOptions, given, run } from '../../test/support/rigs/cli-host.ts'
import { usersInMemory } from '../../test/support/rigs/users.ts'
import { devOptions } from './dev.ts'
import type { DevOptions } from './dev-nodes.ts'
import { nextLines, serverOptions } from './server.ts'

async function dev(line: string, more: FakeHostOptions = {}): Promise<DevOptions> {
  const { context, options } = await given(line.split(' '), more)
  return devOptions(context.host, options as unknown as Parameters<typeof devOptions>[1])
}

async function server(line: string, more: FakeHostOptions = {}): Promise<ReturnType<typeof serverOptions>> {
  const { context, options } = await given(line.split(' '), more)
  return serverOptions(context.host, options as unknown as Parameters<typeof serverOptions>[1])
}

describe('options', () => {
  it('svc3 dev validates its options', async () => {
    assert.deepEqual(await dev('dev', { checkout: '/co' }), {
      listen: { host: '127.0.0.1', port: 8080 },
      dataDir: '/co/.svc3',
      driver: 'qemu',
      nodes: { arm64: 1, amd64: 1 },
      simulation: {},
      imageQuotaBytes: undefined,
      images: undefined,
    })
    const line =
      'dev --listen [::1]:0 --data here --driver simulated --nodes arm64=20 --image-quota 2G --images oci+http://127.0.0.1:5000/x'
    assert.deepEqual(await dev(line), {
      listen: { host: '::1', port: 0 },
      dataDir: '/nowhere/else/here',
      driver: 'simulated',
      nodes: { arm64: 20, amd64: 0 },
      simulation: {},
      imageQuotaBytes: 2 ** 31,
      images: 'oci+http://127.0.0.1:5000/x',
    })
  })

  it('svc3 dev refuses --simulate without --driver simulated', async () => {
    await assert.rejects(() => dev('dev --simulate boot=2s'), /--simulate needs --driver simulated/)
  })

  it('svc3 server validates its options, also after global options', async () => {
    const plain = {
      listen: { host: '0.0.0.0', port: 8443 },
      dataDir: '/var/lib/svc3',
      plainHttp: false,
      publicUrl: undefined,
      storeAddress: undefined,
      internalUrl: undefined,
      images: undefined,
      kubernetes: undefined,
    }
    assert.deepEqual(await server('server'), plain)
    assert.deepEqual(await server('server --quiet', { env: { SVC3_DATA: '/d' } }), { ...plain, dataDir: '/d' })
    const line = 'server --quiet --listen [::1]:0 --plain-http --data here --url https://svc3.example.com/'
    const expected = {
      listen: { host: '::1', port: 0 },
      dataDir: '/nowhere/else/here',
      plainHttp: true,
      publicUrl: 'https://svc3.example.com',
      storeAddress: undefined,
      internalUrl: undefined,
      images: undefined,
      kubernetes: undefined,
    }
    assert.deepEqual(await server(line), expected)
    const storeAddress = 'etcd://a:1,b:2/here?ca=/ca.pem'
    assert.deepEqual(await server(`server --store ${storeAddress}`), { ...plain, storeAddress })
    assert.deepEqual(await server('server', { env: { SVC3_STORE: storeAddress } }), { ...plain, storeAddress })
    const images = 'oci://registry.example.com/svc3/images'
    assert.deepEqual(await server(`server --images ${images}/`), { ...plain, images })
    assert.deepEqual(await server('server', { env: { SVC3_IMAGES: images } }), { ...plain, images })
    const kubernetes = { host: '0.0.0.0', port: 6443, url: undefined }
    assert.deepEqual(await server('server --kubernetes-listen 0.0.0.0:6443'), { ...plain, kubernetes })
    await assert.rejects(() => server('server --kubernetes-url https://k.example.com'), /requires --kubernetes-listen/)
    const publicUrl = 'http://svc3.example.com'
    assert.deepEqual(await server(line.replace('https:', 'http:')), { ...expected, publicUrl })
  })

  it('svc3 server refuses a registry address with a password, and does not print it', async () => {
    const refused = await run(['server', '--images', 'oci://ci:canary@registry.example.com/x'])
    assert.equal(refused.exitCode, 2)
    assert.ok(!refused.stderr.includes('canary'), refused.stderr)
  })
})

it('svc3 server says how to create the first user only if there is no user', async () => {
  const folder = '/var/lib/svc3'
  const { users: localUsers } = await usersInMemory()
  const said = () => nextLines({ localUsers, apiUrl: 'https://a.example' }, folder, 'bin/svc3')
  const rest = `API reference: https://a.example/api/v1/swagger\nPress Ctrl-C to stop. Data is kept in ${folder}\n`
  const create = `Create the first user on this machine:\n  bin/svc3 server users add EMAIL --admin --data ${folder}\n`
  assert.equal(said(), `\n${create}${rest}`)
  await localUsers.add('a@example.com', { admin: true, password: 'long enough for anybody' })
  assert.equal(said(), `\n${rest}`)
})

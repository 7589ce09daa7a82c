// The files and headers of the console.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { afterEach, describe, it } from 'node:test'
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'

let service: TestService
afterEach(() => service[Symbol.asyncDispose]())

const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
const get = (url: string, headers: Record<string, string> = html) => service.call('GET', url, { token: null, headers })

async function build(): Promise<void> {
  const folder = service.services.consoleFolder
  await fs.mkdir(path.join(folder, 'assets'), { recursive: true })
  const page = '<!doctype html><head><base href="./"><script type="module" src="./assets/main-1a2b.js"></script></head>'
  const script = 'export const answer = 42\n'.repeat(100)
  await fs.writeFile(path.join(folder, 'index.html'), page)
  await fs.writeFile(path.join(folder, 'assets/main-1a2b.js'), script)
  await fs.writeFile(path.join(folder, 'assets/main-1a2b.js.br'), brotliCompressSync(script))
  await fs.writeFile(path.join(folder, 'favicon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>')
  await fs.writeFile(path.join(folder, '.secret.txt'), 'no')
}

describe('the console', () => {
  it('the console is one page for all of its paths, not cached, with headers against other sites', async () => {
    service = await startService()
    await build()
    for (const url of [
      '/console/',
      '/console/vms',
      '/console/vms/svc-default/demo/screen',
      '/console/images?q=a',
      '/console/isos/ventura.iso',
      '/console/nodes/a/b.example',
    ]) {
      const { status, text, headers } = await get(url)
      assert.equal(status, 200)
      assert.match(text, /<base href="\/console\/">/)
      assert.match(String(headers['content-type']), /^text\/html/)
      assert.equal(headers['cache-control'], 'no-store')
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.equal(headers['referrer-policy'], 'no-referrer')
      const policy = String(headers['content-security-policy'])
      assert.match(policy, /default-src 'none'.*script-src 'self';.*frame-ancestors 'none'/)
      assert.doesNotMatch(policy, /https?:|\*|unsafe-/)
    }
    assert.deepEqual([(await get('/console')).status, (await get('/console')).headers.location], [308, '/console/'])
  })

  it('the console serves hashed files with unlimited caching, compressed if the browser accepts it', async () => {
    service = await startService()
    await build()
    const plain = await get('/console/assets/main-1a2b.js', { 'accept-encoding': 'gzip, br;q=0' })
    assert.equal(plain.headers['content-encoding'], undefined)
    assert.match(String(plain.headers['content-type']), /^text\/javascript/)
    assert.match(String(plain.headers['cache-control']), /immutable/)
    assert.equal(plain.headers.vary, 'accept-encoding')
    const packed = await service.app.inject({
      url: '/console/assets/main-1a2b.js',
      headers: { 'accept-encoding': 'gzip, deflate, br' },
    })
    assert.equal(packed.headers['content-encoding'], 'br')
    assert.equal(brotliDecompressSync(packed.rawPayload).toString(), plain.text)
    assert.ok(packed.rawPayload.length < plain.text.length / 4)
    const icon = await get('/console/favicon.svg')
    assert.deepEqual([icon.status, icon.headers['cache-control']], [200, 'no-cache'])
  })

  it('the console serves no other files', async () => {
    service = await startService()
    await build()
    await fs.writeFile(path.join(service.services.consoleFolder, '..', 'outside.txt'), 'no')
    for (const name of [
      '.secret.txt',
      '%2e%2e/outside.txt',
      '..%2foutside.txt',
      'assets/..%2f.secret.txt',
      'x.js',
      'a/b/c.js',
    ]) {
      const { status, text } = await get(`/console/${name}`, { accept: '*/*' })
      assert.equal(status, 404, name)
      assert.doesNotMatch(text, /^no$/m)
    }
    assert.equal((await get('/console/assets/main-0000.js')).status, 404)
    assert.equal((await service.call('POST', '/console/vms')).status, 404)
  })

  it('a console that is not built explains how to build it', async () => {
    service = await startService()
    const { status, text, headers } = await get('/console/vms')
    assert.equal(status, 503)
    assert.match(text, /npm run build/)
    assert.match(String(headers['content-security-policy']), /default-src 'none'/)
    // No restart is needed.
    await build()
    assert.equal((await get('/console/vms')).status, 200)
  })

  it('browsers are redirected from / to the console, programs are not', async () => {
    service = await startService()
    const browser = await get('/')
    assert.deepEqual([browser.status, browser.headers.location], [302, '/console/'])
    const program = await get('/', { accept: '*/*' })
    assert.deepEqual([program.status, program.body.reason], [404, 'NotFound'])
  })

  it('the console works under a prefix, whether the proxy removes it or not', async () => {
    service = await startService({ settings: { console: { pathPrefix: '/tools/svc3' } } })
    await build()
    for (const prefix of ['', '/tools/svc3']) {
      assert.match((await get(`${prefix}/console/vms`)).text, /<base href="\/tools\/svc3\/console\/">/)
      assert.equal((await get(`${prefix}/console`)).headers.location, '/tools/svc3/console/')
      assert.equal((await service.call('GET', `${prefix}/api/v1/namespaces`)).status, 200)
    }
    assert.equal((await get('/tools/svc3x/console/')).status, 404)
  })

  it('the console can be disabled', async () => {
    service = await startService({ settings: { console: { enabled: false } } })
    for (const url of ['/console/', '/console/session', '/']) assert.equal((await get(url)).status, 404)
  })
})

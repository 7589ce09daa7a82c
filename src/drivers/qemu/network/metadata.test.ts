// The metadata script, run as QEMU runs it, with requests of a hostile guest.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { metadataCommand, removeMetadata, writeMetadata } from './metadata.ts'

describe('guest metadata', () => {
  let folder: string
  const binary = Buffer.from([0, 1, 2, 255, 10, 13, 0, 65])
  const value = 'ü "quoted" \\ $(touch /tmp/x) `id`\nline'
  before(async () => {
    folder = path.join(await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-metadata-')), "it's, a folder")
    await fs.mkdir(folder)
    await fs.writeFile(path.join(folder, 'outside'), 'secret of the host')
    await writeMetadata(folder, {
      uid: 'u',
      name: 'demo',
      metadata: { key: value, A: '1', a: '2', 'x.y_z-0': '', 'my key': 'spaced', orka_vm_name: 'mine' },
      facts: { orka_vm_name: 'demo', orka_cpu: '2' },
      userdata: binary.toString('base64'),
    })
  })
  after(() => fs.rm(path.dirname(folder), { recursive: true }))

  /** Sends the pieces on one connection and returns the response. */
  function ask(...pieces: readonly (string | Buffer)[]): Promise<Buffer> {
    const [program = '', ...args] = metadataCommand.split(' ')
    return new Promise((resolve, reject) => {
      const child = spawn(program, args, { cwd: folder, stdio: ['pipe', 'pipe', 'inherit'], timeout: 120_000 })
      const answer: Buffer[] = []
      child.stdout.on('data', (chunk: Buffer) => answer.push(chunk))
      child.stdin.on('error', () => undefined)
      child.on('error', reject)
      child.on('close', (_, signal) => (signal ? reject(new Error(signal)) : resolve(Buffer.concat(answer))))
      const send = ([piece, ...rest]: readonly (string | Buffer)[]): void => {
        if (piece === undefined) child.stdin.end()
        else child.stdin.write(piece, () => setTimeout(() => send(rest), rest.length > 0 ? 20 : 0))
      }
      send(pieces)
    })
  }
  async function get(target: string): Promise<{ status: number; body: Buffer }> {
    return parse(await ask(`GET ${target} HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n`))
  }
  function parse(answer: Buffer): { status: number; body: Buffer } {
    const end = answer.indexOf('\r\n\r\n')
    const head = answer.toString('latin1', 0, end)
    const body = answer.subarray(end + 4)
    assert.equal(Number(/^Content-Length: (\d+)\r?$/m.exec(head)?.[1]), body.length, 'the length is right')
    return { status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]), body }
  }
  const json = ({ body }: { body: Buffer }) => JSON.parse(body.toString('utf8'))

  it('guest metadata has values, keys and userdata', async () => {
    assert.deepEqual(json(await get('/metadata/key')), { value })
    assert.deepEqual(json(await get('/metadata/key?a=b')), { value })
    assert.deepEqual(json(await get('/metadata/A')), { value: '1' })
    assert.deepEqual(json(await get('/metadata/a')), { value: '2' })
    assert.deepEqual(json(await get('/metadata/x.y_z-0')), { value: '' })
    assert.deepEqual(json(await get('/metadata/my%20key')), { value: 'spaced' })
    assert.deepEqual(json(await get('/metadata/orka_vm_name')), { value: 'demo' }, 'facts cannot be overridden')
    const items = [
      { key: 'key', value },
      { key: 'A', value: '1' },
      { key: 'a', value: '2' },
      { key: 'x.y_z-0', value: '' },
      { key: 'my key', value: 'spaced' },
      { key: 'orka_vm_name', value: 'demo' },
      { key: 'orka_cpu', value: '2' },
    ]
    assert.deepEqual(json(await get('/metadata')), { items })
    assert.deepEqual(json(await get('/metadata/')), { items }, 'with a slash at its end, too')
    assert.deepEqual((await get('/userdata')).body, binary)
    assert.deepEqual(json(parse(await ask('GET /metadata/A HTTP/1.0\n\n'))), { value: '1' })
  })

  it('guest metadata accepts a request in small and slow pieces', async () => {
    const pieces = ['GET /meta', 'data/A HT', 'TP/1.1\r', '\nHost: x\r\n', '\r\n']
    assert.deepEqual(json(parse(await ask(...pieces))), { value: '1' })
  })

  it('guest metadata serves no other files, whatever the path', async () => {
    const targets = [
      '/', '//metadata/A', '/metadata/my key', '/metadata/nope', '/metadata/*', '/metadata/[A]', '/../outside',
      '/metadata/../../outside', '/metadata/%2e%2e/outside', '/outside', '/metadata/..', '/index', '/metadata/value-0',
      '/metadata/$(id)', '/metadata/`id`', '/metadata/;id', '-n', '(', '!', 'x', '/metadata/A\\', '/metadata/\u00e4',
    ] // biome-ignore format: a list to read
    for (const target of targets) assert.deepEqual([target, (await get(target)).status], [target, 404])
  })

  it('guest metadata refuses invalid requests, and limits what it reads', async () => {
    const head = 'GET /metadata/A HTTP/1.1\r\n'
    const bad: readonly (string | Buffer)[] = [
      '', '\n', '\r\n\r\n', 'POST /metadata/A HTTP/1.1\r\n\r\n', 'GET /metadata/A\r\n\r\n', 'GET /metadata/A HTTP/2\r\n\r\n',
      'GET\r\n\r\n', 'get /metadata/A HTTP/1.1\r\n\r\n', Buffer.alloc(100), Buffer.alloc(5_000, 0xff), '%s%n\n\n', '\\0\\n\n\n',
    ] // biome-ignore format: a list to read
    for (const request of bad) assert.equal(parse(await ask(request)).status, 400, JSON.stringify(request.toString()))
    assert.equal(parse(await ask(Buffer.alloc(4_000_000, 'x'))).status, 400, 'a line without end')
    assert.equal(parse(await ask(head + 'x'.repeat(4_000_000))).status, 200, 'headers without end')
    assert.equal(parse(await ask(`GET /${'x'.repeat(7_000)} HTTP/1.1\r\n\r\n`)).status, 404)
  })

  it('guest metadata serves eight connections at once, refuses the ninth, and recovers', async () => {
    const [program = '', ...args] = metadataCommand.split(' ')
    const idle = Array.from({ length: 8 }, () =>
      spawn(program, args, { cwd: folder, stdio: ['pipe', 'pipe', 'inherit'] }),
    )
    const slots = async () =>
      (await fs.readdir(path.join(folder, 'metadata'))).filter((name) => name.startsWith('slot-')).length
    while ((await slots()) < 8) await new Promise((resolve) => setTimeout(resolve, 5))
    assert.equal((await get('/metadata/A')).status, 503)
    const ended = idle.map((child) => new Promise((resolve) => child.on('close', resolve)))
    for (const child of idle) child.stdin.end()
    await Promise.all(ended)
    assert.equal(await slots(), 0)
    assert.equal((await get('/metadata/A')).status, 200)
  })

  it('guest metadata is readable only by its owner, and can be removed', async () => {
    const other = `${folder}-other`
    await fs.mkdir(other)
    await writeMetadata(other, { uid: 'u', name: 'demo', metadata: { key: 'secret' } })
    const inside = path.join(other, 'metadata')
    for (const name of await fs.readdir(inside)) assert.equal((await fs.stat(path.join(inside, name))).mode & 0o77, 0)
    assert.equal((await fs.stat(inside)).mode & 0o77, 0)
    await removeMetadata(other)
    await assert.rejects(fs.access(inside))
  })

  it('guest metadata refuses keys that it cannot serve', async () => {
    for (const key of ['', 'a\tb', 'a/b', '..\n', 'ä', 'x'.repeat(129)])
      await assert.rejects(
        writeMetadata(`${folder}-other`, { uid: 'u', name: 'demo', metadata: { [key]: '1' } }),
        /cannot be served/,
      )
  })
})

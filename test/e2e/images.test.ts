// Images and ISOs with real files, through the command line and a real server: every byte comes back, what was cut off
// goes on, and a server that is killed in the middle leaves nothing.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import fs from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { type DevServer, makeFolder, program, type Ran, startDev, svc3 } from '../support/dev-server.ts'
import { eventually } from '../support/eventually.ts'
import { type RemoteFolder, startRemote } from '../support/remote-folder.ts'

const execute = promisify(execFile)
const mebi = 2 ** 20
let data: string
let files: string
let server: DevServer
let remote: RemoteFolder

const start = (point?: string, listen?: string): Promise<DevServer> =>
  startDev(data, {
    ...(listen !== undefined && { listen }),
    args: ['--driver', 'simulated', '--nodes', 'amd64=1'],
    env: point === undefined ? {} : { SVC3_TEST: '1', SVC3_FAILPOINT: point },
  })
const run = (...words: string[]): Promise<Ran> => svc3(words, { cwd: files, env: access() })
const access = () => ({ SVC3_API_URL: server.apiUrl, SVC3_TOKEN: server.token })
const inFiles = (name: string): string => path.join(files, name)

async function hashOf(name: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of createReadStream(inFiles(name))) hash.update(piece)
  return hash.digest('hex')
}

before(async () => {
  data = await makeFolder()
  files = await makeFolder()
  // A disk as they are: data, a hole, data that compresses well, and an end that is no whole block.
  const disk = await fs.open(inFiles('disk.img'), 'w')
  await disk.write(randomBytes(9 * mebi), 0, undefined, 0)
  await disk.write(Buffer.alloc(5 * mebi, 'the same again and again '), 0, undefined, 40 * mebi)
  await disk.write(randomBytes(1_536), 0, undefined, 48 * mebi)
  await disk.close()
  remote = await startRemote()
  const remotes = [{ name: 'lab', url: remote.url, allowInsecure: true }]
  await fs.writeFile(path.join(data, 'config.json'), JSON.stringify({ remotes }))
  server = await start()
})
after(async () => {
  await server.kill('SIGTERM')
  await remote[Symbol.asyncDispose]()
  for (const folder of [data, files]) await fs.rm(folder, { recursive: true, force: true })
})

describe('an image', { timeout: 40_000 }, () => {
  it('comes back byte for byte, under its own name and in its own file', async () => {
    const uploaded = await run('image', 'upload', 'disk.img', '-d', 'A disk')
    assert.deepEqual([uploaded.code, uploaded.stdout], [0, 'Image disk.img is uploaded.\n'], uploaded.stderr)
    const listed = await run('image', 'list', 'disk.img')
    assert.match(listed.stdout, /\ndisk\.img\tA disk\t48M\tamd64\tReady\n/)
    const saved = await run('image', 'download', 'disk.img', '-f', 'back.img')
    assert.equal(saved.code, 0, saved.stderr)
    assert.equal(await hashOf('back.img'), await hashOf('disk.img'))
    // Where the disk is zero, the file has no blocks.
    const { blocks } = await fs.stat(inFiles('back.img'))
    assert.ok(blocks * 512 < 20 * mebi, `${blocks * 512} bytes`)
    assert.deepEqual((await fs.readdir(files)).sort(), ['back.img', 'disk.img'])

    const again = await run('image', 'download', 'disk.img', '-f', 'back.img')
    assert.deepEqual([again.code, again.stderr.includes('is there already')], [1, true])
    const taken = await run('image', 'upload', 'disk.img')
    assert.deepEqual([taken.code, taken.stderr.includes('exists already')], [6, true], taken.stderr)
  })

  it('goes on where a download was cut off, with the same content only', async () => {
    const { body } = await server.call('GET', '/api/v1/namespaces/svc-default/images/disk.img')
    const digest = String(body.checksum).replace('sha256:', '').slice(0, 12)
    // What is there is marked, so that one sees that it was not fetched again.
    const part = (await fs.readFile(inFiles('disk.img'))).subarray(0, 7 * mebi + 11)
    part.write('kept', 100)
    await fs.writeFile(inFiles(`part.img.${digest}.part`), part)
    await fs.writeFile(inFiles('part.img.000000000000.part'), 'of another content')
    assert.equal((await run('image', 'download', 'disk.img', '-f', 'part.img')).code, 0)
    const got = await fs.readFile(inFiles('part.img'))
    const whole = await fs.readFile(inFiles('disk.img'))
    assert.equal(got.toString('latin1', 100, 104), 'kept')
    whole.copy(got, 100, 100, 104)
    assert.ok(got.equals(whole))
    // One that is complete, or longer than the whole, is no trouble either.
    await fs.writeFile(inFiles(`full.img.${digest}.part`), whole)
    await fs.writeFile(inFiles(`long.img.${digest}.part`), Buffer.concat([whole, Buffer.from('more')]))
    for (const name of ['full.img', 'long.img']) {
      const saved = await run('image', 'download', 'disk.img', '-f', name)
      assert.equal(saved.code, 0, saved.stderr)
      assert.equal(await hashOf(name), await hashOf('disk.img'), name)
    }
  })

  it('of a compressed qcow2 file is the disk that is in it', async () => {
    await execute('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', '-c', inFiles('disk.img'), inFiles('disk.qcow2')])
    const uploaded = await run('image', 'upload', 'disk.qcow2', '--name', 'from-qcow2', '--type', 'arm64')
    assert.equal(uploaded.code, 0, uploaded.stderr)
    assert.equal((await run('image', 'download', 'from-qcow2')).code, 0)
    assert.equal(await hashOf('from-qcow2'), await hashOf('disk.img'))
    const [first, second] = JSON.parse((await run('image', 'list', 'disk.img', 'from-qcow2', '-o', 'json')).stdout)
    assert.deepEqual([first.type, second.type, first.size], ['amd64', 'arm64', second.size])
  })

  it('is copied, generated, described and deleted', async () => {
    assert.equal((await run('image', 'copy', 'disk.img', 'copy')).stdout, 'Image copy is a copy of disk.img.\n')
    assert.equal((await run('image', 'generate', 'empty', '1T')).stdout, 'Image empty is an empty disk of 1T.\n')
    assert.equal((await run('image', 'set-description', 'copy', 'For', '-o', 'json')).code, 0)
    assert.match(
      (await run('image', 'list', 'copy', '-o', 'wide')).stdout,
      /\ncopy\tFor\t48M\tamd64\tReady\t9\.0M\tdisk\.img\t/,
    )
    const deleted = await run('image', 'delete', 'copy', 'empty', 'none')
    assert.deepEqual(
      [deleted.code, deleted.stdout],
      [5, 'Successfully deleted image copy\nSuccessfully deleted image empty\n'],
    )
    for (const words of [['generate', 'x', '12'], ['copy', 'disk.img', '../x'], ['upload', 'disk.img', '--name', 'A']]) // biome-ignore format: rows
      assert.equal((await run('image', ...words)).code, 2, words.join(' '))
  })

  it('and an ISO is a file as it is', async () => {
    await fs.writeFile(inFiles('disc.iso'), randomBytes(1_000_001))
    assert.equal((await run('iso', 'upload', 'disc.iso')).stdout, 'ISO disc.iso is uploaded.\n')
    assert.equal((await run('iso', 'copy', 'disc.iso', 'other.iso')).code, 0)
    assert.equal((await run('iso', 'delete', 'disc.iso')).code, 0)
    assert.match((await run('iso', 'list')).stdout, /^NAME\t.*\nother\.iso\tCopied from disc\.iso\t977K\t/)
    assert.equal((await run('iso', 'download', 'other.iso')).code, 0)
    assert.equal(await hashOf('other.iso'), await hashOf('disc.iso'))
  })
})

describe('kill -9 of the server', { timeout: 150_000 }, () => {
  const left = async (folder: string): Promise<string[]> => (await fs.readdir(path.join(data, folder))).sort()
  /** Notes of uploads that are done stay for those who did not hear of it. */
  const nothingIsLeft = async (): Promise<void> => {
    const partial = (await left('partial')).filter((name) => !name.endsWith('.json'))
    assert.deepEqual([await left('uploads'), await left('content/unfinished'), partial], [[], [], []])
  }
  /** The same place again: whoever waits finds it there. */
  const restart = async (point?: string): Promise<void> => {
    const place = new URL(server.apiUrl).host
    await server.kill('SIGTERM')
    server = await start(point, place)
  }
  const whatever = (): Buffer => randomBytes(4 * mebi)

  it('in the middle of a body that nobody can go on with leaves nothing', async () => {
    const request = http.request(`${server.apiUrl}/api/v1/namespaces/svc-default/upload/image?name=half`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.token}`, 'content-length': 100 * mebi },
    })
    request.on('error', () => undefined)
    request.write(randomBytes(10 * mebi))
    await eventually(async () => assert.equal((await left('uploads')).length, 1))
    await server.kill('SIGKILL')
    server = await start()
    await nothingIsLeft()
    assert.equal((await server.call('GET', '/api/v1/namespaces/svc-default/images/half')).status, 404)
  })

  for (const point of ['upload.half', 'upload.received', 'upload.recorded', 'images.put.rename', 'upload.stored'])
    it(`at ${point} is a pause for the upload that was under way`, async () => {
      // Content that is not in the store yet.
      await fs.writeFile(inFiles('new.img'), whatever())
      await restart(point)
      const upload = run('image', 'upload', 'new.img', '--name', 'again')
      assert.equal((await server.ended).signal, 'SIGKILL')
      await restart()
      const { code, stderr } = await upload
      assert.equal(code, 0, stderr)
      await run('image', 'download', 'again', '--force')
      assert.equal(await hashOf('again'), await hashOf('new.img'))
      await nothingIsLeft()
      await run('image', 'delete', 'again')
    })

  it('and of the command: the same one again goes on where it was', async () => {
    await fs.writeFile(inFiles('new.img'), whatever())
    await restart('upload.half')
    const first = spawn(program, ['image', 'upload', 'new.img', '--name', 'twice'], {
      cwd: files,
      env: { ...process.env, ...access() },
    })
    const ended = new Promise<number | null>((resolve) => first.on('exit', resolve))
    let said = ''
    first.stderr.on('data', (piece: Buffer) => { said += piece.toString() }) // biome-ignore format: short
    await server.ended
    first.kill('SIGINT')
    assert.equal(await ended, 130, said)
    assert.match(said, /the same command goes on from here/)
    await restart()
    const { code, stderr } = await run('image', 'upload', 'new.img', '--name', 'twice')
    assert.deepEqual([code, /going on after \d/.test(stderr)], [0, true], stderr)
    await run('image', 'download', 'twice', '--format', 'qcow2')
    await execute('qemu-img', ['convert', '-f', 'qcow2', '-O', 'raw', inFiles('twice.qcow2'), inFiles('twice.raw')])
    assert.equal(await hashOf('twice.raw'), await hashOf('new.img'))
    // What came as qcow2 and goes as qcow2 is the same disk.
    assert.equal((await run('image', 'upload', 'twice.qcow2', '--name', 'third')).code, 0)
    await run('image', 'download', 'third')
    assert.equal(await hashOf('third'), await hashOf('new.img'))
    await nothingIsLeft()
  })

  for (const point of ['pull.half', 'pull.stored'])
    it(`at ${point} is a pause for the pull that was under way`, async () => {
      const disk = whatever()
      remote.items.set('remote.img', { bytes: disk })
      remote.ranges.length = 0
      await restart(point)
      const listed = await run('remote-image', 'list')
      assert.equal(listed.stdout, 'NAME\tSIZE\tTYPE\nremote.img\t4M\tamd64\n', listed.stderr)
      const name = `pulled-${point}`
      const pull = run('remote-image', 'pull', 'remote.img', name, '--wait')
      assert.equal((await server.ended).signal, 'SIGKILL')
      await restart()
      const { code, stdout, stderr } = await pull
      assert.deepEqual([code, stdout], [0, `Image ${name} is pulled.\n`], stderr)
      await run('image', 'download', name)
      assert.equal(await hashOf(name), createHash('sha256').update(disk).digest('hex'))
      // Nothing is fetched twice.
      const [first, second = ''] = remote.ranges
      assert.equal(first, '')
      assert.equal(/^bytes=[1-9]\d+-$/.test(second), point === 'pull.half', remote.ranges.join())
      await nothingIsLeft()
    })
})

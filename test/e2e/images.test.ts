// Images and ISOs with real files, through the command line and a real server: every byte comes back, what was cut off
// goes on, and a server that is killed in the middle leaves nothing.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import fs from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { type DevServer, makeFolder, type Ran, startDev, svc3 } from '../support/dev-server.ts'
import { eventually } from '../support/eventually.ts'

const execute = promisify(execFile)
const mebi = 2 ** 20
let data: string
let files: string
let server: DevServer

const start = (point?: string): Promise<DevServer> =>
  startDev(data, {
    args: ['--driver', 'simulated', '--nodes', 'amd64=1'],
    env: point === undefined ? {} : { SVC3_TEST: '1', SVC3_FAILPOINT: point },
  })
const run = (...words: string[]): Promise<Ran> =>
  svc3(words, { cwd: files, env: { SVC3_API_URL: server.apiUrl, SVC3_TOKEN: server.token } })
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
  server = await start()
})
after(async () => {
  await server.kill('SIGTERM')
  for (const folder of [data, files]) await fs.rm(folder, { recursive: true, force: true })
})

describe('an image', { timeout: 40_000 }, () => {
  it('comes back byte for byte, under its own name and in its own file', async () => {
    const uploaded = await run('image', 'upload', 'disk.img', '-d', 'A disk')
    assert.deepEqual([uploaded.code, uploaded.stdout], [0, 'Image disk.img is uploaded.\n'], uploaded.stderr)
    const listed = await run('image', 'list', 'disk.img')
    assert.match(listed.stdout, /\ndisk\.img\tA disk\t48M\tamd64\tReady\n/)
    const saved = await run('image', 'download', 'disk.img', '-o', 'back.img')
    assert.equal(saved.code, 0, saved.stderr)
    assert.equal(await hashOf('back.img'), await hashOf('disk.img'))
    // Where the disk is zero, the file has no blocks.
    const { blocks } = await fs.stat(inFiles('back.img'))
    assert.ok(blocks * 512 < 20 * mebi, `${blocks * 512} bytes`)
    assert.deepEqual((await fs.readdir(files)).sort(), ['back.img', 'disk.img'])

    const again = await run('image', 'download', 'disk.img', '-o', 'back.img')
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
    assert.equal((await run('image', 'download', 'disk.img', '-o', 'part.img')).code, 0)
    const got = await fs.readFile(inFiles('part.img'))
    const whole = await fs.readFile(inFiles('disk.img'))
    assert.equal(got.toString('latin1', 100, 104), 'kept')
    whole.copy(got, 100, 100, 104)
    assert.ok(got.equals(whole))
    // One that is complete, or longer than the whole, is no trouble either.
    await fs.writeFile(inFiles(`full.img.${digest}.part`), whole)
    await fs.writeFile(inFiles(`long.img.${digest}.part`), Buffer.concat([whole, Buffer.from('more')]))
    for (const name of ['full.img', 'long.img']) {
      const saved = await run('image', 'download', 'disk.img', '-o', name)
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

describe('kill -9 of the server', { timeout: 40_000 }, () => {
  const uploads = (): Promise<string[]> => fs.readdir(path.join(data, 'uploads'))
  const unfinished = (): Promise<string[]> => fs.readdir(path.join(data, 'content', 'unfinished'))
  const nothingOf = async (name: string): Promise<void> => {
    assert.deepEqual([await uploads(), await unfinished()], [[], []])
    assert.equal((await server.call('GET', `/api/v1/namespaces/svc-default/images/${name}`)).status, 404)
  }

  it('in the middle of a body leaves nothing', async () => {
    const request = http.request(`${server.apiUrl}/api/v1/namespaces/svc-default/upload/image?name=half`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.token}`, 'content-length': 100 * mebi },
    })
    request.on('error', () => undefined)
    request.write(randomBytes(10 * mebi))
    await eventually(async () => assert.equal((await uploads()).length, 1))
    await server.kill('SIGKILL')
    server = await start()
    await nothingOf('half')
  })

  for (const point of ['upload.received', 'upload.recorded', 'images.put.rename', 'upload.stored'])
    it(`at ${point} leaves nothing, and the same upload again is as if nothing had been`, async () => {
      await server.kill('SIGTERM')
      // Content that is not in the store yet.
      await fs.writeFile(inFiles('new.img'), randomBytes(4 * mebi))
      server = await start(point)
      assert.notEqual((await run('image', 'upload', 'new.img', '--name', 'again')).code, 0)
      assert.equal((await server.ended).signal, 'SIGKILL')
      server = await start()
      await nothingOf('again')
      assert.equal((await run('image', 'upload', 'new.img', '--name', 'again')).code, 0)
      await run('image', 'download', 'again', '--force')
      assert.equal(await hashOf('again'), await hashOf('new.img'))
      await run('image', 'delete', 'again')
    })
})

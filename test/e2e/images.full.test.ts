// Images and ISOs with real files, through the command line and a real server: every byte comes back, what was cut off
// resumes, and a server that is killed in the middle leaves nothing.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import fs from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import type { Image } from '../../src/api/images/images.ts'
import { makeFolder, program, type Ran, svc3 } from '../support/processes/dev-server.ts'
import { ClusterRig } from '../support/rigs/cluster-rig.ts'
import { type RemoteFolder, startRemote } from '../support/stand-ins/remote-folder.ts'
import { randomDisc } from '../support/tools/disc.ts'
import { eventually } from '../support/tools/eventually.ts'

const execute = promisify(execFile)
const mebi = 2 ** 20
let rig: ClusterRig
let files: string
let remote: RemoteFolder

const run = (...words: string[]): Promise<Ran> => svc3(words, { cwd: files, env: access(), timeoutMs: 300_000 })
const access = () => ({ SVC3_API_URL: rig.apiUrl, SVC3_TOKEN: rig.server.token })
const inFiles = (name: string): string => path.join(files, name)

async function hashOf(name: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of createReadStream(inFiles(name))) hash.update(piece)
  return hash.digest('hex')
}

before(async () => {
  files = await makeFolder()
  // A disk as they are: data, a hole, data that compresses well, and an end that is no whole block.
  const disk = await fs.open(inFiles('disk.img'), 'w')
  await disk.write(randomBytes(9 * mebi), 0, undefined, 0)
  await disk.write(Buffer.alloc(5 * mebi, 'the same again and again '), 0, undefined, 40 * mebi)
  await disk.write(randomBytes(1_536), 0, undefined, 48 * mebi)
  await disk.close()
  remote = await startRemote()
  rig = await ClusterRig.make('amd64', { remotes: [{ name: 'lab', url: remote.url, allowInsecure: true }] })
})
after(async () => {
  await rig[Symbol.asyncDispose]()
  await remote[Symbol.asyncDispose]()
  await fs.rm(files, { recursive: true, force: true })
})

describe('an image', () => {
  it('an image comes back byte for byte, under its own name and in its own file', async () => {
    const uploaded = await run('image', 'upload', 'disk.img', '-d', 'A disk')
    assert.deepEqual([uploaded.code, uploaded.stdout], [0, 'Image disk.img uploaded.\n'], uploaded.stderr)
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
    assert.deepEqual([again.code, again.stderr.includes('already exists')], [1, true])
    const taken = await run('image', 'upload', 'disk.img')
    assert.deepEqual([taken.code, taken.stderr.includes('already exists')], [6, true], taken.stderr)
  })

  it('an image goes on where a download was cut off, with the same content only', async () => {
    const digest = String((await rig.image('disk.img')).checksum)
      .replace('sha256:', '')
      .slice(0, 12)
    // The content is marked, to prove that it was not fetched again.
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

  it('an image of a compressed qcow2 file is the disk that is in it', async () => {
    await execute('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', '-c', inFiles('disk.img'), inFiles('disk.qcow2')])
    const uploaded = await run('image', 'upload', 'disk.qcow2', '--name', 'from-qcow2', '--type', 'arm64')
    assert.equal(uploaded.code, 0, uploaded.stderr)
    assert.equal((await run('image', 'download', 'from-qcow2')).code, 0)
    assert.equal(await hashOf('from-qcow2'), await hashOf('disk.img'))
    const [first, second] = JSON.parse((await run('image', 'list', 'disk.img', 'from-qcow2', '-o', 'json')).stdout)
    assert.deepEqual([first.type, second.type, first.size], ['amd64', 'arm64', second.size])
  })

  it('an image is copied, generated, described and deleted', async () => {
    assert.equal((await run('image', 'copy', 'disk.img', 'copy')).stdout, 'Image copy created as a copy of disk.img.\n')
    assert.equal((await run('image', 'generate', 'empty', '1T')).stdout, 'Image empty created: an empty disk of 1T.\n')
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

  it('an uploaded ISO comes back as the file that it is', async () => {
    await fs.writeFile(inFiles('disc.iso'), randomDisc(1_000_001))
    assert.equal((await run('iso', 'upload', 'disc.iso')).stdout, 'ISO disc.iso uploaded.\n')
    assert.equal((await run('iso', 'copy', 'disc.iso', 'other.iso')).code, 0)
    assert.equal((await run('iso', 'delete', 'disc.iso')).code, 0)
    assert.match((await run('iso', 'list')).stdout, /^NAME\t.*\nother\.iso\tCopied from disc\.iso\t977K\t/)
    assert.equal((await run('iso', 'download', 'other.iso')).code, 0)
    assert.equal(await hashOf('other.iso'), await hashOf('disc.iso'))
  })
})

describe('kill -9 of the server', () => {
  /**
   * The exact contents of the folder: what images need, and records of uploads, for clients that did not receive the
   * answer.
   */
  const nothingIsLeft = async (): Promise<void> => {
    const { items } = (await rig.call('GET', '/images')) as { items: Image[] }
    const isos = (await rig.call('GET', '/isos')) as { items: Image[] }
    await rig.hasOnly([...items, ...isos.items].map(({ checksum }) => checksum))
  }
  const whatever = (): Buffer => randomBytes(4 * mebi)
  /** Until it has died at each of these, one after the other. */
  const dieAtEach = async (points: readonly string[], meanwhile: () => Promise<void>): Promise<void> => {
    for (const [index] of points.entries()) {
      await rig.died(points[index + 1])
      await meanwhile()
    }
  }
  /** Undefined if the image does not exist, or if the server died before it answered. */
  const stateOf = async (name: string) =>
    (await rig.server.call('GET', `/api/v1/namespaces/svc-default/images/${name}`).catch(() => undefined))?.body.state

  it('kill -9 of the server in the middle of a body that nobody can go on with leaves nothing', async () => {
    const request = http.request(`${rig.apiUrl}/api/v1/namespaces/svc-default/upload/image?name=half`, {
      method: 'POST',
      headers: { authorization: `Bearer ${rig.server.token}`, 'content-length': 100 * mebi },
    })
    request.on('error', () => undefined)
    request.write(randomBytes(10 * mebi))
    const uploads = path.join(rig.data, 'uploads')
    await eventually(async () => assert.equal((await fs.readdir(uploads)).length, 1))
    await rig.server.kill('SIGKILL')
    await rig.start('upload.half')
    assert.deepEqual(await fs.readdir(uploads), [])
    assert.equal(await stateOf('half'), undefined)
  })

  it('kill -9 of the server at each step of an upload is a pause for it', async () => {
    // Content that is not in the store yet.
    await fs.writeFile(inFiles('new.img'), whatever())
    const points = ['upload.half', 'upload.received', 'upload.recorded', 'images.put.rename', 'upload.stored']
    const upload = run('image', 'upload', 'new.img', '--name', 'again')
    await dieAtEach(points, async () => assert.notEqual(await stateOf('again'), 'Ready'))
    const { code, stderr } = await upload
    assert.equal(code, 0, stderr)
    await run('image', 'download', 'again', '--force')
    assert.equal(await hashOf('again'), await hashOf('new.img'))
    await run('image', 'delete', 'again')
  })

  it('kill -9 of the server and of the command: the same one again goes on where it was', async () => {
    await fs.writeFile(inFiles('new.img'), whatever())
    await rig.restart('upload.half')
    const first = spawn(program, ['image', 'upload', 'new.img', '--name', 'twice'], {
      cwd: files,
      env: { ...process.env, ...access() },
    })
    const ended = new Promise<number | null>((resolve) => first.on('close', resolve))
    let said = ''
    first.stderr.on('data', (piece: Buffer) => { said += piece.toString() }) // biome-ignore format: short
    await rig.server.ended
    first.kill('SIGINT')
    assert.equal(await ended, 130, said)
    assert.match(said, /Run the same command .*to resume/)
    await rig.died('pull.began')
    const { code, stderr } = await run('image', 'upload', 'new.img', '--name', 'twice')
    assert.deepEqual([code, /Resuming after \d/.test(stderr)], [0, true], stderr)
    await run('image', 'download', 'twice', '--format', 'qcow2')
    await execute('qemu-img', ['convert', '-f', 'qcow2', '-O', 'raw', inFiles('twice.qcow2'), inFiles('twice.raw')])
    assert.equal(await hashOf('twice.raw'), await hashOf('new.img'))
    // What came as qcow2 and goes as qcow2 is the same disk.
    assert.equal((await run('image', 'upload', 'twice.qcow2', '--name', 'third')).code, 0)
    await run('image', 'download', 'third')
    assert.equal(await hashOf('third'), await hashOf('new.img'))
    await run('image', 'delete', 'twice', 'third')
  })

  it('kill -9 of the server at each step of a pull is a pause for it, and nothing is fetched twice', async () => {
    const disk = whatever()
    remote.items.set('remote.img', { bytes: disk })
    const points = ['pull.began', 'pull.half', 'pull.fetched', 'images.put.rename', 'pull.stored']
    const listed = await run('remote-image', 'list')
    assert.equal(listed.stdout, 'NAME\tSIZE\tTYPE\nremote.img\t4M\tamd64\n', listed.stderr)
    const pull = run('remote-image', 'pull', 'remote.img', 'pulled', '--wait')
    await dieAtEach(points, async () => assert.notEqual(await stateOf('pulled'), 'Ready'))
    const { code, stdout, stderr } = await pull
    assert.deepEqual([code, stdout], [0, 'Image pulled pulled.\n'], stderr)
    await run('image', 'download', 'pulled')
    assert.equal(await hashOf('pulled'), createHash('sha256').update(disk).digest('hex'))
    const [first, second = '', ...more] = remote.ranges
    assert.deepEqual([first, /^bytes=[1-9]\d+-$/.test(second), more], ['', true, []], remote.ranges.join())
    await nothingIsLeft()
  })
})

// Tar archives are read as tar and TarWriter write them, however their bytes are cut, and not where they are damaged.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { contentOf, readTar, TarError, TarWriter } from './tar.ts'

const blockBytes = 512
const endBlocks = Buffer.alloc(2 * blockBytes)

interface Member {
  readonly type?: string
  readonly mode?: string
  readonly target?: string
  readonly data?: string
  /** The twelve bytes of the size, where they are not octal digits. */
  readonly size?: Buffer
}

/** A header as GNU tar writes it, and the content filled up to whole blocks. */
function member(name: string, { type = '0', mode = '0000644', target = '', data = '', size }: Member = {}): Buffer {
  const content = Buffer.from(data)
  const header = Buffer.alloc(blockBytes)
  header.write(name, 0)
  header.write(mode, 100)
  if (size) size.copy(header, 124)
  else header.write(content.length.toString(8).padStart(11, '0'), 124)
  header.write(`        ${type}`, 148)
  header.write(target, 157)
  header.write('ustar  ', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0`, 148)
  return Buffer.concat([header, content, Buffer.alloc((blockBytes - (content.length % blockBytes)) % blockBytes)])
}

const paxRecord = (key: string, value: string): string => {
  const rest = ` ${key}=${value}\n`
  const length = Buffer.byteLength(rest) + 2
  return `${length < 100 ? length : length + 1}${rest}`
}

async function* cut(archive: Buffer, pieceBytes = archive.length): AsyncGenerator<Buffer> {
  for (let at = 0; at < archive.length; at += pieceBytes) yield archive.subarray(at, at + pieceBytes)
}

/** One line for each entry. */
async function list(source: AsyncIterable<Buffer>): Promise<string[]> {
  const lines: string[] = []
  for await (const entry of readTar(source)) {
    const { type, mode, name, target, bytes } = entry
    const content = await contentOf(entry)
    assert.equal(content.length, bytes)
    lines.push([type, mode.toString(8), name, target, content.toString().slice(0, 20)].join('|'))
  }
  return lines
}

async function place(t: TestContext): Promise<string> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-tar-'))
  t.after(() => fs.rm(folder, { recursive: true, force: true }))
  return folder
}

describe('readTar', () => {
  const longName = `${'deep/'.repeat(40)}file`
  const longTarget = `${'far/'.repeat(40)}away`
  const long = Buffer.concat([
    member('folder/', { type: '5', mode: '0000755' }),
    member('././@LongLink', { type: 'L', data: `${longName}\0` }),
    member(longName.slice(0, 100), { data: 'of GNU', mode: '0004755' }),
    member('././@LongLink', { type: 'K', data: `${longTarget}\0` }),
    member('././@LongLink', { type: 'L', data: `${longName}-link\0` }),
    member('short', { type: '2', target: 'short', mode: '0000777' }),
    member('pax', { type: 'x', data: paxRecord('comment', '9 path=x') + paxRecord('path', `${longName}-ö`) }),
    member('short', { data: 'of pax' }),
    member('pax', { type: 'x', data: paxRecord('linkpath', longTarget) }),
    member('hard', { type: '1', target: 'short' }),
    member('plain', { type: '\0', data: 'x'.repeat(5_000) }),
    endBlocks,
  ])

  it('readTar reads long names of GNU tar and pax, links, folders and modes, however the bytes are cut', async () => {
    const expected = [
      '5|755|folder||',
      `0|4755|${longName}||of GNU`,
      `2|777|${longName}-link|${longTarget}|`,
      `0|644|${longName}-ö||of pax`,
      `1|644|hard|${longTarget}|`,
      `0|644|plain||${'x'.repeat(20)}`,
    ]
    for (const pieceBytes of [long.length, 1, 511, 512, 513, 4_096])
      assert.deepEqual(await list(cut(long, pieceBytes)), expected, `in pieces of ${pieceBytes} bytes`)
  })

  for (const format of ['ustar', 'pax'])
    it(`readTar reads what tar writes in the format ${format}`, async (t) => {
      const folder = await place(t)
      const name = `${'deep/'.repeat(25)}file`
      await fs.mkdir(path.join(folder, path.dirname(name)), { recursive: true })
      await fs.writeFile(path.join(folder, name), 'far down', { mode: 0o640 })
      await fs.symlink('file', path.join(folder, `${name}-link`))
      const names = [name, `${name}-link`]
      const archive = execFileSync('tar', [`--format=${format}`, '-C', folder, '-cf', '-', ...names])
      assert.match(
        (await list(cut(archive))).join('\n'),
        new RegExp(`^0.640.${name}..far down\n2.7\\d\\d.${name}-link.file.$`),
      )
    })

  it('readTar reads sizes in binary and of pax', async () => {
    const binary = Buffer.alloc(12)
    binary[0] = 0x80
    binary[11] = 3
    const archive = Buffer.concat([
      member('binary', { data: 'abc', size: binary }),
      member('pax', { type: 'x', data: paxRecord('size', '4') }),
      member('of pax', { data: 'abcd', size: Buffer.from('00000000000\0') }),
      endBlocks,
    ])
    assert.deepEqual(await list(cut(archive)), ['0|644|binary||abc', '0|644|of pax||abcd'])
  })

  it('readTar reads what TarWriter wrote, with the checksum before each entry', async (t) => {
    const file = path.join(await place(t), 'x.tar')
    const handle = await fs.open(file, 'w')
    const tar = new TarWriter(handle)
    const checksums: string[] = []
    for (const bytes of [0, 1, 512, 100_000]) {
      checksums.push(tar.sha256())
      await tar.add(`of-${bytes}`, Buffer.alloc(bytes, 'x'))
    }
    await tar.end()
    await handle.close()
    const archive = await fs.readFile(file)
    const found: string[] = []
    for await (const { sha256Before } of readTar(cut(archive, 1_000), createHash('sha256'))) found.push(sha256Before)
    assert.deepEqual(found, checksums)
  })

  it('readTar counts the header of a long name to its entry in the checksum', async () => {
    const first = member('first')
    const checksums: string[] = []
    const archive = Buffer.concat([first, member('L', { type: 'L', data: longName }), member('second'), endBlocks])
    for await (const { sha256Before } of readTar(cut(archive), createHash('sha256'))) checksums.push(sha256Before)
    assert.equal(checksums[1], createHash('sha256').update(first).digest('hex'))
  })

  it('readTar continues with the next entry after one that was read partly or not at all', async () => {
    const archive = Buffer.concat([
      member('unread', { data: 'x'.repeat(2_000) }),
      member('in part', { data: 'y'.repeat(2_000) }),
      member('whole', { data: 'z' }),
      endBlocks,
    ])
    const seen: string[] = []
    for await (const entry of readTar(cut(archive, 700))) {
      seen.push(entry.name)
      if (entry.name === 'in part') for await (const _ of entry.content()) break
      if (entry.name === 'whole') assert.equal((await contentOf(entry)).toString(), 'z')
    }
    assert.deepEqual(seen, ['unread', 'in part', 'whole'])
  })

  it('readTar reads its source to the end, and closes it where the reader leaves', async () => {
    const ends: string[] = []
    async function* source(): AsyncGenerator<Buffer> {
      try {
        yield long
        yield Buffer.alloc(8_192)
        ends.push('read')
      } finally {
        ends.push('closed')
      }
    }
    await list(source())
    for await (const _ of readTar(source())) break
    assert.deepEqual(ends, ['read', 'closed', 'closed'])
  })

  const refused: readonly (readonly [string, Buffer, RegExp])[] = [
    ['is cut off in a content', long.subarray(0, -3_000), /is incomplete/],
    ['is cut off in a header', long.subarray(0, 100), /is incomplete/],
    ['has no end block', long.subarray(0, -endBlocks.length), /is incomplete/],
    ['is empty', Buffer.alloc(0), /is incomplete/],
    ['has a damaged header', Buffer.from(long).fill('X', 0, 1), /not a tar file/],
    ['is something else', Buffer.alloc(2_000, 'something else'), /not a tar file/],
    ['has a size that is none', member('x', { size: Buffer.alloc(12, 0xff) }), /size of an entry is not readable/],
    ['has an extended header that is none', member('x', { type: 'x', data: '99 a\n' }), /header .* not readable/],
    ['has a name without end', member('x', { type: 'L', data: 'x'.repeat(1_100_000) }), /name .* too long/],
  ]
  for (const [problem, archive, message] of refused)
    it(`readTar refuses an archive that ${problem}`, async () => {
      await assert.rejects(
        list(cut(archive, 10_000)),
        (error) => error instanceof TarError && message.test(error.message),
      )
    })
})

// The recovery partition of a grown disk, moved to its end: checked by sfdisk, which made the disk, and killed at each point.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { ExecError, exec } from '../../platform/exec.ts'
import { finishMove, moveRecovery } from './recovery.ts'

const mib = 2 ** 20
const sector = 512
const type = {
  isc: '69646961-6700-11AA-AA11-00306543ECAC',
  apfs: '7C3457EF-0000-11AA-AA11-00306543ECAC',
  recovery: '52637672-7900-11AA-AA11-00306543ECAC',
}
/** As on the disks of Apple silicon: the first partition starts at sector 40, the last one ends before the backup table. */
const layout = [
  `start=40, size=2048, type=${type.isc}, uuid=11111111-1111-4111-8111-111111111111, name="iBootSystemContainer"`,
  `start=2088, size=8192, type=${type.apfs}, uuid=22222222-2222-4222-8222-222222222222, name="Container"`,
  `start=10280, size=14256, type=${type.recovery}, uuid=33333333-3333-4333-8333-333333333333, name="RecoveryOSContainer", attrs="GUID:60"`,
]
const recoveryAt = { first: 10_280, count: 14_256 }

let root: string
let content: Buffer
before(async () => {
  root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-recovery-'))
  content = randomBytes(recoveryAt.count * sector)
  // A hole, which the copy keeps.
  content.fill(0, mib, 4 * mib)
})
after(() => fs.rm(root, { recursive: true }))

async function makeDisk(lines: readonly string[] = layout, grownMib = 32): Promise<string> {
  const disk = path.join(await fs.mkdtemp(path.join(root, 'vm-')), 'disk.img')
  await fs.writeFile(disk, '')
  await fs.truncate(disk, 12 * mib)
  const script = ['label: gpt', 'label-id: 44444444-4444-4444-8444-444444444444', 'first-lba: 34', ...lines].join('\n')
  await exec('sfdisk', ['--quiet', '--no-tell-kernel', disk], { input: `${script}\n` })
  await using handle = await fs.open(disk, 'r+')
  await handle.write(Buffer.alloc(8_192 * sector, 'container'), 0, 8_192 * sector, 2_088 * sector)
  await handle.write(content, 0, mib, recoveryAt.first * sector)
  await handle.write(content, 4 * mib, content.length - 4 * mib, recoveryAt.first * sector + 4 * mib)
  await fs.truncate(disk, grownMib * mib)
  return disk
}

interface Dump {
  readonly id: string
  readonly lastlba: number
  readonly partitions: readonly {
    start: number
    size: number
    type: string
    uuid: string
    name: string
    attrs?: string
  }[]
}

async function dump(disk: string): Promise<Dump> {
  const { stdout } = await exec('sfdisk', ['--json', disk])
  return JSON.parse(stdout).partitiontable
}

const hashOf = async (file: string): Promise<string> =>
  createHash('sha256')
    .update(await fs.readFile(file))
    .digest('hex')

async function recoveryOf(disk: string): Promise<{ readonly start: number; readonly bytes: Buffer }> {
  const found = (await dump(disk)).partitions[2]
  assert.ok(found)
  await using handle = await fs.open(disk, 'r')
  const { buffer } = await handle.read(Buffer.alloc(found.size * sector), 0, found.size * sector, found.start * sector)
  return { start: found.start, bytes: buffer }
}

/** sfdisk finds nothing to complain about; it names differences of the tables and of their checksums. */
async function assertSound(disk: string): Promise<void> {
  const { stdout, stderr } = await exec('sfdisk', ['--verify', disk])
  assert.match(stdout + stderr, /No errors detected/)
  assert.doesNotMatch(stdout + stderr, /mismatch|corrupt|not on the end/)
}

/** The first sector of the backup table, once the disk has 32 MiB. */
const backupSector = 65_536 - 33

describe('moving the recovery partition', () => {
  it('the recovery partition moves to the end of a grown disk, with its bytes, GUIDs, names and attributes', async () => {
    const disk = await makeDisk()
    const was = await dump(disk)
    assert.equal(await moveRecovery(disk), undefined)
    await assertSound(disk)
    const is = await dump(disk)
    const { start, bytes } = await recoveryOf(disk)
    assert.ok(
      start % 8 === 0 && start + recoveryAt.count <= backupSector && start + recoveryAt.count > backupSector - 8,
    )
    assert.deepEqual(is.partitions, was.partitions.with(2, { ...was.partitions[2], start } as Dump['partitions'][0]))
    assert.deepEqual([is.id, is.lastlba], [was.id, backupSector - 1])
    assert.ok(bytes.equals(content))
    assert.deepEqual(await fs.readdir(path.dirname(disk)), ['disk.img'])
    const { blocks } = await fs.stat(disk)
    assert.ok(blocks * 512 < 17 * mib, `${blocks} blocks: the hole was copied as zeros`)
    // What diskutil does then: the container takes what is free behind it.
    await exec('sfdisk', ['--quiet', '--no-tell-kernel', '-N', '2', disk], { input: ', +\n' })
    await assertSound(disk)
    const [, container] = (await dump(disk)).partitions
    assert.equal((container?.start ?? 0) + (container?.size ?? 0), start)
  })

  it('the recovery partition moves again when the disk grows again, and stays when it has not grown', async () => {
    const disk = await makeDisk()
    await moveRecovery(disk)
    const first = await hashOf(disk)
    assert.equal(await moveRecovery(disk), undefined)
    assert.equal(await hashOf(disk), first)
    await fs.truncate(disk, 64 * mib)
    assert.equal(await moveRecovery(disk), undefined)
    await assertSound(disk)
    assert.ok((await recoveryOf(disk)).bytes.equals(content))
  })

  it('the backup of the table of a moved partition serves sfdisk when the primary one is destroyed', async () => {
    const disk = await makeDisk()
    await moveRecovery(disk)
    await using handle = await fs.open(disk, 'r+')
    const good = await dump(disk)
    await handle.write(Buffer.alloc(sector), 0, sector, sector)
    assert.deepEqual((await dump(disk)).partitions, good.partitions)
  })

  const damage = (position: number, bytes: Buffer) => async (disk: string) => {
    await using handle = await fs.open(disk, 'r+')
    await handle.write(bytes, 0, bytes.length, position)
  }
  const one = Buffer.from([0xa5])
  const backup = 12 * mib - sector
  const refusals: readonly (readonly [string, (disk: string) => Promise<void>, RegExp])[] = [
    ['a header with another checksum', damage(sector + 60, one), /header.*damaged/],
    ['an entry that was changed', damage(2 * sector + 200, one), /partition table is damaged/],
    ['a backup that is missing', damage(backup, Buffer.alloc(sector)), /backup/],
    ['a backup that differs', damage(backup - 32 * sector + 130, one), /backup/],
    ['an MBR with partitions', damage(446 + 16 + 4, one), /MBR/],
    ['no table', damage(sector, Buffer.alloc(sector)), /no GUID partition table/],
    ['a file that was cut', (disk) => fs.truncate(disk, 6 * mib), /unusual/],
    ['an empty file', (disk) => fs.truncate(disk, 0), /too small/],
  ]
  for (const [name, harm, message] of refusals)
    it(`moving the recovery partition leaves alone a disk with ${name}`, async () => {
      const disk = await makeDisk()
      await harm(disk)
      const before = await hashOf(disk)
      assert.match((await moveRecovery(disk)) ?? '', message)
      assert.equal(await hashOf(disk), before)
      assert.deepEqual(await fs.readdir(path.dirname(disk)), ['disk.img'])
    })

  it('moving the recovery partition leaves alone layouts that it does not know, and disks without one', async () => {
    const [isc = '', apfs = '', recovery = ''] = layout
    const linux = '0FC63DAF-8483-4772-8E79-3D69D8477DE4'
    const behind = recovery.replace('size=14256', 'size=13000')
    const cases: readonly (readonly [readonly string[], RegExp | undefined])[] = [
      [[isc, apfs], undefined],
      [[isc, apfs, recovery.replace(type.recovery, linux)], undefined],
      [[isc, apfs.replace(type.apfs, linux), recovery], /does not follow the container/],
      [[isc, apfs, behind, `start=23400, size=1000, type=${linux}`], undefined],
    ]
    for (const [lines, message] of cases) {
      const disk = await makeDisk(lines)
      const before = await hashOf(disk)
      const problem = await moveRecovery(disk)
      if (message) assert.match(problem ?? '', message)
      else assert.equal(problem, undefined)
      assert.equal(await hashOf(disk), before)
    }
  })

  it('moving the recovery partition needs a disk that has grown by its size, and says how large it must be', async () => {
    const disk = await makeDisk(layout, 18)
    const before = await hashOf(disk)
    assert.match((await moveRecovery(disk)) ?? '', /only if the disk has 1 GiB or more/)
    assert.equal(await hashOf(disk), before)
    await fs.truncate(disk, 20 * mib)
    assert.equal(await moveRecovery(disk), undefined)
    await assertSound(disk)
    assert.ok((await recoveryOf(disk)).bytes.equals(content))
  })
})

describe('moving the recovery partition, killed', () => {
  const points: readonly (readonly [string, 'old' | 'new'])[] = [
    ['apple-recovery-copying', 'old'],
    ['apple-recovery-copied', 'old'],
    ['apple-recovery-tail', 'old'],
    ['apple-recovery-marked', 'new'],
    ['apple-recovery-head', 'new'],
  ]
  for (const [point, which] of points)
    it(`a move of the recovery partition that is killed at ${point} leaves the ${which} table, and can be repeated`, async () => {
      const disk = await makeDisk()
      const program = `import { moveRecovery } from ${JSON.stringify(path.join(import.meta.dirname, 'recovery.ts'))}
        await moveRecovery(${JSON.stringify(disk)})`
      const env = { ...process.env, SVC3_TEST: '1', SVC3_FAILPOINT: point } as Record<string, string>
      await assert.rejects(
        exec(process.execPath, ['--no-warnings', '--input-type=module', '-e', program], { env }),
        (error) => error instanceof ExecError && /SIGKILL/.test(error.message),
      )
      // A power cut may leave any part of the head.
      if (which === 'new') await damage(disk)
      await finishMove(disk)
      const { start, bytes } = await recoveryOf(disk)
      assert.equal(start > recoveryAt.first, which === 'new')
      assert.ok(bytes.equals(content))
      assert.equal(await moveRecovery(disk), undefined)
      await assertSound(disk)
      assert.ok((await recoveryOf(disk)).bytes.equals(content))
      assert.deepEqual(await fs.readdir(path.dirname(disk)), ['disk.img'])
    })

  async function damage(disk: string): Promise<void> {
    await using handle = await fs.open(disk, 'r+')
    await handle.write(randomBytes(5 * sector), 0, 5 * sector, sector)
  }
})

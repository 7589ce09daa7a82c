// What a guest on Apple silicon gets beside its disk: metadata, its first-boot script, and scripts as root; and what an agent
// completes that another one began. On the stand-in for tart, which records scripts and runs none.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, it } from 'node:test'
import { AppleDriver } from '../../src/drivers/apple/driver.ts'
import { readMachine, requireMachine, tartFile } from '../../src/drivers/apple/machine.ts'
import { installStandIn } from '../support/stand-ins/tart/install.ts'
import { eventually } from '../support/tools/eventually.ts'
import { blankMac, tartsOf } from './driver-apple.ts'
import { specify } from './driver-vm.ts'

let root: string
let program: string
before(async () => {
  root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-apple-guest-'))
  program = await installStandIn(path.join(root, 'bin'))
})
after(() => fs.rm(root, { recursive: true, force: true }))

const open = (): AppleDriver => new AppleDriver({ program, home: path.join(root, 'home') })
const never = AbortSignal.timeout(300_000)

it('a guest on Apple silicon has its metadata and runs its first-boot script once, also for another agent', async () => {
  const secret = 'canary-of-a-guest'
  const vm = await specify({ architecture: 'arm64', image: blankMac }, root, {
    metadata: { token: secret },
    userdata: Buffer.from(`echo ${secret}`).toString('base64'),
  })
  const first = open()
  const handle = await first.create(vm, path.join(root, 'vm'))
  let second: AppleDriver | undefined
  try {
    await first.start(handle, vm, never)
    let name = (await readMachine(handle.folder))?.name ?? ''
    const inGuest = (file: string): string => path.join(handle.folder, 'tart', 'vms', name, file)
    const scripts = async (): Promise<readonly { words: string[]; script: string }[]> =>
      (await fs.readFile(inGuest('stand-in.scripts'), 'utf8').catch(() => ''))
        .split('\n')
        .flatMap((line) => (line ? [JSON.parse(line)] : []))
    assert.equal(await fs.readFile(path.join(handle.folder, 'guest/metadata/token'), 'utf8'), secret)
    for (const pid of await tartsOf(handle)) {
      const words =
        (await fs.readFile(`/proc/${pid}/cmdline`, 'utf8')) + (await fs.readFile(`/proc/${pid}/environ`, 'utf8'))
      assert.ok(words.includes(`--dir=svc3:${handle.folder}/guest:ro`) && !words.includes(secret))
    }
    assert.deepEqual(await first.inspect(handle), { state: 'running' })
    await fs.writeFile(inGuest('stand-in.answer'), '0\nsvc3-ended 7\n')
    await fs.writeFile(inGuest('stand-in.guest-agent'), '')
    const failed = /^The first-boot script failed with exit code 7/
    await eventually(async () => {
      const observed = await first.inspect(handle)
      assert.match((observed.state === 'running' && observed.note) || '', failed)
    }, 60_000)
    const [run] = await scripts()
    assert.deepEqual(run?.words, ['sudo', '-n', 'sh', '-s'])
    assert.match(run?.script ?? '', new RegExp(`echo ${secret}`))
    assert.equal(await first.inside.shell(handle, 'id', never), 'svc3-ended 7\n')
    await first.close()

    second = open()
    await eventually(async () => {
      const observed = await second?.inspect(handle)
      assert.match((observed?.state === 'running' && observed.note) || '', failed)
    }, 60_000)
    await second.stop(handle, { graceSeconds: 0 })
    assert.deepEqual(await fs.readdir(path.join(handle.folder, 'guest')), [], 'no guest reads secrets now')
    await second.start(handle, vm, never)
    await fs.writeFile(inGuest('stand-in.guest-agent'), '')
    await eventually(async () => {
      const observed = await second?.inspect(handle)
      assert.match((observed?.state === 'running' && observed.note) || '', failed)
    }, 60_000)
    assert.equal((await scripts()).length, 2, 'the script, and what this test ran')

    // The guest ends by itself, so the driver is not asked to stop it.
    for (const pid of await tartsOf(handle)) process.kill(pid, 'SIGKILL')
    const agent = second
    await eventually(async () => assert.notEqual((await agent.inspect(handle)).state, 'running'), 60_000)
    await second.reverting.revert(handle, vm)
    await second.start(handle, vm, never)
    name = (await readMachine(handle.folder))?.name ?? ''
    await fs.writeFile(inGuest('stand-in.guest-agent'), '')
    await eventually(async () => {
      await agent.inspect(handle)
      assert.equal((await scripts()).length, 1, 'the first boot of another disk')
    }, 60_000)
  } finally {
    await (second ?? first).destroy(handle)
    await second?.close()
  }
})

it('a macOS guest whose disk is larger than its image grows its file system through its agent, until that has succeeded', async () => {
  const driver = open()
  const vm = await specify({ architecture: 'arm64', image: blankMac }, root, { diskBytes: 65 * 2 ** 20 })
  const handle = await driver.create(vm, path.join(root, 'larger'))
  const noteOf = async (): Promise<string> => {
    const observed = await driver.inspect(handle)
    return (observed.state === 'running' && observed.note) || ''
  }
  const boot = async (afterKb: number): Promise<string> => {
    await driver.start(handle, vm, never)
    const inGuest = (file: string): string => tartFile(handle.folder, machine, 'disk').replace(/[^/]+$/, file)
    const machine = await requireMachine(handle.folder)
    await fs.writeFile(inGuest('stand-in.answer'), `0\nsvc3-system Darwin 0\nsvc3-sizes 1000 ${afterKb} 2000\n`)
    await fs.writeFile(inGuest('stand-in.guest-agent'), '')
    await driver.inspect(handle)
    return inGuest('stand-in.scripts')
  }
  try {
    await boot(1_000)
    await eventually(
      async () => assert.match(await noteOf(), /have not: .* 1000 KiB as before.*resizeContainer/),
      60_000,
    )
    await driver.stop(handle, { graceSeconds: 0 })
    const scripts = await boot(1_900)
    await eventually(() => fs.access(path.join(handle.folder, 'growth.json')), 60_000)
    assert.equal(await noteOf(), '')
    assert.equal((await fs.readFile(scripts, 'utf8')).trim().split('\n').length, 4, 'two scripts at each boot')
    await driver.stop(handle, { graceSeconds: 0 })
    await boot(1_900)
    await driver.inside.shell(handle, 'id', never)
    assert.equal((await fs.readFile(scripts, 'utf8')).trim().split('\n').length, 5, 'a disk grows once')
  } finally {
    await driver.destroy(handle)
    await driver.close()
  }
})

it('a move of the recovery partition that an agent did not complete is completed when the next one looks at the VM', async () => {
  const driver = open()
  const vm = await specify({ architecture: 'arm64', image: blankMac }, root)
  const handle = await driver.create(vm, path.join(root, 'moved'))
  const { name } = JSON.parse(await fs.readFile(path.join(handle.folder, 'apple.json'), 'utf8'))
  const disk = tartFile(handle.folder, { name }, 'disk')
  await fs.writeFile(`${disk}.new-head`, Buffer.alloc(34 * 512, 'head'))
  assert.deepEqual(await driver.inspect(handle), { state: 'stopped' })
  await assert.rejects(fs.access(`${disk}.new-head`))
  await using file = await fs.open(disk, 'r')
  const { buffer } = await file.read(Buffer.alloc(34 * 512), 0, 34 * 512, 0)
  assert.ok(buffer.equals(Buffer.alloc(34 * 512, 'head')))
  await driver.destroy(handle)
})

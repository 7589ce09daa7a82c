// What the QEMU driver does about ports, sockets, secrets, a full disk and a stranger's folder on a real host.
import assert from 'node:assert/strict'
import dgram from 'node:dgram'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { buildGuest } from '../../packages/tiny-guests/build.ts'
import { PortTaken } from '../../src/drivers/driver.ts'
import { runtimeFolder } from '../../src/drivers/qemu/control/run.ts'
import { QemuDriver } from '../../src/drivers/qemu/driver.ts'
import { exec } from '../../src/platform/exec.ts'
import { tinyCache } from '../support/guests/guest.ts'
import { eventually } from '../support/tools/eventually.ts'
import { freePort } from '../support/tools/free-port.ts'
import { activeDisk, blankImage, killQemu, processesOf, tracesOf } from './driver-blank-vm.ts'
import { specify } from './driver-vm.ts'

describe('QEMU driver', () => {
  const image = (folder: string, digest: string) => blankImage('amd64', folder, digest)
  const signal = () => AbortSignal.timeout(120_000)

  for (const network of ['sealed', 'user'] as const)
    it(`the QEMU driver still says why it does not go on from memory after a stranger was quicker at a port (${network})`, async () => {
      const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-late-port-'))
      const port = await freePort()
      const plain = await specify({ architecture: 'amd64', image }, root, {
        forwards: [{ protocol: 'tcp', hostPort: port, guestPort: 22 }],
      })
      const memory = { file: path.join(root, 'none'), description: {} }
      const vm = { ...plain, image: { ...plain.image, memory } }
      const driver = new QemuDriver({ network })
      let handle = await driver.create(vm, path.join(root, 'vm'))
      let stranger: net.Server | undefined
      /** False: the driver was. */
      const isQuicker = async (): Promise<boolean> => {
        const starting = driver.start(handle, vm, signal())
        starting.catch(() => undefined)
        // Its ports were looked at by now, and are not open yet.
        const isBegun = () => fs.access(path.join(handle.folder, 'qemu.json')).then(() => true, () => false) // biome-ignore format: one thought
        while (!(await isBegun())) await new Promise((resolve) => setTimeout(resolve, 1))
        stranger = net.createServer().listen(port, vm.ip)
        const isTaken = await once(stranger, 'listening').then(() => true, () => false) // biome-ignore format: one thought
        if (isTaken) await assert.rejects(starting, (error) => error instanceof PortTaken && error.ports[0] === port)
        else await starting
        stranger.close()
        if (isTaken) await once(stranger, 'close')
        return isTaken
      }
      try {
        while (!(await isQuicker())) {
          await driver.destroy(handle)
          handle = await driver.create(vm, path.join(root, 'vm'))
        }
        assert.match((await driver.start(handle, vm, signal())).note ?? '', /booted from the disk/)
        await driver.stop(handle, { graceSeconds: 0 })
        assert.deepEqual(await driver.start(handle, vm, signal()), {})
      } finally {
        stranger?.close()
        await driver.destroy(handle)
        await fs.rm(root, { recursive: true })
      }
    })

  for (const network of ['sealed', 'user'] as const)
    it(`the QEMU driver opens its ports on its address only, and names all that strangers hold (${network})`, async () => {
      const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-ports-'))
      const [tcp, udp, screen] = [await freePort(), await freePort(), await freePort()]
      const vm = await specify({ architecture: 'amd64', image }, root, {
        ip: '127.0.0.3',
        forwards: [
          { protocol: 'tcp', hostPort: tcp, guestPort: 22 },
          { protocol: 'udp', hostPort: udp, guestPort: 53 },
        ],
        screen: { port: screen, width: 800, height: 600 },
      })
      const driver = new QemuDriver({ network })
      const handle = await driver.create(vm, path.join(root, 'vm'))
      try {
        const server = net.createServer().listen(tcp, '127.0.0.3')
        const screens = net.createServer().listen(screen, '127.0.0.3')
        const socket = dgram.createSocket('udp4').bind(udp, '127.0.0.3')
        await Promise.all([once(server, 'listening'), once(screens, 'listening'), once(socket, 'listening')])
        await assert.rejects(driver.start(handle, vm, signal()), (error) => {
          assert.ok(error instanceof PortTaken)
          assert.deepEqual(error.ports, [tcp, udp, screen])
          return true
        })
        await Promise.all([server, screens, socket].map((one) => new Promise<void>((done) => one.close(() => done()))))
        await driver.start(handle, vm, signal())
        const expected = [`tcp 127.0.0.3:${tcp}`, `tcp 127.0.0.3:${screen}`, `udp 127.0.0.3:${udp}`]
        assert.deepEqual(await listeners([tcp, udp, screen]), expected.sort())
      } finally {
        await driver.destroy(handle)
        await driver.close()
      }
      assert.deepEqual(await listeners([tcp, udp, screen]), [])
      assert.deepEqual(await tracesOf(handle), [])
      await fs.rm(root, { recursive: true })
    })

  it('the QEMU driver keeps its sockets to itself, and does not use a folder that is not its own', async () => {
    const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-sockets-'))
    const vm = await specify({ architecture: 'amd64', image }, root)
    const driver = new QemuDriver()
    const handle = await driver.create(vm, path.join(root, 'vm'))
    const runtime = runtimeFolder(handle.folder)
    try {
      await fs.symlink(root, runtime)
      await assert.rejects(driver.start(handle, vm, signal()), /belongs to another user/)
      assert.deepEqual(await driver.inspect(handle), { state: 'stopped' })
      await fs.rm(runtime)
      await driver.start(handle, vm, signal())
      assert.equal((await fs.stat(runtime)).mode & 0o777, 0o700)
      for (const name of [
        'qemu.json',
        'qemu.log',
        'chain.json',
        path.basename(await activeDisk(handle)),
        'console.log',
      ])
        assert.equal((await fs.stat(path.join(handle.folder, name))).mode & 0o777, 0o600, name)
    } finally {
      await driver.destroy(handle)
      await driver.close()
    }
    assert.deepEqual(await tracesOf(handle), [])
    await fs.rm(root, { recursive: true })
  })

  it('the QEMU driver starts nothing where guests cannot be sealed off, unless that was asked for', async () => {
    const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-unsealed-'))
    const vm = await specify({ architecture: 'amd64', image }, root)
    const driver = new QemuDriver({}, async () => 'guests cannot be sealed off: for a test')
    const handle = await driver.create(vm, path.join(root, 'vm'))
    const open = new QemuDriver({ network: 'user' }, async () => assert.fail('nobody asked for a seal'))
    try {
      const { ok, problem } = await driver.probe()
      assert.deepEqual({ ok, problem }, { ok: false, problem: 'guests cannot be sealed off: for a test' })
      await assert.rejects(driver.start(handle, vm, signal()), /guests cannot be sealed off: for a test/)
      assert.deepEqual(await driver.inspect(handle), { state: 'stopped' })
      const probe = await open.probe()
      assert.equal(probe.ok, true)
      assert.match(probe.version, /unsealed network/)
      await open.start(handle, vm, signal())
      await open.close()
      // A running VM is adopted unchanged: its process is not restarted.
      await driver.start(handle, vm, signal())
    } finally {
      await open.close()
      await driver.destroy(handle)
      await driver.close()
    }
    assert.deepEqual(await tracesOf(handle), [])
    await fs.rm(root, { recursive: true })
  })

  it('the QEMU driver keeps no secrets of a VM that failed or ended with its host', async () => {
    const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-secrets-'))
    const vm = await specify({ architecture: 'amd64', image }, root, { metadata: { key: 'top-secret' } })
    const driver = new QemuDriver({ network: 'user' })
    const handle = await driver.create(vm, path.join(root, 'vm'))
    const secrets = () => grep(handle.folder, 'top-secret')
    const running = async () => {
      await driver.start(handle, vm, signal())
      const files = await secrets()
      assert.ok(files.length > 0)
      for (const file of files) assert.equal((await fs.stat(file)).mode & 0o777, 0o600)
    }
    try {
      await running()
      await killQemu(handle)
      await eventually(async () => assert.equal((await driver.inspect(handle)).state, 'failed'))
      assert.deepEqual(await secrets(), [])

      await running()
      await driver.close()
      await killQemu(handle)
      await eventually(async () => assert.deepEqual(await processesOf(handle), []))
      const file = path.join(handle.folder, 'qemu.json')
      const run = JSON.parse(await fs.readFile(file, 'utf8'))
      await fs.writeFile(file, JSON.stringify({ ...run, bootId: 'an earlier boot' }))
      assert.deepEqual(await driver.inspect(handle), { state: 'gone' })
      assert.deepEqual(await secrets(), [])
    } finally {
      await driver.destroy(handle)
      await driver.close()
    }
    assert.deepEqual(await tracesOf(handle), [])
    await fs.rm(root, { recursive: true })
  })

  it('the QEMU driver lets a VM go on whose disk could not be written, once there is room', async () => {
    // In a mount namespace, so that its small file system goes with it.
    const scenario = path.join(import.meta.dirname, 'driver-full-disk.ts')
    const asRoot = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
    await exec('unshare', [...asRoot, '--mount', process.execPath, scenario], { timeoutMs: 170_000 })
  })

  it('the QEMU driver boots a disk that is given as an ISO, such as an installer of Apple, from USB', async () => {
    const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-installer-'))
    await buildGuest({ name: 'tiny-amd64', folder: tinyCache, signal: AbortSignal.timeout(390_000) })
    const iso = path.join(tinyCache, 'tiny-amd64', 'disk.raw')
    const plain = await specify({ architecture: 'amd64', image }, root, { iso, memoryMiB: 512 })
    const vm = { ...plain, image: { ...plain.image, boot: { kind: 'firmware', firmware: 'uefi' } as const } }
    const driver = new QemuDriver()
    const handle = await driver.create(vm, path.join(root, 'vm'))
    try {
      await driver.start(handle, vm, signal())
      const console = () => fs.readFile(driver.console.log(handle), 'latin1')
      await eventually(async () => assert.match(await console(), /QEMU USB HARDDRIVE[\s\S]*Welcome to GRUB!/), 120_000)
    } finally {
      await driver.destroy(handle)
      await driver.close()
      await fs.rm(root, { recursive: true })
    }
  })

  it('the QEMU driver says what QEMU said when it does not start, and leaves nothing', async () => {
    const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-refused-'))
    const vm = await specify({ architecture: 'amd64', image }, root, { iso: path.join(root, 'no.iso') })
    const driver = new QemuDriver()
    const handle = await driver.create(vm, path.join(root, 'vm'))
    await assert.rejects(driver.start(handle, vm, signal()), /QEMU did not start: .*no\.iso.*No such file/s)
    assert.deepEqual(await driver.inspect(handle), { state: 'stopped' })
    assert.deepEqual(await tracesOf(handle), [])
    await driver.destroy(handle)
    await driver.close()
    await fs.rm(root, { recursive: true })
  })
})

/** The files in a folder that hold a text. */
async function grep(folder: string, text: string): Promise<readonly string[]> {
  const found: string[] = []
  for (const entry of await fs.readdir(folder, { withFileTypes: true, recursive: true })) {
    const file = path.join(entry.parentPath, entry.name)
    if (entry.isFile() && (await fs.readFile(file, 'latin1')).includes(text)) found.push(file)
  }
  return found
}

/** Who listens on this host on one of these ports, as the kernel tells it. */
async function listeners(ports: readonly number[]): Promise<readonly string[]> {
  const found: string[] = []
  for (const [protocol, listening] of [['tcp', '0A'], ['udp', '07']] as const) // biome-ignore format: a table
    for (const line of (await fs.readFile(`/proc/net/${protocol}`, 'utf8')).split('\n').slice(1)) {
      const [, local = '', , state] = line.trim().split(/\s+/)
      const [address = '', port = ''] = local.split(':')
      const number = Number.parseInt(port, 16)
      if (state !== listening || !ports.includes(number)) continue
      const bytes = Buffer.from(address, 'hex').reverse()
      found.push(`${protocol} ${bytes.join('.')}:${number}`)
    }
  return found.sort()
}

// Builds both tiny images, also after a killed build, and boots them with plain QEMU without acceleration. The packages
// are shared by all tests of this machine.
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, it } from 'node:test'
import { tinyCache } from '../../test/support/guests/guest.ts'
import { freePort } from '../../test/support/tools/free-port.ts'
import {
  architectures,
  buildGuest,
  type GuestImage,
  type GuestName,
  guestImage,
  guests,
  missingPrograms,
} from './build.ts'
import { digestOf } from './digest.ts'
import { fetchPackages } from './packages.ts'

const { signal } = new AbortController()
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-tiny-'))
const cache = tinyCache
const rootOffsetBytes = 16 * 1024 * 1024

/** A folder to build in, with the cached packages. */
function builder(name: string): string {
  const folder = path.join(work, name)
  fs.mkdirSync(folder)
  for (const kept of architectures.flatMap((architecture) => [`kernel-${architecture}`, `tiny-${architecture}`]))
    fs.symlinkSync(path.join(cache, `packages-${kept}`), path.join(folder, `packages-${kept}`))
  return folder
}

const isOurs = (name: string): boolean => !name.startsWith('packages-')

before(async () => {
  assert.deepEqual(await missingPrograms(), [])
  for (const architecture of architectures)
    await fetchPackages({ folder: cache, guest: guests[`tiny-${architecture}`], signal, progress: () => undefined })
})
after(() => fs.rmSync(work, { recursive: true, force: true }))

/** Starts a build, kills it when it prints `when` (and waits there), and checks the leftovers. */
async function killBuild(folder: string, name: GuestName, when: string): Promise<void> {
  const script = `import { buildGuest } from ${JSON.stringify(new URL('build.ts', import.meta.url).href)}
    import fs from 'node:fs'
    const { signal } = new AbortController()
    const [, folder, name, when] = process.argv
    const progress = (line) => {
      fs.writeSync(1, line + '\\n')
      if (line.startsWith(when)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    }
    await buildGuest({ folder, name, signal, progress })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, folder, name, when], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const line of createInterface(child.stdout)) if (line.startsWith(when)) break
  child.kill('SIGKILL')
  await once(child, 'close')
  assert.equal(await guestImage(folder, name), undefined)
  assert.match(fs.readdirSync(folder).filter(isOurs).join(), /^\.tiny-\w+\.\d+-\w+\.\w{6}$/)
}

it('a build that is called off leaves nothing', async () => {
  const folder = builder('aborted')
  const calledOff = new AbortController()
  const progress = (line: string): void => (line.startsWith('unpacking') ? calledOff.abort() : undefined)
  await assert.rejects(buildGuest({ folder, name: 'tiny-amd64', signal: calledOff.signal, progress }), {
    name: 'AbortError',
  })
  assert.deepEqual(fs.readdirSync(folder).filter(isOurs), [])
})

const machines = {
  amd64: {
    program: 'qemu-system-x86_64',
    args: ['-machine', 'q35', '-cpu', 'qemu64,+rdrand'],
    killAt: 'unpacking',
    grow: 'sudo growpart /dev/vda 1 && sudo resize2fs /dev/vda1',
  },
  // Grows by itself, soon after SSH is up.
  arm64: {
    program: 'qemu-system-aarch64',
    args: ['-machine', 'virt', '-cpu', 'cortex-a57'],
    killAt: 'making the disk',
    grow: 'until grep -q grow-root: /run/rc.late.log; do sleep 0.1; done; cat /run/rc.late.log',
  },
} as const

/** A guest on the image's disk, with the serial line on standard input and output and QMP on a socket. */
class Guest {
  readonly #child: ChildProcess
  readonly #socket: string
  readonly port: number
  readonly exited: Promise<unknown[]>
  #said = ''
  #heard: () => void = () => undefined

  constructor(folder: string, image: GuestImage, port: number) {
    const { program, args } = machines[image.architecture]
    const inside = (name: string): string => path.join(folder, name)
    this.port = port
    this.#socket = inside('qmp')
    const boot = ['-kernel', inside(image.boot.kernel), '-initrd', inside(image.boot.initrd)]
    const disk = `if=none,id=disk,format=raw,file=${inside(image.disk)}`
    const network = `user,id=net,hostfwd=tcp:127.0.0.1:${port}-:22`
    const devices = ['-device', 'virtio-blk-pci,drive=disk', '-device', 'virtio-net-pci,netdev=net,romfile=']
    const rest = ['-accel', 'tcg', '-m', '256', '-nodefaults', '-display', 'none', '-serial', 'stdio']
    const own = ['-append', image.boot.commandLine, '-drive', disk, '-netdev', network]
    const control = ['-qmp', `unix:${this.#socket},server=on,wait=off`]
    this.#child = spawn(program, [...args, ...rest, ...boot, ...own, ...devices, ...control])
    this.exited = once(this.#child, 'close')
    this.#child.stderr?.on('data', (chunk: Buffer) => process.stderr.write(chunk))
    this.#child.stdout?.on('data', (chunk: Buffer) => {
      this.#said += chunk
      this.#heard()
    })
  }

  /** Resolves with the output up to and including the pattern, and discards it. */
  async wait(pattern: RegExp): Promise<string> {
    for (;;) {
      const found = pattern.exec(this.#said)
      if (found) {
        const end = found.index + found[0].length
        const text = this.#said.slice(0, end)
        this.#said = this.#said.slice(end)
        return text
      }
      await new Promise<void>((resolve) => {
        this.#heard = resolve
      })
    }
  }

  type(line: string): void {
    this.#child.stdin?.write(`${line}\n`)
  }

  /** Runs a line in the shell on the serial line. The mark is written in two parts, so that its echo does not match. */
  async run(line: string): Promise<string> {
    this.type(`${line}; echo "en""d of line $?"`)
    return this.wait(/end of line \d+/)
  }

  /** The first line of the SSH port. The forwarder accepts before the guest does, so attempts overlap. */
  async banner(): Promise<string> {
    const sockets: net.Socket[] = []
    const { promise, resolve } = Promise.withResolvers<string>()
    const timer = setInterval(() => {
      const socket = net.connect(this.port, '127.0.0.1').on('error', () => undefined)
      sockets.push(socket.once('data', (chunk) => resolve(chunk.toString())))
    }, 200)
    try {
      return await Promise.race([promise, this.exited.then(() => 'QEMU ended')])
    } finally {
      clearInterval(timer)
      for (const socket of sockets) socket.destroy()
    }
  }

  pressPower(): void {
    const socket = net.connect(this.#socket)
    for (const execute of ['qmp_capabilities', 'system_powerdown']) socket.write(`${JSON.stringify({ execute })}\n`)
    socket.on('error', () => undefined).resume()
    this.exited.finally(() => socket.destroy())
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}

for (const architecture of architectures)
  describe(`tiny-${architecture}`, () => {
    const name = `tiny-${architecture}` as const
    const folder = builder(architecture)
    const own = path.join(folder, name)
    const disk = path.join(own, 'disk.raw')
    const onDisk = (command: string): string =>
      execFileSync('debugfs', ['-R', command, `${disk}?offset=${rootOffsetBytes}`], { encoding: 'utf8', stdio: 'pipe' })

    it(`tiny-${architecture} is built whole after a build that was killed, without the network, and not built again`, async () => {
      await killBuild(folder, name, machines[architecture].killAt)
      const said: string[] = []
      await buildGuest({ folder, name, signal, progress: (line) => said.push(line) })
      await buildGuest({ folder, name, signal, progress: (line) => said.push(line) })
      assert.deepEqual(
        said.map((line) => line.split(' ')[0]),
        ['unpacking', 'making'],
      )
      const image = await guestImage(folder, name)
      assert.equal(image?.virtualSizeBytes, fs.statSync(disk).size)
      assert.equal(image.digest, `sha256:${await digestOf(disk, signal)}`)
      assert.ok(fs.statSync(disk).blocks * 512 < 60_000_000)
      assert.deepEqual(fs.readdirSync(folder).filter(isOurs), [name])
    })

    it(`tiny-${architecture} belongs to whom it should, whoever built it`, () => {
      assert.match(onDisk('stat /usr/bin/sudo'), /Mode: +04755[\s\S]*User: +0 +Group: +0/)
      assert.match(onDisk('stat /home/admin'), /User: +1000 +Group: +1000/)
      assert.match(onDisk('stat /etc/shadow'), /Mode: +0600[\s\S]*User: +0/)
    })

    it(`tiny-${architecture} boots to SSH, lets in, grows, keeps what is written, and goes down by its power button`, async (t) => {
      fs.truncateSync(disk, 2 * 1024 ** 3)
      const image = await guestImage(folder, name)
      assert.ok(image)
      const guest = new Guest(own, image, await freePort())
      t.after(() => guest.kill())
      assert.match(await guest.banner(), /^SSH-2\.0/)
      await guest.wait(/SSH is up on port 22/)
      await guest.wait(/login: /)
      guest.type('admin')
      await guest.wait(/Password: /)
      guest.type('admin')
      await guest.wait(/\$ /)
      assert.match(await guest.run('id -un; sudo id -un; uname -m'), /admin\s+root\s+(x86_64|aarch64)\s/)
      assert.match(await guest.run(machines[architecture].grow), /is now \d+ \(4k\) blocks long[\s\S]*end of line 0/)
      assert.match(await guest.run('df -h /'), / 2\.0G|1\.9G /)
      await guest.run('echo kept > kept')
      guest.pressPower()
      assert.deepEqual(await guest.exited, [0, null])
      assert.equal(onDisk('cat /home/admin/kept'), 'kept\n')
      assert.match(onDisk('show_super_stats -h'), /Filesystem state: +clean/)
      assert.doesNotMatch(onDisk('show_super_stats -h'), /needs_recovery/)
    })
  })

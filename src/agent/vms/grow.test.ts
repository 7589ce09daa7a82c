// Growing file systems in guests: parsing their output, the commands through SSH, and hiding the password.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import net, { type AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import ssh2 from 'ssh2'
import {
  growInside,
  growScript,
  parseSizes,
  parseSystem,
  problemWith,
  systemScript,
} from '../../drivers/guest-growth.ts'
import { type GrowthRequest, growGuest, withoutPassword } from './grow.ts'

const shell = (script: string, ...args: string[]) => promisify(execFile)('sh', [...args, '-c', script])

describe('growing a file system', () => {
  it('growing a file system in a guest recognizes supported systems, and names unsupported ones', async () => {
    assert.deepEqual(parseSystem('Welcome!\nsvc3-system Darwin 501\n'), { name: 'Darwin', isRoot: false })
    const { stdout } = await shell(systemScript)
    assert.equal(parseSystem(stdout).name, process.platform === 'darwin' ? 'Darwin' : 'Linux')
    assert.throws(() => parseSystem('svc3-system FreeBSD 0'), /FreeBSD/)
    assert.throws(() => parseSystem(''), /no answer/)
  })

  it('growing a file system in a guest succeeds if the file system grew, or had its full size already', () => {
    const sizes = parseSizes('resize2fs …\nsvc3-sizes 1000 1900 2000\n')
    assert.deepEqual(sizes, { beforeKb: 1000, afterKb: 1900, diskKb: 2000 })
    assert.equal(problemWith(sizes), undefined)
    assert.equal(problemWith({ beforeKb: 1900, afterKb: 1900, diskKb: 2000 }), undefined)
    assert.match(problemWith({ beforeKb: 1000, afterKb: 1000, diskKb: 2000 }) ?? '', /1000 KiB as before/)
    assert.throws(() => parseSizes('no such command'), /no such command/)
  })

  it('growing a file system in a guest uses valid shell scripts that can be put in single quotes', async () => {
    for (const script of Object.values(growScript)) {
      assert.ok(!script.includes("'"))
      await shell(script, '-n')
    }
  })

  it('growing a file system in a guest does not repeat a password', () => {
    assert.equal(withoutPassword('sudo: s3cret: not found', 's3cret'), 'sudo: …: not found')
    assert.equal(withoutPassword('text', ''), 'text')
  })

  it('growing a file system in a guest ends when it is aborted while it waits for the guest', async () => {
    const growth = { host: '127.0.0.1', port: 1, user: 'admin', password: 'x', diskGb: 2 }
    await assert.rejects(growGuest(growth, AbortSignal.timeout(50)), { name: 'TimeoutError' })
  })
})

describe('growing through an agent in the guest', () => {
  const inside = (answers: readonly string[]) => {
    const scripts: string[] = []
    const shell = async (script: string): Promise<string> => {
      scripts.push(script)
      const answer = answers[scripts.length - 1]
      if (answer === undefined) throw new Error('the guest has no agent')
      return answer
    }
    return { scripts, grown: growInside(shell, AbortSignal.timeout(10_000)) }
  }

  it('growing through an agent in the guest runs the script of the system, and needs no login', async () => {
    const { scripts, grown } = inside(['svc3-system Darwin 0\n', 'svc3-sizes 1000 2000 2100\n'])
    assert.equal(await grown, undefined)
    assert.deepEqual(scripts, [systemScript, growScript.Darwin])
  })

  it('growing through an agent in the guest says what to type where it is impossible or had no effect', async () => {
    assert.match((await inside([]).grown) ?? '', /has no agent.*diskutil repairDisk disk0.*resizeContainer disk0s2 0/)
    const { grown } = inside(['svc3-system Darwin 0\n', 'svc3-sizes 1000 1000 2100\n'])
    assert.match((await grown) ?? '', /has 1000 KiB as before/)
    const shell = () => Promise.reject(new Error('aborted'))
    await assert.rejects(growInside(shell, AbortSignal.abort()), { name: 'AbortError' })
  })
})

describe('growing through SSH', () => {
  let server: ssh2.Server
  let growth: GrowthRequest
  let logins = 0
  const commands: { readonly command: string; readonly input: string }[] = []
  const answers = new Map<string, { readonly out?: string; readonly error?: string; readonly code: number }>()

  before(async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const hostKey = privateKey.export({ type: 'pkcs1', format: 'pem' }).toString()
    server = new ssh2.Server({ hostKeys: [hostKey] }, (client) => {
      client.on('error', () => undefined)
      client.on('authentication', (attempt) => {
        logins++
        if (attempt.method === 'password' && attempt.password === 'p@ssword-canary') attempt.accept()
        else attempt.reject(['password'])
      })
      client.on('session', (accept) => {
        accept().on('exec', (acceptExec, _reject, { command }) => {
          const channel = acceptExec()
          let input = ''
          channel.on('data', (data: Buffer) => (input += data))
          channel.on('end', () => {
            commands.push({ command, input })
            const [, answer] = [...answers].find(([word]) => command.includes(word)) ?? []
            channel.write(answer?.out ?? '')
            channel.stderr.write(answer?.error ?? '')
            channel.exit(answer?.code ?? 127)
            channel.end()
          })
        })
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    growth = { host: '127.0.0.1', port, user: 'admin', password: 'p@ssword-canary', diskGb: 2 }
  })
  after(() => server.close())

  const grow = (more: Partial<GrowthRequest> = {}) => growGuest({ ...growth, ...more }, AbortSignal.timeout(120_000))
  const script = (sizes: string, user = '501'): void => {
    commands.length = 0
    answers.clear()
    answers.set('uname', { out: `svc3-system Linux ${user}\n`, code: 0 })
    answers.set('mountinfo', { out: sizes, code: 0 })
  }

  it("growing through SSH sends the password only to sudo's standard input", async () => {
    script('svc3-sizes 1000 2000 2100\n')
    assert.equal(await grow(), undefined)
    const [, second] = commands
    assert.match(second?.command ?? '', /^sudo -k -S -p '' sh -c '/)
    assert.equal(second?.input, 'p@ssword-canary\n')
    assert.ok(!commands.some(({ command }) => command.includes('canary')))
  })

  it('growing through SSH needs no password as root', async () => {
    script('svc3-sizes 1000 2000 2100\n', '0')
    assert.equal(await grow(), undefined)
    assert.deepEqual(
      commands.map(({ input }) => input),
      ['', ''],
    )
    assert.ok(!commands.some(({ command }) => command.includes('sudo')))
  })

  it('growing through SSH reports what failed and what to do manually, without the password', async () => {
    script('svc3-sizes 1000 1000 2100\n')
    assert.match((await grow()) ?? '', /has 1000 KiB as before.*growpart/)
    answers.set('mountinfo', { error: 'sudo: p@ssword-canary: command not found\n', code: 1 })
    const text = (await grow()) ?? ''
    assert.match(text, /The disk has grown.*command not found/)
    assert.ok(!text.includes('canary'))
    assert.match((await grow({ password: 'wrong' })) ?? '', /refused user "admin" or the password/)
  })

  it("growing through SSH sends no password to another program on the VM's port", async () => {
    script('svc3-sizes 1000 2000 2100\n')
    const before = logins
    assert.match((await grow({ isOwn: async () => false })) ?? '', /port \d+ of the node is not open by the VM/)
    assert.deepEqual([logins - before, commands], [0, []])
    // The first two answers are given while it connects, and after that.
    const said = [false, false, new Error('nobody knows while the network starts'), new Error('nor then')]
    const isOwn = async (): Promise<boolean> => {
      const next = said.shift() ?? true
      if (next instanceof Error) throw next
      return next
    }
    assert.equal(await grow({ isOwn }), undefined)
    assert.ok(logins > before)
  })

  it('growing through SSH destroys the connection to a guest that does not answer the goodbye', async () => {
    script('svc3-sizes 1000 2000 2100\n', '0')
    const sockets: net.Socket[] = []
    const cut = Promise.withResolvers<void>()
    let timer: NodeJS.Timeout | undefined
    // Forwards data, but not the end of the stream.
    const wire = net.createServer({ allowHalfOpen: true }, (near) => {
      const far = net.connect(growth.port, growth.host)
      for (const socket of [near, far]) sockets.push(socket.on('error', () => undefined))
      near.on('data', (data) => far.write(data))
      far.on('data', (data) => near.write(data))
      // The first connection only checks the greeting. Writing to a destroyed connection is an error.
      if (sockets.length < 4) return
      near.once('end', () => {
        timer = setInterval(() => near.write('x'), 50)
      })
      near.once('error', () => cut.resolve())
    })
    await new Promise<void>((resolve) => wire.listen(0, '127.0.0.1', resolve))
    try {
      assert.equal(await grow({ port: (wire.address() as AddressInfo).port }), undefined)
      await cut.promise
    } finally {
      clearInterval(timer)
      for (const socket of sockets) socket.destroy()
      wire.close()
    }
  })
})

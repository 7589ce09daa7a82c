// Shells and screens through the service: real WebSockets to a fake guest, and a stand-in for ssh.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { after, before, beforeEach, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { type FakeHostOptions, run } from '../../test/support/rigs/cli-host.ts'
import { startTunnelService, type TunnelService } from '../../test/support/stand-ins/tunnel.ts'
import { ApiError } from '../api/errors.ts'
import { ConnectionError } from '../client/transport.ts'
import { quoted } from '../rules/shell-word.ts'
import { offerPassword } from './commands/vm/reach/askpass.ts'
import { dialUntilGreeted } from './commands/vm/reach/greeting.ts'
import { knownHostsFile } from './commands/vm/reach/known-hosts.ts'
import { sshArguments } from './commands/vm/reach/ssh-line.ts'

let service: TunnelService
let folder: string
before(async () => {
  service = await startTunnelService()
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-reach-'))
})
after(async () => {
  await service[Symbol.asyncDispose]()
  fs.rmSync(folder, { recursive: true })
})
beforeEach(() => {
  service.asked.length = 0
  service.refuse = undefined
})

const environment = () => ({ SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token })
const svc3 = (words: readonly string[], options: FakeHostOptions = {}) =>
  run(['vm', ...words], { ...options, env: { ...environment(), ...options.env } })
const greeting = 'SSH-2.0-tiny\r\n'

describe('vm connect', () => {
  it('vm connect joins standard input and output with the guest', async () => {
    service.guest = (guest) => {
      guest.send(greeting)
      guest.on('message', (bytes: Buffer) => guest.send(`echo ${bytes}`))
    }
    const { exitCode, stdout, stderr } = await svc3(['connect', 'demo'], { input: 'SSH-2.0-me\r\n' })
    assert.deepEqual([exitCode, stdout, stderr], [0, `${greeting}echo SSH-2.0-me\r\n`, ''])
    assert.deepEqual(service.asked, ['ssh'])
  })

  it('vm connect dials again until the SSH server speaks', async () => {
    service.refuse = (count) => (count === 2 ? new ApiError('ServiceUnavailable', 'nothing listens yet') : undefined)
    service.guest = (guest, _, count) => {
      if (count < 3) return guest.close()
      guest.send(greeting)
      guest.close()
    }
    const { exitCode, stdout } = await svc3(['connect', 'demo'])
    assert.deepEqual([exitCode, stdout, service.asked.length], [0, greeting, 3])
  })

  it('vm connect does not wait for the screen to speak first', async () => {
    service.guest = (guest) => guest.on('message', (bytes: Buffer) => guest.send(bytes))
    const { stdout } = await svc3(['connect', 'demo', '--port', 'vnc'], { input: 'RFB 003.008\n' })
    assert.deepEqual([stdout, service.asked], ['RFB 003.008\n', ['vnc']])
  })

  it('vm connect shows refusals at once', async () => {
    const missing = await svc3(['connect', 'nobody'])
    assert.equal(missing.exitCode, 5)
    assert.match(missing.stderr, /^svc3: VM nobody not found\nsvc3: Run svc3 vm list to see all VMs\n$/)
    assert.equal((await svc3(['connect', 'demo'], { env: { SVC3_TOKEN: 'bad' } })).exitCode, 3)
    service.refuse = () => new ApiError('Conflict', 'vm "demo" is stopped', { hint: 'svc3 vm start starts it' })
    const stopped = await svc3(['connect', 'demo'])
    assert.deepEqual(
      [stopped.exitCode, stopped.stderr],
      [6, 'svc3: vm "demo" is stopped\nsvc3: svc3 vm start starts it\n'],
    )
    const nobody = await svc3(['connect', 'demo'], { env: { SVC3_API_URL: 'http://127.0.0.1:1' } })
    assert.equal(nobody.exitCode, 1)
    assert.match(nobody.stderr, /Cannot reach http:\/\/127\.0\.0\.1:1/)
  })

  it('vm connect carries every byte in both directions, as a process', async () => {
    const bytes = randomBytes(2_000_000)
    const hash = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex')
    const received = Promise.withResolvers<string>()
    service.guest = (guest) => {
      const chunks: Buffer[] = []
      let length = 0
      guest.send(bytes)
      guest.on('message', (chunk: Buffer) => {
        chunks.push(chunk)
        length += chunk.length
        if (length === bytes.length) received.resolve(hash(Buffer.concat(chunks)))
      })
    }
    const entry = path.resolve(import.meta.dirname, '../bin/svc3.ts')
    const child = spawn(process.execPath, [entry, 'vm', 'connect', 'demo', '--port', 'vnc'], {
      env: { ...environment(), NODE_NO_WARNINGS: '1' },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    child.stdin.write(bytes)
    const chunks: Buffer[] = []
    let length = 0
    for await (const chunk of child.stdout) {
      chunks.push(chunk)
      length += (chunk as Buffer).length
      if (length === bytes.length) break
    }
    assert.equal(hash(Buffer.concat(chunks)), hash(bytes))
    assert.equal(await received.promise, hash(bytes))
    child.stdin.end()
    const [code] = await once(child, 'exit')
    assert.equal(code, 0)
  })
})

describe('SSH greeting', () => {
  const silent = (): Duplex => new Duplex({ read: () => undefined, write: (_, __, done) => done() })
  const patience = { vm: 'demo', signal: new AbortController().signal, totalMs: 500, tryMs: 10, pauseMs: 5 }

  it('an SSH greeting that never comes is a timeout, and no connection is left open', async () => {
    const streams: Duplex[] = []
    const dial = async () => {
      streams.push(silent())
      return streams.at(-1) as Duplex
    }
    await assert.rejects(dialUntilGreeted(dial, patience), { reason: 'Timeout', message: /VM demo .* within 0\.5 s/ })
    assert.ok(streams.length > 1 && streams.every((stream) => stream.destroyed))
  })

  it('waiting for the SSH greeting keeps the last reason, and stops at once on a permanent one', async () => {
    const lost = async () => {
      throw new ConnectionError('lost', 'x', 'the connection was lost', 'try again')
    }
    await assert.rejects(dialUntilGreeted(lost, patience), { reason: 'Timeout', message: /the connection was lost$/ })
    let tries = 0
    const refused = async () => {
      tries++
      throw new ConnectionError('refused', 'x', 'nobody there', 'start it')
    }
    await assert.rejects(dialUntilGreeted(refused, patience), { fault: 'refused' })
    assert.equal(tries, 1)
  })

  it('waiting for the SSH greeting shows why the service cannot reach the guest, unless the connection says more', async () => {
    const why = async () => ({ what: 'the guest has no IP address (no lease)', next: 'Wait while it boots' })
    const shown: string[] = []
    const onRetry = (problem: string) => void shown.push(problem)
    await assert.rejects(
      dialUntilGreeted(async () => silent(), { ...patience, why, onRetry }),
      {
        message: /within 0\.5 s: the guest has no IP address \(no lease\)$/,
        hint: 'Wait while it boots',
      },
    )
    assert.deepEqual([shown[0], shown.at(-1)], ['no answer', 'the guest has no IP address (no lease)'])
    const lost = async () => {
      throw new ConnectionError('lost', 'x', 'the connection was lost', 'try again')
    }
    await assert.rejects(dialUntilGreeted(lost, { ...patience, why }), {
      message: /the connection was lost$/,
      hint: /svc3 vm logs demo/,
    })
    const silentService = async () => {
      throw new Error('the service does not answer')
    }
    await assert.rejects(
      dialUntilGreeted(async () => silent(), { ...patience, why: silentService }),
      { message: /: no answer$/ },
    )
  })

  it('the SSH greeting can still be read after it was waited for', async () => {
    const stream = silent()
    stream.push('SSH-2.0-a\r\n')
    const greeted = await dialUntilGreeted(async () => stream, { ...patience, totalMs: 120_000, tryMs: 120_000 })
    stream.push('more')
    stream.push(null)
    assert.equal(await text(greeted), 'SSH-2.0-a\r\nmore')
  })
})

describe('ssh command line', () => {
  const line = {
    self: ['/opt/my node/bin/node', '/opt/100%/svc3.cjs'],
    vm: { name: 'demo', uid: 'uid-1', diskGeneration: 2 },
    namespace: 'svc-ios',
    user: 'admin',
    knownHosts: '/home/a b/known',
    hasPassword: false,
    wantsTerminal: false,
    command: [],
  }

  it('the command line of ssh goes through this program, and keeps the key by uid', () => {
    const words = sshArguments(line)
    assert.ok(words.every((word, index) => word !== '-o' || words[index + 1]?.includes('=')))
    const options = words.filter((word) => word.includes('='))
    assert.deepEqual(options, [
      "ProxyCommand='/opt/my node/bin/node' /opt/100%%/svc3.cjs vm connect demo --port ssh --namespace svc-ios --quiet",
      'HostKeyAlias=demo',
      'UserKnownHostsFile="/home/a b/known"',
      'GlobalKnownHostsFile=/dev/null',
      'StrictHostKeyChecking=accept-new',
      'ControlPath=none',
      'LogLevel=ERROR',
    ])
    assert.deepEqual(words.slice(-3), ['-l', 'admin', 'demo'])
  })

  it('the command line of ssh passes commands unchanged, and asks once for a given password', () => {
    const words = sshArguments({ ...line, command: ['-x', 'a b'], wantsTerminal: true, hasPassword: true })
    assert.deepEqual(words.slice(-7), ['-t', '-l', 'admin', 'demo', '--', '-x', 'a b'])
    assert.ok(words.includes('PubkeyAuthentication=no') && words.includes('NumberOfPasswordPrompts=1'))
    assert.ok(sshArguments({ ...line, knownHosts: undefined }).includes('UserKnownHostsFile="/dev/null"'))
  })

  it('the command line of ssh quotes for a shell', async () => {
    const odd = ["it's", 'a b', '$(id)', '', 'x"y', 'back\\slash', '*', 'plain-1.2']
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', `printf '%s\\n' ${odd.map(quoted).join(' ')}`])
    assert.deepEqual(stdout.split('\n').slice(0, -1), odd)
  })
})

describe('vm ssh', () => {
  /** A stand-in for ssh: records its arguments, asks for the password if there is a helper, and ends with 7. */
  function standIn(): Record<string, string> {
    const bin = fs.mkdtempSync(path.join(folder, 'bin-'))
    const script = `#!/bin/sh
printf '%s\\n' "$@" > "${bin}/words"
env > "${bin}/env"
if [ -n "$SSH_ASKPASS" ]; then
  cat > "${bin}/input"
  "$SSH_ASKPASS" "admin's password: " > "${bin}/password"
fi
exit 7
`
    fs.writeFileSync(path.join(bin, 'ssh'), script, { mode: 0o755 })
    return { PATH: `${bin}:${process.env.PATH}`, XDG_CONFIG_HOME: path.join(bin, 'config'), BIN: bin }
  }
  const noted = (env: Record<string, string>, name: string): string =>
    fs.readFileSync(path.join(env.BIN ?? '', name), 'utf8')

  beforeEach(() => {
    service.guest = (guest) => guest.send(greeting)
  })

  it('vm ssh shows on a terminal that it waits for a guest that is not known to have booted', async () => {
    service.guest = (guest, _, count) => (count < 3 ? guest.close() : guest.send(greeting))
    const options = { env: standIn(), terminal: { stdin: true, stdout: true } }
    const first = await svc3(['ssh', 'demo'], options)
    assert.deepEqual([first.exitCode, service.asked.length], [7, 3])
    assert.ok(first.stderr.includes('VM demo: waiting for SSH'), first.stderr)
    assert.ok(first.stderr.endsWith('\r\x1b[2K'), first.stderr)
    const running = service.vm
    const at = '2026-11-15T09:00:00Z'
    const conditions = [{ type: 'Booted', status: 'True', reason: 'SshAnswers', message: 'It answers', at }] as const
    service.vm = { ...running, conditions: [...conditions] }
    const later = await svc3(['ssh', 'demo'], options)
    assert.deepEqual([later.exitCode, later.stderr, service.asked.length], [7, '', 3])
    const message = 'no lease'
    const unreachable = { type: 'GuestReachable', status: 'False', reason: 'NoAddress', message, at } as const
    service.vm = { ...running, conditions: [...conditions, unreachable] }
    service.asked.length = 1
    service.guest = (guest, _, count) => (count < 5 ? guest.close() : guest.send(greeting))
    const waiting = await svc3(['ssh', 'demo'], options)
    assert.match(waiting.stderr, /VM demo: waiting for SSH: the guest has no IP address \(no lease\)/)
    service.asked.length = 3
    service.guest = (guest) => guest.send(greeting)
    const lost = { type: 'NodeReady', status: 'False', reason: 'NodeLost', message: 'Node mini-1 is lost', at } as const
    service.vm = { ...running, conditions: [...conditions, lost] }
    await svc3(['ssh', 'demo'], options)
    service.vm = running
    assert.equal(service.asked.length, 4)
  })

  it('vm ssh and vm connect show why they wait: once in a pipe, in one line on a terminal, not with --quiet', async () => {
    const reason = 'Node mini-1 of VM demo is not responding'
    service.refuse = (count) => (count < 3 ? new ApiError('ServiceUnavailable', reason) : undefined)
    service.guest = (guest) => {
      guest.send(greeting)
      guest.close()
    }
    const text = `VM demo: waiting for SSH: ${reason}`
    for (const word of ['ssh', 'connect']) {
      const waited = async (options: FakeHostOptions, words: readonly string[] = []) => {
        service.asked.length = 0
        return (await svc3([word, 'demo', ...words], { env: standIn(), ...options })).stderr
      }
      assert.equal(await waited({}), `svc3: ${text}\n`)
      const shown = await waited({ terminal: { stdin: true, stdout: true }, columns: 100 })
      assert.ok(shown.startsWith(`\r\x1b[2K${text}`) && shown.endsWith('\r\x1b[2K'), JSON.stringify(shown))
      assert.equal(await waited({}, ['--quiet']), '')
    }
  })

  it('vm ssh explains why the guest does not answer, without messages of ssh', async () => {
    service.refuse = () => new ApiError('Conflict', 'VM demo is gone', { hint: 'Deploy another VM' })
    const env = standIn()
    const { exitCode, stderr } = await svc3(['ssh', 'demo'], { env })
    assert.deepEqual([exitCode, stderr], [6, 'svc3: VM demo is gone\nsvc3: Deploy another VM\n'])
    assert.ok(!fs.existsSync(path.join(env.BIN ?? '', 'words')))
  })

  it('vm ssh runs ssh for the VM with this uid, and exits with its code', async () => {
    const env = standIn()
    const { exitCode, stdout, stderr } = await svc3(['ssh', 'demo', '-u', 'ci', '--', 'ls', '-la', '/a b'], {
      env,
      terminal: { stdin: true },
    })
    assert.deepEqual([exitCode, stdout, stderr], [7, '', ''])
    const words = noted(env, 'words').split('\n').slice(0, -1)
    assert.deepEqual(words.slice(-7), ['-l', 'ci', 'demo', '--', 'ls', '-la', '/a b'])
    assert.ok(words.includes('HostKeyAlias=demo'))
    assert.ok(words.includes(`UserKnownHostsFile="${env.XDG_CONFIG_HOME}/svc3/known-hosts/uid-of-demo.1"`))
    assert.ok(
      words.includes(
        'ProxyCommand=/nowhere/node /nowhere/svc3/dist/svc3.cjs vm connect demo --port ssh --namespace svc-default --quiet',
      ),
    )
    assert.doesNotMatch(noted(env, 'env'), /SSH_ASKPASS/)
  })

  it('vm ssh passes a password by askpass: not in arguments, environment or files', async () => {
    const env = standIn()
    const { exitCode } = await svc3(['ssh', 'demo', '--password-stdin', '--', 'true'], {
      env,
      input: 'planted-secret\n',
    })
    assert.equal(exitCode, 7)
    assert.equal(noted(env, 'password'), 'planted-secret\n')
    assert.equal(noted(env, 'input'), '')
    for (const name of ['words', 'env']) assert.doesNotMatch(noted(env, name), /planted-secret/)
    const [, helper = ''] = /^SSH_ASKPASS=(.*)$/m.exec(noted(env, 'env')) ?? []
    assert.ok(helper && !fs.existsSync(path.dirname(helper)), helper)
  })

  it('vm ssh reports a missing ssh, a missing VM, and an unexpected argument', async () => {
    const none = await svc3(['ssh', 'demo'], { env: { PATH: folder } })
    assert.deepEqual([none.exitCode, none.stderr.split('\n')[0]], [1, 'svc3: Cannot run ssh (ENOENT)'])
    assert.equal((await svc3(['ssh', 'nobody'])).exitCode, 5)
    const running = service.vm
    service.vm = { ...running, powerState: 'stopped' }
    const stopped = await svc3(['ssh', 'demo'])
    service.vm = running
    assert.deepEqual(
      [stopped.exitCode, stopped.stderr.split('\n')[0]],
      [6, 'svc3: VM demo is stopped; SSH cannot connect'],
    )
    const slip = await svc3(['ssh', 'demo', 'uname'])
    assert.equal(slip.exitCode, 2)
    assert.match(slip.stderr, /Unexpected argument "uname" \(expected VM \[-- COMMAND…\]\)/)
  })
})

describe('askpass', () => {
  it('askpass is private, and removed afterwards', async () => {
    const askpass = await offerPassword('planted secret')
    const script = askpass.env.SSH_ASKPASS ?? ''
    assert.equal(fs.statSync(path.dirname(script)).mode & 0o777, 0o700)
    assert.ok(!fs.readFileSync(script, 'utf8').includes('planted'))
    const { stdout } = await promisify(execFile)(script, ['Password: '])
    assert.equal(stdout, 'planted secret\n')
    await askpass[Symbol.asyncDispose]()
    assert.ok(!fs.existsSync(path.dirname(script)))
  })
})

describe('known hosts', () => {
  it('known hosts are one file for each VM, and not too many', () => {
    const home = fs.mkdtempSync(path.join(folder, 'home-'))
    const file = knownHostsFile({ env: { HOME: home } }, 'uid/1') ?? ''
    assert.equal(file, `${home}/.config/svc3/known-hosts/uid%2F1`)
    const place = path.dirname(file)
    assert.equal(fs.statSync(place).mode & 0o777, 0o700)
    for (let index = 0; index < 500; index++) {
      fs.writeFileSync(path.join(place, `old-${index}`), '')
      fs.utimesSync(path.join(place, `old-${index}`), index, index)
    }
    knownHostsFile({ env: { HOME: home } }, 'uid-2')
    const left = fs.readdirSync(place)
    assert.deepEqual([left.length, left.includes('old-499'), left.includes('old-0')], [250, true, false])
    assert.equal(knownHostsFile({ env: {} }, 'uid-1'), undefined)
    assert.equal(knownHostsFile({ env: { HOME: '/dev/null' } }, 'uid-1'), undefined)
  })
})

describe('vm vnc', () => {
  it('vm vnc serves several viewers on a loopback port until Ctrl-C', async () => {
    service.guest = (guest, port, count) => {
      guest.send(`${port} ${count} `)
      guest.on('message', (bytes: Buffer) => guest.send(bytes))
    }
    const controller = new AbortController()
    const address = Promise.withResolvers<number>()
    const ended = svc3(['vnc', 'demo'], {
      interruption: controller.signal,
      onWrite: ({ stdout }) => {
        const [, port] = /^vnc:\/\/127\.0\.0\.1:(\d+)\n/.exec(stdout) ?? []
        if (port) address.resolve(Number(port))
      },
    })
    const port = await address.promise
    for (const count of [1, 2]) {
      const viewer = net.connect(port, '127.0.0.1')
      viewer.write('RFB')
      const wanted = `vnc ${count} RFB`
      let seen = ''
      for await (const chunk of viewer) {
        seen += chunk
        if (seen.length >= wanted.length) break
      }
      assert.equal(seen, wanted)
    }
    controller.abort()
    const { exitCode, stdout } = await ended
    assert.deepEqual([exitCode, stdout], [130, `vnc://127.0.0.1:${port}\n`])
  })

  it('vm vnc says why there is no screen', async () => {
    const { vnc: _, ...blind } = service.vm
    const seeing = service.vm
    service.vm = blind
    const { exitCode, stderr } = await svc3(['vnc', 'demo'])
    service.vm = seeing
    assert.deepEqual([exitCode, stderr], [6, 'svc3: VM demo has no screen\nsvc3: Deploy it without --disable-vnc\n'])
  })
})

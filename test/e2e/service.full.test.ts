// svc3 as a service of a host, as far as a machine without systemd at its head can tell: installed below a folder, started
// exactly as its unit says, heard by systemd's own programs when it is up, upgraded and removed.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import about from '../../package.json' with { type: 'json' }
import { type DevServer, makeFolder, startDev, svc3 } from '../support/processes/dev-server.ts'
import { eventually } from '../support/tools/eventually.ts'

const patience = 120_000
let folder: string
let root: string
let server: DevServer
let token: string
const children: ChildProcess[] = []
const inRoot = (file: string): string => path.join(root, file)
const unitFile = (kind: string): string => inRoot(`etc/systemd/system/svc3-${kind}.service`)

/** The words of a unit's ExecStart, with the paths that it has below the folder. */
async function commandOf(kind: string): Promise<string[]> {
  const line = /^ExecStart=(.*)$/m.exec(await fs.readFile(unitFile(kind), 'utf8'))?.[1] ?? ''
  assert.doesNotMatch(line, /["\\]/, 'this test reads plain words only')
  return line.split(' ').map((word) => (/^\/(usr\/local|var)\//.test(word) ? inRoot(word) : word))
}

/** What is sent to a socket as systemd has one for services. */
function listen(socket: string): () => string {
  const child = spawn('systemd-socket-activate', ['--datagram', '--listen', socket, 'sh', '-c', 'exec cat <&3'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  children.push(child)
  let heard = ''
  child.stdout.on('data', (chunk) => (heard += chunk))
  return () => heard
}

async function startUnit(kind: string): Promise<{ child: ChildProcess; heard: () => string; said: () => string }> {
  const socket = path.join(folder, `${kind}-notify`)
  const heard = listen(socket)
  await eventually(() => fs.access(socket), patience)
  const [program = '', ...words] = await commandOf(kind)
  const env = { PATH: process.env.PATH, NOTIFY_SOCKET: socket }
  const child = spawn(program, words, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  children.push(child)
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += chunk))
  return { child, heard, said: () => said }
}

before(async () => {
  folder = await makeFolder()
  root = path.join(folder, 'root')
  server = await startDev(path.join(folder, 'server'), { args: ['--nodes', 'amd64=0,arm64=0'] })
  const env = { SVC3_DATA: path.join(folder, 'server') }
  token = (await svc3(['node', 'join-token'], { env })).stdout.trim()
  assert.ok(token.length > 20)
})
after(async () => {
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  await server.kill('SIGTERM')
  await fs.rm(folder, { recursive: true, force: true })
})

describe('svc3 agent install', () => {
  it('svc3 agent install only tells what it would do with --dry-run', async () => {
    const words = ['agent', 'install', '--join-token-stdin', '--dry-run', '--root', root]
    const { code, stdout, stderr } = await svc3(words, { input: token })
    assert.equal(code, 0, stderr)
    assert.match(stdout, /svc3-agent\.service:\n[\s\S]*KillMode=process[\s\S]*Nothing was changed\.\n$/)
    assert.ok(!`${stdout}${stderr}`.includes(token))
    await assert.rejects(fs.access(root), { code: 'ENOENT' })
  })

  it('svc3 agent install makes a service that joins with a token nobody sees, and says when it is up', async () => {
    const place = ['--root', root, '--name', 'unit-1', '--driver', 'simulated', '--architecture', 'amd64']
    // No address: the string has it, and the node remembers it.
    const words = ['agent', 'install', '--join-token-stdin', ...place]
    const installed = await svc3(words, { input: token, env: { SVC3_DATA: '' } })
    assert.equal(installed.code, 0, installed.stderr)
    const tokenFile = inRoot('var/lib/svc3-agent/join-token')
    assert.equal(await fs.readFile(tokenFile, 'utf8'), `${token}\n`)
    const unit = await fs.readFile(unitFile('agent'), 'utf8')
    assert.ok(!unit.includes(token))
    assert.match(
      unit,
      /^ExecStart=\/usr\/local\/lib\/svc3\/agent\/current\/bin\/node /m,
      'needs the Node of the checkout',
    )

    const { child, heard, said } = await startUnit('agent')
    await eventually(async () => assert.match(heard(), /READY=1/, said()), patience)
    assert.match(heard(), /STATUS=node unit-1/)
    for (const file of ['cmdline', 'environ'])
      assert.ok(!(await fs.readFile(`/proc/${child.pid}/${file}`, 'latin1')).includes(token), file)
    await eventually(async () => {
      const { items } = (await server.call('GET', '/api/v1/namespaces/svc-default/nodes')).body
      const found = (items as { name: string; phase: string }[]).find(({ name }) => name === 'unit-1')
      assert.equal(found?.phase, 'READY', said())
    }, patience)
    await eventually(() => assert.rejects(fs.access(tokenFile), { code: 'ENOENT' }), patience)
    child.kill('SIGTERM')
    const [code] = await once(child, 'exit')
    assert.equal(code, 0, said())
    await eventually(async () => assert.match(heard(), /STOPPING=1/), patience)
  })

  it('svc3 agent install is known to "status", can be upgraded, and goes without its data', async () => {
    const status = await svc3(['agent', 'status', '--root', root, '-o', 'json'])
    assert.equal(status.code, 1)
    const [shown] = JSON.parse(status.stdout)
    assert.deepEqual([shown.name, shown.state, shown.version], ['svc3-agent', 'stopped', about.version])
    const upgraded = await svc3(['agent', 'upgrade', '--root', root])
    assert.deepEqual([upgraded.code, upgraded.stdout], [0, `svc3-agent: reinstalled ${about.version}\n`])
    const removed = await svc3(['agent', 'uninstall', '--root', root])
    assert.match(removed.stdout, /Its data remains in \/var\/lib\/svc3-agent/)
    await assert.rejects(fs.access(unitFile('agent')), { code: 'ENOENT' })
    await fs.access(inRoot('var/lib/svc3-agent/node.json'))
    assert.match((await svc3(['agent', 'upgrade', '--root', root])).stderr, /not installed here/)
  })
})

describe('svc3 server install', () => {
  it('svc3 server install makes a service that says when it is up', async () => {
    const words = ['server', 'install', '--root', root, '--listen', '127.0.0.1:0', '--plain-http']
    const installed = await svc3(words, { env: { SVC3_DATA: '' } })
    assert.equal(installed.code, 0, installed.stderr)
    const { child, heard, said } = await startUnit('server')
    await eventually(async () => assert.match(heard(), /READY=1/, said()), patience)
    assert.match(heard(), /STATUS=http:\/\/127\.0\.0\.1:\d+/)
    child.kill('SIGTERM')
    const [code] = await once(child, 'exit')
    assert.equal(code, 0, said())
  })
})

// Installing, upgrading and removing a service below a temporary folder: files, their permissions, commands to the
// supervisor, and rollback.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import {
  type Installation,
  type InstallRequest,
  installedAs,
  installSteps,
  uninstallSteps,
  upgrade,
} from './install.ts'
import { NotBuilt } from './program.ts'
import { supervisors } from './supervisors.ts'

const token = 'join-token-that-nobody-may-see'
const request: InstallRequest = {
  user: os.userInfo().username,
  dataDir: '/var/lib/svc3-agent',
  writes: [],
  words: ['agent', '--data', '/var/lib/svc3-agent', '--join-token-file', '/var/lib/svc3-agent/join-token'],
  secrets: [{ name: 'join-token', text: `${token}\n` }],
}

let folder: string
let calls: string[]
/** The result of each start. An error is thrown. */
let starts: (Error | undefined)[]

const at = (...parts: string[]): string => path.join(folder, 'root', ...parts)

const target = (packageDir: string, platform: 'linux' | 'darwin' = 'linux'): Installation => {
  const supervisor = supervisors[platform]
  assert.ok(supervisor)
  return {
    kind: 'agent',
    supervisor,
    packageDir,
    node: '/usr/bin/node',
    ownNode: process.execPath,
    root: at(),
    isLive: true,
    run: async (program, ...args) => {
      if (program === 'id') return String(args[0] === '-u' ? process.getuid?.() : process.getgid?.())
      if (program === 'getent') return 'kvm:x:104:'
      calls.push([program, ...args].join(' '))
      const isStart = args.includes('restart')
      const fault = isStart ? starts.shift() : undefined
      if (fault) throw fault
      return program === 'journalctl' ? 'what it said last' : ''
    },
    say: (line) => calls.push(`said: ${line}`),
  }
}

async function packaged(version: string): Promise<string> {
  const dir = path.join(folder, `package-${version}`)
  await fs.mkdir(path.join(dir, 'dist', 'cache'), { recursive: true })
  await fs.mkdir(path.join(dir, 'bin'))
  await fs.writeFile(path.join(dir, 'package.json'), JSON.stringify({ version }))
  await fs.writeFile(path.join(dir, 'dist', 'svc3.cjs'), `// ${version}`, { mode: 0o600 })
  await fs.writeFile(path.join(dir, 'dist', 'cache', 'compiled'), 'x')
  await fs.writeFile(path.join(dir, 'bin', 'svc3'), '#!/bin/sh\n', { mode: 0o755 })
  await fs.symlink('svc3', path.join(dir, 'bin', 'orka3'))
  return dir
}

async function install(version: string): Promise<void> {
  for (const step of await installSteps(target(await packaged(version)), request)) await step.run()
}

const modeOf = async (file: string): Promise<number> => (await fs.stat(file)).mode & 0o777
const programNow = (): Promise<string> => fs.readFile(at('usr/local/lib/svc3/agent/current/dist/svc3.cjs'), 'utf8')

beforeEach(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-install-'))
  calls = []
  starts = []
})
afterEach(() => fs.rm(folder, { recursive: true, force: true }))

describe('installing', () => {
  it('installing writes secrets only to files that no other user can read', async () => {
    await install('3.0.0')
    const unit = at('etc/systemd/system/svc3-agent.service')
    assert.equal(await modeOf(unit), 0o644)
    assert.equal(await modeOf(at('var/lib/svc3-agent')), 0o700)
    assert.equal(await modeOf(at('var/lib/svc3-agent/join-token')), 0o600)
    assert.equal(await fs.readFile(at('var/lib/svc3-agent/join-token'), 'utf8'), `${token}\n`)
    const all = await fs.readdir(at(), { recursive: true, withFileTypes: true })
    for (const entry of all.filter((each) => each.isFile() && each.name !== 'join-token'))
      assert.ok(!(await fs.readFile(path.join(entry.parentPath, entry.name), 'utf8')).includes(token), entry.name)
    const text = await fs.readFile(unit, 'utf8')
    assert.match(text, /^ExecStart=\/usr\/bin\/node \/usr\/local\/lib\/svc3\/agent\/current\/dist\/svc3\.cjs agent /m)
    assert.match(text, /^SupplementaryGroups=kvm$/m)
    assert.deepEqual(calls, ['systemctl daemon-reload', 'systemctl enable svc3-agent', 'systemctl restart svc3-agent'])
  })

  it('installing starts a server with the same flags of Node as bin/svc3', async () => {
    const [flag = ''] =
      /--max-semi-space-size=\d+/.exec(await fs.readFile(new URL('../../bin/svc3', import.meta.url), 'utf8')) ?? []
    const steps = await installSteps({ ...target(await packaged('3.0.0')), kind: 'server' }, request)
    const unit = steps.find(({ says }) => says.includes('ExecStart='))?.says ?? ''
    assert.ok(flag && unit.includes(`ExecStart=/usr/bin/node ${flag} /usr/local/lib/svc3/server/current`), unit)
  })

  it('installing copies the program so that the user of the service can run it, without the compile cache', async () => {
    await install('3.0.0')
    const current = at('usr/local/lib/svc3/agent/current')
    assert.equal(await modeOf(path.join(current, 'dist/svc3.cjs')), 0o644)
    assert.equal(await modeOf(path.join(current, 'bin/svc3')), 0o755)
    await assert.rejects(fs.access(path.join(current, 'dist/cache')), { code: 'ENOENT' })
    const installed = await installedAs(target('/nowhere'))
    assert.deepEqual(installed, { version: '3.0.0', dataDir: request.dataDir, user: request.user })
  })

  it('installing from a checkout copies its Node, too, so that the checkout is not needed', async () => {
    const dir = await packaged('3.0.0')
    const node = path.join(dir, 'node')
    await fs.writeFile(node, 'a program', { mode: 0o700 })
    const from = { ...target(dir), node: undefined, ownNode: node }
    for (const step of await installSteps(from, request)) await step.run()
    await fs.rm(dir, { recursive: true })
    const own = '/usr/local/lib/svc3/agent/current/bin/node'
    assert.equal(await modeOf(at(own)), 0o755)
    const unit = await fs.readFile(at('etc/systemd/system/svc3-agent.service'), 'utf8')
    assert.match(unit, new RegExp(`^ExecStart=${own} /usr/local/lib/svc3/agent/current/dist/svc3`, 'm'))
    assert.ok(!unit.includes(folder))
    assert.equal(await fs.readlink(at('/usr/local/lib/svc3/agent/current/bin/orka3')), 'svc3')
  })

  it('installing lists its steps and does nothing until they are run', async () => {
    const steps = await installSteps(target(await packaged('3.0.0')), request)
    const said = steps.map(({ says }) => says).join('\n')
    assert.match(said, /\/etc\/systemd\/system\/svc3-agent\.service:\n {4}# Written by/)
    assert.doesNotMatch(said, new RegExp(token))
    await assert.rejects(fs.access(at()), { code: 'ENOENT' })
  })

  it('installing shows the log of a service that does not start', async () => {
    starts = [new Error('Job for svc3-agent.service failed')]
    await assert.rejects(install('3.0.0'), /svc3-agent did not start\. Last log lines:\nwhat it said last/)
  })

  it('installing refuses a data folder of another user', async () => {
    await fs.mkdir(at('var/lib/svc3-agent'), { recursive: true })
    await fs.writeFile(at('var/lib/svc3-agent/node.json'), '{}')
    const there = target(await packaged('3.0.0'))
    const stranger: Installation = {
      ...there,
      run: async (program, ...args) => (program === 'id' ? '12345' : there.run(program, ...args)),
    }
    const [first] = await installSteps(stranger, request)
    await assert.rejects(async () => first?.run(), /belongs to another user.*--user/)
    await install('3.1.0')
  })

  it('installing refuses a package that is not built', async () => {
    const dir = await packaged('3.0.0')
    await fs.rm(path.join(dir, 'dist'), { recursive: true })
    await assert.rejects(
      async () => {
        for (const step of await installSteps(target(dir), request)) await step.run()
      },
      (error) => error instanceof NotBuilt,
    )
  })

  it('installing makes a property list on macOS', async () => {
    const steps = await installSteps(
      { ...target(await packaged('3.0.0'), 'darwin'), isLive: false },
      { ...request, secrets: [] },
    )
    for (const step of steps) await step.run()
    assert.match(await fs.readFile(at('Library/LaunchDaemons/io.svc3.agent.plist'), 'utf8'), /AbandonProcessGroup/)
    assert.equal(await modeOf(at('Library/Logs/svc3-agent')), 0o700)
  })
})

describe('upgrading', () => {
  it('upgrading replaces the program atomically and restarts the service with the same arguments', async () => {
    await install('3.0.0')
    const unit = await fs.readFile(at('etc/systemd/system/svc3-agent.service'), 'utf8')
    calls = []
    assert.deepEqual(await upgrade(target(await packaged('3.1.0'))), { from: '3.0.0', to: '3.1.0' })
    assert.equal(await programNow(), '// 3.1.0')
    assert.equal(await fs.readFile(at('etc/systemd/system/svc3-agent.service'), 'utf8'), unit)
    assert.ok(calls.includes('systemctl restart svc3-agent'))
    // The previous copy stays; older ones are deleted.
    await upgrade(target(await packaged('3.2.0')))
    const kept = (await fs.readdir(at('usr/local/lib/svc3/agent'))).map((name) => name.replace(/-[0-9a-f]{12}$/, ''))
    assert.deepEqual(kept.sort(), ['3.1.0', '3.2.0', 'current', 'install.json'])
  })

  it('upgrading rolls back if the new version does not start', async () => {
    await install('3.0.0')
    const unit = at('etc/systemd/system/svc3-agent.service')
    await fs.appendFile(unit, '# as it was\n')
    starts = [new Error('failed'), undefined]
    await assert.rejects(
      upgrade(target(await packaged('3.1.0'))),
      /svc3-agent 3\.1\.0 did not start; 3\.0\.0 is running again\. Last log lines of 3\.1\.0:\nwhat it said last/,
    )
    assert.equal(await programNow(), '// 3.0.0')
    assert.match(await fs.readFile(unit, 'utf8'), /# as it was\n$/)
    assert.equal(calls.filter((call) => call === 'systemctl restart svc3-agent').length, 3)
  })

  it('upgrading fails if the service is not installed', async () => {
    await assert.rejects(upgrade(target(await packaged('3.1.0'))), /not installed here\. Run svc3 agent install first/)
  })
})

describe('removing', () => {
  it('removing stops the service and keeps its data', async () => {
    await install('3.0.0')
    calls = []
    for (const step of uninstallSteps(target('/nowhere'))) await step.run()
    assert.deepEqual(calls, ['systemctl disable --now svc3-agent', 'systemctl daemon-reload'])
    assert.equal(await installedAs(target('/nowhere')), undefined)
    await assert.rejects(fs.access(at('etc/systemd/system/svc3-agent.service')), { code: 'ENOENT' })
    assert.deepEqual(await fs.readdir(at('var/lib/svc3-agent')), ['join-token'])
  })
})

// svc3 agent acceptance as a whole, on the stand-in for tart (test/support/stand-ins/tart): every step, the stage after a
// reboot, Ctrl-C, and a run after one that was killed.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Report } from '../../src/operator/acceptance/report.ts'
import { everyProcess } from '../../src/platform/processes.ts'
import { makeFolder, program, type Ran, svc3 } from '../support/processes/dev-server.ts'
import { type RegistryProcess, startRegistry } from '../support/processes/registry.ts'
import { pushFirstImage } from '../support/rigs/apple-fleet.ts'
import { installStandIn } from '../support/stand-ins/tart/install.ts'

let folder: string
let registry: RegistryProcess
before(async () => {
  folder = await makeFolder()
  await installStandIn(path.join(folder, 'bin'))
  registry = await startRegistry({ folder: path.join(folder, 'registry') })
  await pushFirstImage(folder, registry)
  await fs.mkdir(path.join(folder, 'volume'))
})
after(async () => {
  await registry.kill()
  await fs.rm(folder, { recursive: true, force: true })
})

const inside = (name: string): string => path.join(folder, name)
const env = () => ({ PATH: `${inside('bin')}:${process.env.PATH}`, TART_HOME: inside('home') })
const words = (...more: string[]): string[] => {
  const machine = [
    '-i',
    `${registry.host}/team/mac:v1`,
    '-c',
    '1',
    '-m',
    '0.3',
    '--registry',
    `${registry.server}/team`,
  ]
  return ['agent', 'acceptance', '--data', inside('data'), ...machine, ...more]
}
const acceptance = (...more: string[]): Promise<Ran> =>
  svc3(words(...more), { env: env(), cwd: folder, timeoutMs: 900_000 })
const reportOf = async (): Promise<Report> => JSON.parse(await fs.readFile(inside('acceptance.json'), 'utf8'))

async function assertClean(): Promise<void> {
  await assert.rejects(fs.access(inside('data')), 'the folder is left')
  const left = (await everyProcess()).filter(({ words: line }) => line.some((word) => word.includes(inside('data'))))
  assert.deepEqual(left, [])
}

describe('svc3 agent acceptance (on the stand-in for tart)', { timeout: 1_800_000 }, () => {
  it('svc3 agent acceptance passes every step but the check that the host is a Mac, and says that tart is a stand-in', async () => {
    const { code, stdout, stderr } = await acceptance('--second-volume', inside('volume'), '--before-reboot')
    const { steps } = await reportOf()
    const others = steps.filter(({ result }) => result !== 'passed').map(({ step, text }) => `${step}: ${text}`)
    const hasLan = !steps.some(({ text }) => text.startsWith('This host has no address'))
    const [checks = '', metadata, ...more] = others.filter((text) => hasLan || !text.startsWith('server on the LAN'))
    assert.match(checks, /^host checks: virtualisation: linux on x64/)
    assert.match(metadata ?? '', /^metadata and first-boot script: Only macOS/)
    assert.deepEqual(more, [], stdout)
    assert.equal(code, 1)
    assert.match(stderr, /stand-in/)
    assert.match(await fs.readFile(inside('acceptance.md'), 'utf8'), /This run used a stand-in for tart/)
    for (const name of ['acceptance.json', 'acceptance.md'])
      for (const secret of [registry.host, 'vnc://:', inside('data')])
        assert.ok(!(await fs.readFile(inside(name), 'utf8')).includes(secret), `${name} has ${secret}`)
    assert.deepEqual(await fs.readdir(inside('volume')), [])
  })

  it('svc3 agent acceptance continues only after a restart of the host', async () => {
    const same = await acceptance('--after-reboot')
    assert.match(same.stderr, /was not restarted/)
    // As if the host had been restarted since then.
    const report = { ...(await reportOf()), at: '2020-01-01T00:00:00.000Z' }
    await fs.writeFile(inside('acceptance.json'), JSON.stringify(report))
    const { stdout, stderr } = await acceptance('--after-reboot')
    assert.match(stdout, /^passed {3}after a reboot/m, stderr)
    const { steps } = await reportOf()
    assert.equal(steps.length, report.steps.length + 1)
    await assertClean()
    assert.match((await acceptance('--after-reboot')).stderr, /No run waits/)
  })

  it('svc3 agent acceptance removes what it created at Ctrl-C, and what a killed run left', async () => {
    const startUntil = async (text: RegExp) => {
      const child = spawn(program, words(), {
        cwd: folder,
        env: { ...process.env, ...env() },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      for await (const chunk of child.stdout) if (text.test(String(chunk))) break
      return child
    }
    const killed = await startUntil(/deploy \(/)
    killed.kill('SIGKILL')
    await once(killed, 'exit')
    assert.ok((await fs.readdir(inside('data'))).includes('node'))
    const stopped = await startUntil(/address and SSH \(/)
    const second = await acceptance()
    assert.match(second.stderr, /Another acceptance run uses/)
    stopped.kill('SIGINT')
    const [code] = await once(stopped, 'exit')
    assert.equal(code, 130)
    const { steps } = await reportOf()
    assert.equal(steps.at(-1)?.text, 'Interrupted')
    await assertClean()
  })
})

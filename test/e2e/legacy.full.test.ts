// A script that was written for 2.4.x, on a real VM: it runs unchanged, the scan names each of its calls, and what the
// scan says in their place runs too.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type DevServer, makeFolder, program, type Ran, root, startDev, svc3 } from '../support/processes/dev-server.ts'
import { quickImage, uploadQuick } from '../support/rigs/quick-images.ts'

const password = 'correct horse battery'
const inFixtures = (file: string): string => path.join(root, 'test/fixtures', file)

async function addUser(data: string): Promise<void> {
  const add = ['server', 'users', 'add', 'ada@example.com', '--admin', '--password-stdin', '--data', data]
  const { code, stderr } = await svc3(add, { input: `${password}\n` })
  assert.equal(code, 0, stderr)
}

const runJourney = (dev: DevServer, image: string): Promise<Ran> =>
  runScript('legacy-journey.sh', image, {
    ORKA_API: dev.apiUrl,
    ORKA_EMAIL: 'ada@example.com',
    ORKA_PASSWORD: password,
  })

function runScript(file: string, image: string, env: Record<string, string>): Promise<Ran> {
  return new Promise((resolve) => {
    const options = { env: { ...process.env, ORKA_BASE_IMAGE: image, ...env }, timeout: 400_000 }
    execFile('sh', [inFixtures(file)], options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr }),
    )
  })
}

describe('a script of 2.4.x on a real VM', () => {
  let dev: DevServer
  let data: string
  before(async () => {
    data = await makeFolder()
    dev = await startDev(data, { args: ['--nodes', 'amd64=1'] })
    await uploadQuick(data, 'amd64')
    await addUser(data)
  })
  after(async () => {
    await svc3(['vm', 'delete', 'legacy-ci'], { env: { SVC3_DATA: data } })
    await dev.kill('SIGTERM')
    await fs.rm(data, { recursive: true, force: true })
  })

  it('a script of 2.4.x on a real VM runs unchanged from end to end', async () => {
    const { code, stdout, stderr } = await runJourney(dev, quickImage('amd64'))
    assert.equal(code, 0, `${stdout}\n${stderr}`)
    for (const said of [
      'Successfully copied', 'Successfully tagged node', 'Successfully Created', /deployed [0-9a-f-]{36} at 127\.0\.0\.1:\d+/,
      'has been suspended on', 'has resumed on', '"saved"', '"committed"', 'Successfully deleted VM',
      'Successfully purged VM', 'Successfully deleted: legacy-saved', 'Successfully untagged node', 'journey done',
    ]) // biome-ignore format: a list to read
      assert.match(stdout, typeof said === 'string' ? new RegExp(said) : said)
  })

  it('a script of 2.4.x on a real VM has all its calls found, each with what replaces it', async () => {
    const { code, stdout } = await svc3(['migrate', 'scan', inFixtures('legacy-journey.sh'), '-o', 'json'])
    assert.equal(code, 1)
    const findings = JSON.parse(stdout) as {
      line: number
      call: string
      isReplaced: boolean
      commands: string[]
      requests: unknown[]
    }[]
    const script = (await fs.readFile(inFixtures('legacy-journey.sh'), 'utf8')).split('\n')
    const lines = script.flatMap((text, index) => (text.includes('$ORKA_API/') ? [index + 1] : []))
    assert.deepEqual(
      findings.map(({ line }) => line),
      lines,
    )
    for (const { call, isReplaced, requests, commands } of findings) {
      if (call === 'GET /health-check') continue
      assert.ok(isReplaced && requests.length > 0 && commands.length > 0, call)
    }
  })

  it('a script of 2.4.x on a real VM runs with every call replaced', async () => {
    const env = {
      SVC3_API_URL: dev.apiUrl,
      SVC3_TOKEN: dev.token,
      PATH: `${path.join(root, 'bin')}:${process.env.PATH}`,
    }
    const { code, stdout, stderr } = await runScript('legacy-journey-replaced.sh', quickImage('amd64'), env)
    assert.equal(code, 0, `${stdout}\n${stderr}`)
    assert.match(stdout, /journey done/)
    const scan = await svc3(['migrate', 'scan', inFixtures('legacy-journey-replaced.sh')])
    assert.deepEqual([scan.code, scan.stdout], [0, 'PLACE\tCALLS\tCALL\tREPLACEMENT\tCOMMAND\n'])
  })
})

describe('the gateway', () => {
  it('the gateway serves simulated VMs as well, and knows after a restart who called', async () => {
    const data = await makeFolder()
    const args = ['--driver', 'simulated', '--nodes', 'amd64=1']
    {
      await using dev = await startDev(data, { args })
      await addUser(data)
      const { code, stdout, stderr } = await runJourney(dev, 'tiny-amd64')
      assert.equal(code, 0, `${stdout}\n${stderr}`)
      await dev.kill('SIGTERM')
    }
    await using _ = await startDev(data, { args })
    const { stdout } = await svc3(['migrate', 'usage', '-o', 'json'], { env: { SVC3_DATA: data } })
    const rows = JSON.parse(stdout) as { endpoint: string; subject: string; client: string; calls: number }[]
    const deployed = rows.find(({ endpoint }) => endpoint === 'POST /resources/vm/deploy')
    assert.deepEqual([deployed?.subject, deployed?.calls], ['ada@example.com', 1])
    assert.match(deployed?.client ?? '', /^curl\//)
  })

  it('the gateway is off in svc3 server until the settings say otherwise', async () => {
    const data = await makeFolder()
    const server = { command: [program, 'server'], args: ['--plain-http'] }
    const statusOf = async (apiUrl: string): Promise<number> => (await fetch(`${apiUrl}/resources/vm/list`)).status
    {
      await using off = await startDev(data, server)
      assert.equal(await statusOf(off.apiUrl), 410)
      await off.kill('SIGTERM')
    }
    await fs.writeFile(path.join(data, 'config.json'), '{"legacy":{"enabled":true}}')
    await using on = await startDev(data, server)
    assert.equal(await statusOf(on.apiUrl), 401)
  })
})

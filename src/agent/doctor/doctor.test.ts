// Findings and advice of svc3 agent doctor.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { startService } from '../../../test/support/rigs/service.ts'
import { startHttpProxy } from '../../../test/support/stand-ins/http-proxy.ts'
import { SimulatedDriver } from '../../drivers/simulated.ts'
import {
  type Check,
  examine,
  firmwareCheck,
  folderCheck,
  hypervisorCheck,
  limitsCheck,
  macosCheck,
  nodeCheck,
  portsCheck,
  processorCheck,
  sizeCheck,
  spaceCheck,
  virtualisationCheck,
} from './doctor.ts'
import { serverChecks } from './server.ts'

const signal = new AbortController().signal
const one = async (check: Check) => {
  const [found] = await examine([check], signal)
  assert.ok(found)
  return found
}
let folder: string
before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-doctor-'))
})
after(() => fs.rm(folder, { recursive: true }))

describe('doctor, host', () => {
  it("the doctor's checks of a host require a recent Node", async () => {
    assert.equal((await one(nodeCheck('24.1.0'))).result, 'ok')
    assert.deepEqual(await one(nodeCheck('20.19.0')), {
      check: 'node',
      result: 'problem',
      found: 'Node 20.19.0',
      advice: 'Install Node 24 or newer',
    })
  })

  it("the doctor's checks of a host include the driver's probe", async () => {
    const driver = new SimulatedDriver({ maxVms: 2 })
    assert.match((await one(hypervisorCheck(driver))).found, /at most 2 VMs$/)
    const broken = { ...driver, probe: async () => ({ ok: false, problem: 'brew install tart', version: 'none', architectures: [] }) } // biome-ignore format: one thought
    const found = await one(hypervisorCheck(broken as unknown as SimulatedDriver))
    assert.deepEqual([found.result, found.found, found.advice], ['problem', 'none', 'brew install tart'])
  })

  it("the doctor's checks of a host include the folder of the node", async () => {
    const open = path.join(folder, 'open')
    await fs.mkdir(open)
    await fs.chmod(open, 0o755)
    const seen = await one(folderCheck(open))
    assert.deepEqual([seen.result, seen.advice], ['warning', `Run chmod 700 ${open}; it holds the key of this node`])
    await fs.chmod(open, 0o700)
    assert.equal((await one(folderCheck(open))).result, 'ok')
    assert.match((await one(folderCheck(path.join(folder, 'none')))).found, /does not exist yet/)
    const file = path.join(folder, 'file')
    await fs.writeFile(file, '')
    assert.equal((await one(folderCheck(file))).result, 'problem')
    assert.match((await one(spaceCheck(path.join(folder, 'none', 'deeper')))).found, /GiB free for /)
  })

  it("the doctor's checks of a host include the requirements of macOS if it is configured", async () => {
    assert.equal((await one(macosCheck(async () => undefined))).result, 'ok')
    const missing = { openCore: { file: path.join(folder, 'OpenCore.img'), format: 'raw' } } as const
    const found = await one(macosCheck(async () => missing))
    assert.deepEqual([found.result, found.found], ['problem', `boot disk ${missing.openCore.file} (ENOENT)`])
    // An unusable file is a finding, not a failure of the doctor.
    const refused = await one(
      macosCheck(async () => {
        throw new Error('agent.json: chmod 600')
      }),
    )
    assert.deepEqual([refused.result, refused.advice], ['problem', 'agent.json: chmod 600'])
  })

  it("the doctor's checks of a host include what macOS needs of an Intel processor", async () => {
    const on = (features: string) =>
      one(
        processorCheck(
          async () => true,
          async () => features,
        ),
      )
    const linux = 'flags\t\t: fpu sse4_1 sse4_2 constant_tsc nonstop_tsc avx avx2\n'
    assert.equal((await on(linux)).result, 'ok')
    assert.equal((await on('FPU SSE4.1 SSE4.2 AVX1.0\nBMI1 AVX2 SMEP\nSYSCALL XD 1GBPAGE RDTSCP TSCI\n')).result, 'ok')
    const old = await on(linux.replace('avx2', ''))
    assert.deepEqual([old.result, old.found], ['warning', 'lacks AVX2: macOS 13 and newer do not boot'])
    assert.match((await on(linux.replace('nonstop_tsc', ''))).found, /invariant TSC/)
    for (const unknown of ['', 'Features\t: fp asimd\n']) assert.equal((await on(unknown)).found, 'not known')
    const oldest = await on(linux.replace('sse4_2', ''))
    assert.deepEqual([oldest.result, oldest.preventsMacos], ['problem', true])
  })

  it("the doctor's checks of a host have a result on every host", async () => {
    for (const check of [virtualisationCheck, firmwareCheck, portsCheck, sizeCheck, limitsCheck]) {
      const { result, found, advice } = await one(check)
      assert.ok(found.length > 0)
      assert.equal(result === 'ok', advice === undefined, check.check)
      assert.doesNotMatch(found, /check failed/, check.check)
    }
  })
})

describe('doctor, service', () => {
  /** A service of this version, whose clock is ahead by some seconds. */
  async function serving(version: string | undefined, aheadSeconds = 0) {
    const server = http.createServer((_, response) => {
      response.sendDate = false
      response.setHeader('date', new Date(Date.now() + aheadSeconds * 1_000).toUTCString())
      response.end(version === undefined ? '<html>' : JSON.stringify({ version }))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    try {
      return await examine(serverChecks([url], undefined, '3.1.0'), signal)
    } finally {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    }
  }

  it("the doctor's checks of the service report that it can be reached and that clocks agree", async () => {
    const [service, clock] = await serving('3.1.2')
    assert.match(service?.found ?? '', /^http:\/\/127\.0\.0\.1:\d+: version 3\.1\.2, \d+ ms$/)
    assert.deepEqual([service?.result, clock?.result], ['ok', 'ok'])
  })

  it("the doctor's checks of the service warn of a wrong clock; it is a problem if tokens would be refused", async () => {
    const [, behind] = await serving('3.1.0', 30)
    assert.deepEqual([behind?.result, /behind/.test(behind?.found ?? '')], ['warning', true])
    const [, ahead] = await serving('3.1.0', -3_600)
    assert.deepEqual([ahead?.result, /ahead of/.test(ahead?.found ?? '')], ['problem', true])
    assert.match(ahead?.advice ?? '', /NTP/)
  })

  it("the doctor's checks of the service report incompatible versions, other programs and missing answers", async () => {
    assert.equal((await serving('4.0.0'))[0]?.result, 'warning')
    const [foreign, clock] = await serving(undefined)
    assert.deepEqual([foreign?.result, foreign?.found], ['problem', 'not a svc3 server (status 200)'])
    assert.equal(clock?.result, 'warning')
    // No program can listen on port 0.
    const [silent] = await examine(serverChecks(['http://127.0.0.1:0'], undefined, '3.1.0'), signal)
    assert.equal(silent?.result, 'problem')
    const [none] = await examine(serverChecks([], undefined, '3.1.0'), signal)
    assert.match(none?.advice ?? '', /--api-url/)
  })

  it("the doctor's checks of the service report whether a proxy passes WebSockets, without a token", async () => {
    await using service = await startService()
    const url = await service.listen()
    const look = async (at: string, as = '3.0.0') => (await examine(serverChecks([at], undefined, as), signal))[2]
    assert.deepEqual(await look(url), { check: 'websocket', result: 'ok', found: 'passed' })
    await using proxy = await startHttpProxy(url, 'pass')
    assert.equal((await look(proxy.url))?.result, 'ok')
    for (const [manner, result, found] of [
      [426, 'problem', /^The proxy in front of \S+ did not pass a WebSocket \(HTTP 426\)$/],
      ['cut', 'problem', /before a WebSocket was open/],
      ['strip', 'warning', /^The server did not receive it, or is older/],
    ] as const) {
      proxy.manner = manner
      const seen = await look(proxy.url)
      assert.equal(seen?.result, result)
      assert.match(seen?.found ?? '', found)
      assert.match(seen?.advice ?? '', /et it pass Upgrade for .*install\.md/)
    }
    const { body } = await service.call('GET', '/api/v1/cluster-info')
    const same = await look(proxy.url, body.version)
    assert.deepEqual([same?.result, same?.found], ['problem', `The proxy in front of ${proxy.url} removes the Upgrade`])
  })
})

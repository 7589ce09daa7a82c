// Many nodes come back at once after their server was killed: nothing is written for those that are as they were, no
// node is marked as lost, nine of ten reads beside it take 100 ms at most, or as on a busy machine at rest, and every
// new connection gets in. AGENTS=200 for fewer. The 99th percentile is for `npm run bench -- scale`, on a quiet
// machine: the first reads meet a process that has just begun.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import fs from 'node:fs/promises'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eachOf, probeMeanwhile, probeWaitsMs } from '../../bench/measure.ts'
import { nodeRecord } from '../../bench/records.ts'
import type { LightNode } from '../../bench/scale/agents.ts'
import { Agents } from '../../bench/scale.ts'
import { percentile } from '../../bench/soak/samples.ts'
import { type DevServer, makeFolder, startDev } from '../support/processes/dev-server.ts'
import { freePort } from '../support/tools/free-port.ts'

const count = Number(process.env.AGENTS ?? 1_000)
const vms = Math.ceil(count / 5)
const inDefault = '/api/v1/namespaces/svc-default'
const args = ['--driver', 'simulated', '--nodes', 'amd64=0,arm64=1']
const allowedMs = 100

async function joined(server: DevServer): Promise<LightNode[]> {
  const nodes: LightNode[] = []
  const numbers = Array.from({ length: count }, (_, n) => n)
  await eachOf(numbers, 16, async (n) => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const spki = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
    const { name, report } = nodeRecord(n, 8, spki)
    const { token } = (await server.call('POST', `${inDefault}/jointokens`, {})).body
    const { body, status } = await server.call('POST', '/api/v1/agent/join', { token, name, publicKey: spki })
    assert.equal(status, 201, JSON.stringify(body))
    const pkcs8 = privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64')
    nodes.push({ name, uid: String(body.uid), privateKey: pkcs8, report: report as LightNode['report'] })
  })
  return nodes
}

/** Milliseconds of each, one after the other, until `isOver`. */
async function readTimes(server: DevServer, isOver: () => boolean): Promise<number[]> {
  const times: number[] = []
  while (!isOver() || times.length < 100) {
    const startMs = performance.now()
    assert.equal((await server.call('GET', `${inDefault}/vms/vm-0`)).status, 200)
    times.push(performance.now() - startMs)
    await sleep(5)
  }
  return times
}

/** What the store was told to write, so far. */
async function writesOf({ apiUrl, token }: DevServer): Promise<number> {
  const text = await (await fetch(`${apiUrl}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text()
  const found = text.matchAll(/^svc3_store_\w+_count\{operation="(?:create|update|delete)",.*\} (\d+)$/gm)
  return [...found].reduce((sum, [, writes]) => sum + Number(writes), 0)
}

it(`${count} nodes come back to a server that was killed`, { timeout: 900_000 }, async (test) => {
  const folder = await makeFolder()
  try {
    const listen = `127.0.0.1:${await freePort()}`
    await using first = await startDev(folder, { args, listen })
    let server = first
    const nodes = await joined(server)
    await using agents = new Agents()
    await agents.start(folder, Number(new URL(server.apiUrl).port), nodes)
    await agents.connected(count)
    const names = Array.from({ length: vms }, (_, n) => `vm-${n}`)
    await eachOf(names, 16, async (name) => {
      const body = { name, image: 'tiny-amd64', cpu: 1, memory: 0.5 }
      assert.equal((await server.call('POST', `${inDefault}/vms`, body)).status, 201)
    })
    const quietMs = percentile(await readTimes(server, () => true), 0.99)

    const opened = agents.total('opened')
    await first.kill('SIGKILL')
    const startMs = performance.now()
    await using second = await startDev(folder, { args, listen })
    server = second
    const before = await writesOf(server)
    const probes = probeMeanwhile(server.apiUrl)
    let isBack = false
    const back = agents.connected(count, opened + count).then(() => {
      isBack = true
    })
    const times = await readTimes(server, () => isBack)
    const herdMs = percentile(times, 0.9)
    await back
    const probed = await probes.stop()
    const writes = (await writesOf(server)) - before
    const seconds = ((performance.now() - startMs) / 1_000).toFixed(1)
    test.diagnostic(
      `${count} nodes were back after ${seconds} s with ${writes} writes; reads p90 ${herdMs.toFixed(1)} ms, p99 ${percentile(times, 0.99).toFixed(1)} ms (at rest ${quietMs.toFixed(1)} ms); new connections p99 ${percentile(probed, 0.99).toFixed(1)} ms`,
    )
    assert.ok(Math.max(...probed) < probeWaitsMs, 'a new connection was not answered')
    assert.ok(herdMs <= Math.max(allowedMs, 2 * quietMs), `reads took ${herdMs} ms, at rest ${quietMs} ms`)
    assert.ok(writes < count / 10, `${writes} writes for ${count} nodes that were as before`)
    const { items } = (await server.call('GET', `${inDefault}/nodes`)).body as { items: { phase: string }[] }
    assert.equal(items.filter(({ phase }) => phase === 'READY').length, items.length)
    const running = (await server.call('GET', `${inDefault}/vms`)).body as { items: { powerState: string }[] }
    assert.equal(running.items.filter(({ powerState }) => powerState === 'running').length, vms)
  } finally {
    await fs.rm(folder, { recursive: true, force: true })
  }
})

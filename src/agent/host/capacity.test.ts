// The report of a node.
import assert from 'node:assert/strict'
import dns from 'node:dns'
import os from 'node:os'
import { describe, it } from 'node:test'
import { scriptedDriver, World } from '../../../test/support/stand-ins/scripted-driver.ts'
import type { HostCheck } from '../../api/nodes/node-report.ts'
import type { Driver, Probe } from '../../drivers/driver.ts'
import { createLog } from '../../platform/log.ts'
import { addressFor, type CapacityOptions, createCapacity, NoAddress, ownAddress } from './capacity.ts'

const probe: Probe = { ok: true, version: 'test', architectures: ['amd64'] }

function report(options: CapacityOptions, probed: Partial<Probe> = {}, checks: readonly HostCheck[] = []) {
  const driver: Driver = { ...scriptedDriver(new World()), probe: async () => ({ ...probe, ...probed }) }
  const input = { apiUrl: 'http://127.0.0.1:1', images: ['tiny'], checks, cache: {}, ownPorts: new Set<number>() }
  return createCapacity({ options, driver, version: '3', folder: os.tmpdir(), log: createLog('silent') }).report(input)
}

describe('report of a node', () => {
  it('the report of a node has detected values, or those of the operator', async () => {
    const found = await report({})
    assert.equal(found.architecture, 'amd64')
    assert.equal(found.cpu, os.availableParallelism())
    assert.ok(found.memoryMiB < os.totalmem() / 2 ** 20)
    assert.deepEqual([found.maxVms, found.problem, found.images], [undefined, undefined, ['tiny']])
    const said = await report({ ip: '10.0.0.7', cpu: 3, memoryMiB: 100, maxVms: 5 }, { maxVms: 2 })
    assert.deepEqual([said.ip, said.cpu, said.memoryMiB, said.maxVms], ['10.0.0.7', 3, 100, 2])
  })

  it('the report of a node says whether macOS runs on its architecture', async () => {
    const noMacos = { arm64: 'only on Macs', amd64: 'not set up' }
    const said = async (options: CapacityOptions, probed: Partial<Probe>) => {
      const { noMacos: why, maxMacosVms } = await report(options, { architectures: ['amd64', 'arm64'], ...probed })
      return [why, maxMacosVms]
    }
    assert.deepEqual(await said({ architecture: 'amd64' }, { noMacos }), ['not set up', undefined])
    assert.deepEqual(await said({ architecture: 'arm64' }, { noMacos }), ['only on Macs', undefined])
    assert.deepEqual(await said({ architecture: 'amd64' }, { noMacos: { arm64: 'x' } }), [undefined, undefined])
    assert.deepEqual(await said({ architecture: 'arm64' }, { maxMacosVms: 2 }), [undefined, 2])
  })

  it('a check that prevents macOS takes the seats of a Mac, and is the reason of other hosts', async () => {
    const found = { check: 'login session', result: 'problem', found: 'No login', advice: 'Log in' } as const
    const said = async (check: HostCheck, probed: Partial<Probe>) => {
      const { noMacos, maxMacosVms } = await report({}, probed, [check])
      return [noMacos, maxMacosVms]
    }
    const prevents = { ...found, preventsMacos: true }
    assert.deepEqual(await said(prevents, { maxMacosVms: 2 }), ['No login. Log in', 0])
    assert.deepEqual(await said(prevents, {}), ['No login. Log in', undefined])
    assert.deepEqual(await said(prevents, { noMacos: { amd64: 'not set up' } }), ['not set up', undefined])
    assert.deepEqual(await said(found, { maxMacosVms: 2 }), [undefined, 2])
    assert.deepEqual(await said({ ...prevents, result: 'ok' }, { maxMacosVms: 2 }), [undefined, 2])
  })

  it('the report of a node has its problem', async () => {
    assert.equal((await report({}, { ok: false, problem: 'install qemu' })).problem, 'install qemu')
    assert.match(
      (await report({ architecture: 'arm64' })).problem ?? '',
      /runs amd64, but the node is configured for arm64/,
    )
  })

  it('a hypervisor that does not work is logged once, not with every report', async () => {
    const logged: string[] = []
    const log = createLog('warn', (line) => logged.push(JSON.parse(line).problem))
    const broken: Probe = { ...probe, ok: false, problem: 'tart not found' }
    const driver: Driver = { ...scriptedDriver(new World()), probe: async () => broken }
    const capacity = createCapacity({ options: {}, driver, version: '3', folder: os.tmpdir(), log })
    const input = { apiUrl: 'http://127.0.0.1:1', images: [], cache: {}, ownPorts: new Set<number>() }
    await capacity.report(input)
    await capacity.report(input)
    assert.deepEqual(logged, ['tart not found'])
  })

  it('the report of a node never has the address 0.0.0.0, even if the name of its server cannot be resolved', async (test) => {
    test.mock.method(dns, 'lookup', (...given: unknown[]) =>
      process.nextTick(given.at(-1) as () => void, Object.assign(new Error('not found'), { code: 'EAI_AGAIN' })),
    )
    const address = await ownAddress('https://svc3.invalid')
    assert.ok(
      Object.values(os.networkInterfaces())
        .flat()
        .some((own) => own?.address === address),
      address,
    )
  })

  it('the report of a node has an IPv4 address, even if the server is reached by IPv6', () => {
    const own = (family: 'IPv4' | 'IPv6', address: string, internal = false) =>
      ({ family, address, internal, netmask: '', mac: '', cidr: null, scopeid: 0 }) as os.NetworkInterfaceInfo
    const six = [own('IPv4', '127.0.0.1', true), own('IPv6', '2001:db8::7')]
    assert.equal(addressFor('10.0.0.7', { eth0: six }), '10.0.0.7')
    assert.equal(addressFor('::ffff:10.0.0.7', { eth0: six }), '10.0.0.7')
    assert.equal(addressFor('2001:db8::7', { eth0: six, eth1: [own('IPv4', '10.0.0.8')] }), '10.0.0.8')
    assert.throws(() => addressFor('2001:db8::7', { eth0: six }), NoAddress)
  })

  it('the report of a node has the address that reaches the server', async () => {
    assert.equal(await ownAddress('http://127.0.0.1:8080'), '127.0.0.1')
    assert.equal(await ownAddress('http://[::1]:8080'), '127.0.0.1')
    assert.match(await ownAddress('https://no-such-host.invalid'), /^\d+\.\d+\.\d+\.\d+$/)
  })
})

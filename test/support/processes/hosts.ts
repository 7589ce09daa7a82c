// Hosts on one network: network namespaces on a bridge if root may create them, otherwise loopback addresses. A host can
// be behind a NAT router, as at home.
import assert from 'node:assert/strict'
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import { exec } from '../../../src/platform/exec.ts'
import { eventually } from '../tools/eventually.ts'

export interface TestHost {
  readonly name: string
  readonly address: string
  /** Whether it has a separate network, loopback included. */
  readonly isApart: boolean
  spawn(command: string, args: readonly string[], options?: SpawnOptions): ChildProcess
}

interface TestNetwork extends AsyncDisposable {
  /** Whether hosts are really separate. */
  readonly isReal: boolean
  /** The address of this process for hosts. */
  readonly address: string
  host(name: string): Promise<TestHost>
  /** Reaches the network through a router, and cannot be reached from there. Requires `isReal`. */
  hostBehindNat(name: string): Promise<TestHost>
}

const ip = async (...words: string[]): Promise<void> => void (await exec('ip', words))

export async function openNetwork(): Promise<TestNetwork> {
  // Interfaces have names of at most 15 characters.
  const mark = randomBytes(3).toString('hex')
  const bridge = `s3-${mark}`
  const [second = 0, third = 0] = randomBytes(2)
  const net = `10.${100 + (second % 100)}.${third}`
  const isReal = await ip('link', 'add', bridge, 'type', 'bridge').then(
    () => true,
    () => false,
  )
  if (!isReal) return loopback(`127.${100 + (second % 100)}.${third}`)
  const cleanup = new AsyncDisposableStack()
  cleanup.defer(() => ip('link', 'delete', bridge))
  await ip('address', 'add', `${net}.1/24`, 'dev', bridge)
  await ip('link', 'set', bridge, 'up')
  let count = 1

  /** Lives as long as the process that holds it, which lives as long as this one. */
  const makeNamespace = async (): Promise<number> => {
    const holder = spawn('unshare', ['--net', 'cat'], { stdio: ['pipe', 'ignore', 'inherit'] })
    const pid = holder.pid ?? 0
    cleanup.defer(async () => {
      holder.kill()
      if (holder.exitCode === null && holder.signalCode === null) await once(holder, 'exit')
    })
    const own = await fs.readlink('/proc/self/ns/net')
    await eventually(async () => assert.notEqual(await fs.readlink(`/proc/${pid}/ns/net`), own))
    await within(pid, 'ip', 'link', 'set', 'lo', 'up')
    return pid
  }
  const within = async (namespace: number, ...words: string[]): Promise<void> =>
    void (await exec('nsenter', [`--net=/proc/${namespace}/ns/net`, ...words]))
  /** Adds an interface `eth0` on the bridge. */
  const plug = async (namespace: number): Promise<string> => {
    const number = ++count
    const [near, address] = [`s3-${mark}-${number}`, `${net}.${number}`]
    await ip('link', 'add', near, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(namespace))
    await ip('link', 'set', near, 'master', bridge, 'up')
    await within(namespace, 'ip', 'address', 'add', `${address}/24`, 'dev', 'eth0')
    await within(namespace, 'ip', 'link', 'set', 'eth0', 'up')
    return address
  }
  const hostIn = (name: string, namespace: number, address: string): TestHost => ({
    name,
    address,
    isApart: true,
    spawn: (command, args, options = {}) =>
      spawn('nsenter', [`--net=/proc/${namespace}/ns/net`, command, ...args], options),
  })

  return {
    isReal,
    address: `${net}.1`,
    async host(name) {
      const namespace = await makeNamespace()
      const address = await plug(namespace)
      await within(namespace, 'ip', 'route', 'add', 'default', 'via', `${net}.1`)
      return hostIn(name, namespace, address)
    },
    async hostBehindNat(name) {
      const [router, inside] = [await makeNamespace(), await makeNamespace()]
      await plug(router)
      const inRouter = (...words: string[]) => within(router, ...words)
      await inRouter('ip', 'link', 'add', 'lan', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(inside))
      await inRouter('ip', 'address', 'add', '192.168.77.1/24', 'dev', 'lan')
      await inRouter('ip', 'link', 'set', 'lan', 'up')
      await within(inside, 'ip', 'address', 'add', '192.168.77.2/24', 'dev', 'eth0')
      await within(inside, 'ip', 'link', 'set', 'eth0', 'up')
      await within(inside, 'ip', 'route', 'add', 'default', 'via', '192.168.77.1')
      await inRouter('sysctl', '-q', '-w', 'net.ipv4.ip_forward=1')
      // Outgoing with the router's address; incoming only for connections opened from inside.
      await inRouter('iptables', '-t', 'nat', '-A', 'POSTROUTING', '-o', 'eth0', '-j', 'MASQUERADE')
      await inRouter('iptables', '-P', 'FORWARD', 'DROP')
      await inRouter('iptables', '-A', 'FORWARD', '-i', 'lan', '-j', 'ACCEPT')
      await inRouter('iptables', '-A', 'FORWARD', '-m', 'state', '--state', 'ESTABLISHED,RELATED', '-j', 'ACCEPT')
      return hostIn(name, inside, '192.168.77.2')
    },
    [Symbol.asyncDispose]: () => cleanup.disposeAsync(),
  }
}

function loopback(net: string): TestNetwork {
  let count = 1
  return {
    isReal: false,
    address: `${net}.1`,
    async host(name) {
      const address = `${net}.${++count}`
      return { name, address, isApart: false, spawn: (command, args, options = {}) => spawn(command, args, options) }
    },
    hostBehindNat: () => Promise.reject(new Error('a host behind NAT needs a network namespace: run this as root')),
    [Symbol.asyncDispose]: async () => undefined,
  }
}

// The uplink of a sealed VM: slirp4netns, a process on the host's side that carries the traffic of the namespace, but
// not to the host's loopback, and opens the VM's ports on the node's address. It ends with its QEMU, with or without an
// agent.
import { spawn } from 'node:child_process'
import { closeSync, constants, openSync, writeFileSync } from 'node:fs'
import fs from 'node:fs/promises'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { childEnvironment } from '../../../platform/exec.ts'
import { readFileIfPresent } from '../../../platform/files.ts'
import {
  argumentsOf,
  findByArgument,
  kill,
  type ProcessId,
  startTimeOf,
  waitForEnd,
} from '../../../platform/processes.ts'
import { succeeds } from '../../../platform/succeeds.ts'
import { PortTaken } from '../../driver.ts'
import { openLog } from '../../logs.ts'
import { networkPlaces, type PortAccess } from './network.ts'

/** Limits the load of an uplink that keeps dying. */
const restMs = 1_000

/**
 * Enters the namespace of `pid` and opens the ports. An earlier uplink of this VM is ended first. `ended` is called
 * when this one ends for any reason.
 */
export async function startUplink(
  pid: number,
  runtime: string,
  doors: PortAccess,
  signal: AbortSignal,
  ended: () => void,
): Promise<void> {
  signal.throwIfAborted()
  await endUplink(runtime)
  await waitUntilSealed(pid, signal)
  const { api, life, log: logFile, pid: pidFile } = networkPlaces(runtime)
  await fs.rm(api, { force: true })
  const log = openLog(logFile)
  const alive = openSync(life, constants.O_RDONLY | constants.O_NONBLOCK)
  const child = spawn(
    'slirp4netns',
    [
      ...['--configure', '--disable-host-loopback', '--enable-sandbox', '--enable-seccomp', '--mtu=65520'],
      ...['--api-socket', api, '--exit-fd=3', '--ready-fd=4', String(pid), 'tap0'],
    ],
    { env: childEnvironment, detached: true, stdio: ['ignore', log, log, alive, 'pipe'] },
  )
  closeSync(log)
  closeSync(alive)
  child.unref()
  if (child.pid !== undefined) writeFileSync(pidFile, String(child.pid), { mode: 0o600 })
  const ready = child.stdio[4] as net.Socket
  const { promise: isUp, resolve: up, reject } = Promise.withResolvers<void>()
  const abort = () => reject(signal.reason)
  child.once('error', ({ code, message }: NodeJS.ErrnoException) =>
    reject(new Error(code === 'ENOENT' ? 'slirp4netns is not installed' : `slirp4netns cannot be run: ${message}`)),
  )
  child.once('exit', async () => {
    const said = await readFileIfPresent(logFile).catch(() => undefined)
    reject(new Error(`slirp4netns did not start: ${said?.trim().slice(-500) || 'no output'}`))
  })
  ready.once('data', () => up())
  signal.addEventListener('abort', abort, { once: true })
  try {
    await isUp
    for (const { protocol, port } of doors.ports) await addForward(api, doors.ip, protocol, port)
  } catch (error) {
    await endUplink(runtime)
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
    ready.destroy()
  }
  const upMs = performance.now()
  const notify = () => (performance.now() - upMs < restMs ? setTimeout(ended, restMs).unref() : ended())
  if (child.exitCode === null && child.signalCode === null) child.once('exit', notify)
  else notify()
}

/** Opens the ports of a running VM on another address, then closes the former ones. May be repeated. */
export async function moveForwards(runtime: string, from: PortAccess, to: PortAccess): Promise<void> {
  const { api } = networkPlaces(runtime)
  const open = await forwardsAt(api)
  for (const { protocol, port } of to.ports)
    if (!open.some((one) => one.host_addr === to.ip && one.host_port === port && one.proto === protocol))
      await addForward(api, to.ip, protocol, port)
  if (from.ip === to.ip) return
  for (const { id } of open.filter(({ host_addr }) => host_addr === from.ip))
    await ask(api, JSON.stringify({ execute: 'remove_hostfwd', arguments: { id } }))
}

export async function hasForward({ runtime, doors }: { runtime: string; doors: PortAccess }, port: number, ip: string) {
  const isDoor = doors.ip === ip && doors.ports.some((one) => one.protocol === 'tcp' && one.port === port)
  if (!isDoor || doors.kind !== 'sealed') return isDoor
  const open = await forwardsAt(networkPlaces(runtime).api)
  return open.some((one) => one.proto === 'tcp' && one.host_addr === ip && one.host_port === port)
}

interface OpenForward {
  readonly id: number
  readonly proto: string
  readonly host_addr: string
  readonly host_port: number
}

async function forwardsAt(api: string): Promise<readonly OpenForward[]> {
  const answer = await ask(api, JSON.stringify({ execute: 'list_hostfwd' }))
  const { entries } = Object(JSON.parse(answer)) as { readonly entries?: readonly OpenForward[] }
  if (!entries) throw new Error(`slirp4netns did not say which ports are open: ${answer.slice(0, 200)}`)
  return entries
}

/** Kills the uplink, which frees the VM's ports. Does nothing if there is none. */
export async function endUplink(runtime: string): Promise<void> {
  const uplink = await findUplink(runtime)
  if (!uplink) return
  await kill(uplink, 'SIGKILL')
  await waitForEnd(uplink, 5_000)
}

async function findUplink(runtime: string): Promise<ProcessId | undefined> {
  const { api, pid: pidFile } = networkPlaces(runtime)
  const noted = Number(await readFileIfPresent(pidFile))
  // A socket without a pid file: the agent died during the start.
  const isUnknown = !(noted > 0) && (await succeeds(fs.access(api)))
  for (const pid of isUnknown ? await findByArgument(api) : [noted]) {
    const startTime = await startTimeOf(pid)
    if (startTime !== undefined && (await argumentsOf(pid)).includes(api)) return { pid, startTime }
  }
  return undefined
}

/** Always true for VMs that need no uplink. */
export const hasUplink = async ({ doors, runtime }: { doors: PortAccess; runtime: string }): Promise<boolean> =>
  doors.kind !== 'sealed' || (await findUplink(runtime)) !== undefined

/** Entering before the process has left the host's namespace would change the host's network. */
async function waitUntilSealed(pid: number, signal: AbortSignal): Promise<void> {
  const own = await fs.readlink('/proc/self/ns/net')
  while ((await fs.readlink(`/proc/${pid}/ns/net`)) === own) {
    signal.throwIfAborted()
    await sleep(2)
  }
}

async function addForward(api: string, ip: string, protocol: 'tcp' | 'udp', port: number): Promise<void> {
  const request = {
    execute: 'add_hostfwd',
    arguments: { proto: protocol, host_addr: ip, host_port: port, guest_port: port },
  }
  judgeAnswer(await ask(api, JSON.stringify(request)), port)
}

/** Throws PortTaken only for the error of a port in use: another port would not solve other problems. */
export function judgeAnswer(answer: string, port: number): void {
  let said: { readonly return?: unknown; readonly error?: { readonly desc?: unknown } }
  try {
    said = Object(JSON.parse(answer))
  } catch {
    throw new Error(`slirp4netns gave no answer about port ${port}${answer === '' ? '' : `: ${answer.slice(0, 200)}`}`)
  }
  if (said.return !== undefined) return
  const problem = String(said.error?.desc ?? answer.slice(0, 200))
  if (/slirp_add_hostfwd failed/.test(problem)) throw new PortTaken([port])
  throw new Error(`slirp4netns refused to open port ${port}: ${problem}`)
}

const longestAnswer = 65_536

function ask(api: string, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = net.connect(api, () => socket.end(request))
    socket.setTimeout(5_000, () => socket.destroy(new Error('slirp4netns is not responding')))
    socket.setEncoding('utf8')
    socket.on('data', (text: string) => {
      answer += text
      if (answer.length > longestAnswer) socket.destroy(new Error('slirp4netns sent a response that is too long'))
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(answer))
  })
}

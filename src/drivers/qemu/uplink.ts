// The way out of a sealed VM: slirp4netns, a process on the host's side that carries what the namespace sends, but not to
// the host's loopback, and opens the VM's ports on the node's address. It ends when its QEMU does, agent or no agent.
import { spawn } from 'node:child_process'
import { closeSync, constants, openSync, writeFileSync } from 'node:fs'
import fs from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { childEnvironment, exec } from '../../platform/exec.ts'
import { readFileIfPresent } from '../../platform/files.ts'
import { argumentsOf, findByArgument, kill, type ProcessId, startTimeOf, waitForEnd } from '../../platform/processes.ts'
import { PortTaken } from '../driver.ts'
import { type Doors, type NetworkKind, networkPlaces, sealedPrefix } from './network.ts'

/** Goes into the namespace of `pid` and opens the doors. An earlier uplink of this VM is ended first. */
export async function startUplink(pid: number, runtime: string, doors: Doors, signal: AbortSignal): Promise<void> {
  await endUplink(runtime)
  await waitUntilSealed(pid, signal)
  const { api, life, pid: pidFile } = networkPlaces(runtime)
  await fs.rm(api, { force: true })
  const log = openSync(path.join(runtime, 'net.log'), 'w', 0o600)
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
  try {
    await new Promise<void>((resolve, reject) => {
      const fail = async () => {
        const said = await readFileIfPresent(path.join(runtime, 'net.log')).catch(() => undefined)
        reject(new Error(`slirp4netns did not come up: ${said?.trim().slice(-500) || 'is it installed?'}`))
      }
      ready.once('data', () => resolve())
      child.once('error', fail)
      child.once('exit', fail)
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
    for (const { protocol, port } of doors.ports) await openDoor(api, doors.ip, protocol, port)
  } catch (error) {
    await endUplink(runtime)
    throw error
  } finally {
    ready.destroy()
  }
}

/** Afterwards the VM's ports are free. */
export async function endUplink(runtime: string): Promise<void> {
  const uplink = await findUplink(runtime)
  if (!uplink) return
  await kill(uplink, 'SIGKILL')
  await waitForEnd(uplink, 5_000)
}

export async function findUplink(runtime: string): Promise<ProcessId | undefined> {
  const { api, pid: pidFile } = networkPlaces(runtime)
  const noted = Number(await readFileIfPresent(pidFile))
  // Without a note but with a socket: whoever started it died in between.
  const isUnknown = !(noted > 0) && (await fs.access(api).then(() => true, () => false)) // biome-ignore format: one thought
  for (const pid of isUnknown ? await findByArgument(api) : [noted]) {
    const startTime = await startTimeOf(pid)
    if (startTime !== undefined && (await argumentsOf(pid)).includes(api)) return { pid, startTime }
  }
  return undefined
}

/** Entering before the process has left the host's namespace would change the host's own network. */
async function waitUntilSealed(pid: number, signal: AbortSignal): Promise<void> {
  const own = await fs.readlink('/proc/self/ns/net')
  while ((await fs.readlink(`/proc/${pid}/ns/net`)) === own) {
    signal.throwIfAborted()
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

async function openDoor(api: string, ip: string, protocol: 'tcp' | 'udp', port: number): Promise<void> {
  const request = {
    execute: 'add_hostfwd',
    arguments: { proto: protocol, host_addr: ip, host_port: port, guest_port: port },
  }
  const answer = await ask(api, JSON.stringify(request))
  if (!answer.includes('"return"')) throw new PortTaken([port])
}

function ask(api: string, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = net.connect(api, () => socket.end(request))
    socket.setTimeout(5_000, () => socket.destroy(new Error('slirp4netns does not answer')))
    socket.setEncoding('utf8')
    socket.on('data', (text: string) => {
      answer += text
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(answer))
  })
}

/** Sealed where that works here: tried, because it needs a program, namespaces and /dev/net/tun. */
export async function detectNetwork(): Promise<NetworkKind> {
  if (process.platform !== 'linux') return 'user'
  const runtime = await fs.mkdtemp('/tmp/svc3-try-')
  const { life } = networkPlaces(runtime)
  try {
    await exec('mkfifo', ['-m', '600', life])
    const [program = '', ...args] = sealedPrefix()
    const jailed = spawn(program, [...args, 'cat'], {
      cwd: runtime,
      env: childEnvironment,
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    jailed.on('error', () => undefined)
    try {
      await startUplink(
        jailed.pid ?? -1,
        runtime,
        { kind: 'sealed', ip: '127.0.0.1', ports: [] },
        AbortSignal.timeout(3_000),
      )
      return 'sealed'
    } finally {
      jailed.stdin.destroy()
    }
  } catch {
    return 'user'
  } finally {
    await endUplink(runtime)
    await fs.rm(runtime, { recursive: true, force: true })
  }
}

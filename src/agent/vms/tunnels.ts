// Connections that users opened through the server: to a port of a VM, to its console's log, or to measurements.
import { once } from 'node:events'
import net from 'node:net'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { AgentMessage } from '../../api/nodes/agent.ts'
import type { Log } from '../../platform/log.ts'
import { reasonOf } from '../../platform/reason.ts'
import type { StoredDesired } from '../state/handles.ts'
import { followConsoleLog } from './console-log.ts'

type Dial = Extract<AgentMessage, { type: 'DIAL' }>

export interface TunnelTarget {
  readonly desired: StoredDesired
  /** Returns the log file of the VM's console; undefined if the hypervisor keeps none. */
  logFile(): string | undefined
  /** Called when a connection to the guest's SSH port failed. */
  failed(): void
  /** Whether the VM itself holds this port; absent if the hypervisor cannot tell. */
  holds?(port: number, ip: string): Promise<boolean>
}

interface TunnelsOptions {
  /** Connects to a path of the server. */
  connect(path: string, signal: AbortSignal): Promise<Duplex>
  find(uid: string): TunnelTarget | undefined
  /** Measurements of a VM, or of the node if the uid is empty, as JSON. */
  measured(uid: string, minutes: number): string
  readonly log: Log
}

export const maxTunnels = 256
const connectMs = 10_000

export function createTunnels({ connect, find, measured, log }: TunnelsOptions) {
  const stopping = new AbortController()
  const open = new Set<Promise<void>>()

  const serve = async (dial: Dial): Promise<void> => {
    const { signal } = stopping
    if (open.size >= maxTunnels) throw new Error(`${maxTunnels} connections are already open; close some`)
    const target = find(dial.uid)
    // Connected even if the VM is unknown, because a client of the server waits for the connection.
    const tunnel = await connect(`/api/v1/agent/tunnels/${encodeURIComponent(dial.tunnel)}`, signal)
    try {
      if (dial.to === 'charts')
        return void (await pipeline([measured(dial.uid, dial.minutes ?? 60)], tunnel, { signal }))
      if (!target) throw new Error('the VM is not on this node')
      if (dial.to === 'log') await sendLog(tunnel, target, dial, signal)
      else await forward(tunnel, target, dial.to, signal)
    } finally {
      tunnel.destroy()
    }
  }

  return {
    get count(): number {
      return open.size
    },
    open(dial: Dial): void {
      const served = serve(dial)
        .catch((error: unknown) => {
          if (!stopping.signal.aborted)
            log.info('a connection to a VM ended', { kind: dial.to, name: dial.uid, problem: reasonOf(error) })
        })
        .finally(() => open.delete(served))
      open.add(served)
    },
    async stop(): Promise<void> {
      stopping.abort()
      await Promise.allSettled(open)
    },
  }
}

const ports = {
  ssh: ({ ssh }: StoredDesired) => ssh,
  vnc: ({ vnc }: StoredDesired) => vnc,
  screenshare: ({ screenshare }: StoredDesired) => screenshare,
} as const

async function forward(tunnel: Duplex, target: TunnelTarget, to: keyof typeof ports, signal: AbortSignal) {
  let receivedBytes = 0
  try {
    const socket = await reach(target, to, signal)
    await splice(tunnel, socket, signal)
    receivedBytes = socket.bytesRead
  } finally {
    // Forwarders accept connections and close them if the guest does not.
    if (to === 'ssh' && receivedBytes === 0) target.failed()
  }
}

/** Checks that the VM itself holds the port, because users send passwords and another program may have taken the port. */
async function reach(target: TunnelTarget, to: keyof typeof ports, signal: AbortSignal): Promise<net.Socket> {
  const { desired } = target
  const port = ports[to](desired)
  if (port === undefined) throw new Error(`the VM "${desired.name}" has no port for ${to}`)
  const socket = net.connect({ host: desired.ip, port, noDelay: true, keepAlive: true })
  const timeout = AbortSignal.timeout(connectMs)
  try {
    await once(socket, 'connect', { signal: AbortSignal.any([signal, timeout]) }).catch((error: unknown) => {
      throw timeout.aborted ? new Error(`${desired.ip}:${port} is not responding`) : error
    })
    // Checked after connecting, so that the answer is about the program that accepted the connection.
    if ((await target.holds?.(port, desired.ip)) === false)
      throw new Error(`${desired.ip}:${port} is not open by the VM "${desired.name}"; another program may listen there`)
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Ends when either side closes the connection. */
async function splice(tunnel: Duplex, socket: net.Socket, signal: AbortSignal): Promise<void> {
  const ways = [pipeline(tunnel, socket, { signal }), pipeline(socket, tunnel, { signal })]
  await Promise.race(ways).catch(() => undefined)
  socket.destroy()
  tunnel.destroy()
  await Promise.allSettled(ways)
}

async function sendLog(tunnel: Duplex, target: TunnelTarget, dial: Dial, signal: AbortSignal): Promise<void> {
  const logFile = target.logFile()
  if (logFile === undefined) throw new Error(`the hypervisor keeps no log of "${target.desired.name}"`)
  const leaving = new AbortController()
  const leave = (): void => leaving.abort()
  tunnel.once('close', leave).once('end', leave).once('error', leave)
  tunnel.resume()
  const ending = AbortSignal.any([signal, leaving.signal])
  const lines = followConsoleLog(logFile, { follow: dial.follow ?? false, tail: dial.tail, signal: ending })
  // Needs the signal, because a tunnel whose other end has closed never drains.
  await pipeline(lines, tunnel, { signal: ending })
}

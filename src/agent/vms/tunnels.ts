// Connections that somebody opened through the server: to a port of a VM, or to the log of its console.
import net from 'node:net'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { AgentMessage } from '../../api/nodes/agent.ts'
import type { Log } from '../../platform/log.ts'
import { reasonOf } from '../../platform/reason.ts'
import type { StoredDesired } from '../state/handles.ts'
import { followConsoleLog } from './console-log.ts'

type Dial = Extract<AgentMessage, { type: 'DIAL' }>

interface Target {
  readonly desired: StoredDesired
  /** Where its console is written to; undefined when the hypervisor keeps none. */
  logFile(): string | undefined
  /** Whether the VM itself has this port open, where the hypervisor can say. */
  holds?(port: number, ip: string): Promise<boolean>
}

interface Tunnels {
  /** Returns at once. */
  open(dial: Dial): void
  readonly count: number
  stop(): Promise<void>
}

interface TunnelsOptions {
  /** To the server. */
  connect(path: string, signal: AbortSignal): Promise<Duplex>
  find(uid: string): Target | undefined
  /** What a VM uses, or with an empty uid the node, as JSON. */
  measured(uid: string, minutes: number): string
  readonly log: Log
}

export const maxAtOnce = 256
const connectMs = 10_000

export function createTunnels({ connect, find, measured, log }: TunnelsOptions): Tunnels {
  const stopping = new AbortController()
  const open = new Set<Promise<void>>()

  const serve = async (dial: Dial): Promise<void> => {
    const { signal } = stopping
    // Before anything else: each one that is opened costs a connection to the server and one to the VM.
    if (open.size >= maxAtOnce) throw new Error(`${maxAtOnce} connections are already open; close some`)
    const target = find(dial.uid)
    // The server is called, whether the VM is here or not: somebody waits at its other end.
    const tunnel = await connect(`/api/v1/agent/tunnels/${encodeURIComponent(dial.tunnel)}`, signal)
    try {
      if (dial.to === 'charts')
        return void (await pipeline([measured(dial.uid, dial.minutes ?? 60)], tunnel, { signal }))
      if (!target) throw new Error('the VM is not on this node')
      if (dial.to === 'log') await sendLog(tunnel, target, dial, signal)
      else await splice(tunnel, await reach(target, dial.to, signal), signal)
    } finally {
      tunnel.destroy()
    }
  }

  return {
    get count() {
      return open.size
    },
    open(dial) {
      const served = serve(dial)
        .catch((error: unknown) => {
          if (!stopping.signal.aborted)
            log.info('a connection to a VM ended', { kind: dial.to, name: dial.uid, problem: reasonOf(error) })
        })
        .finally(() => open.delete(served))
      open.add(served)
    },
    async stop() {
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

/** Connected to the VM itself: whoever logs in gives passwords away, and others may have got its port while it did not listen. */
async function reach(target: Target, to: keyof typeof ports, signal: AbortSignal): Promise<net.Socket> {
  const { desired } = target
  const port = ports[to](desired)
  if (port === undefined) throw new Error(`the VM "${desired.name}" has no port for ${to}`)
  const socket = net.connect({ host: desired.ip, port, noDelay: true, keepAlive: true })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const timer = setTimeout(() => reject(new Error(`${desired.ip}:${port} is not responding`)), connectMs)
  const abort = (): void => reject(signal.reason)
  socket.once('connect', resolve).once('error', reject)
  signal.addEventListener('abort', abort, { once: true })
  try {
    await promise
    // Asked once connected: who has the port now had it then, but for moments.
    if ((await target.holds?.(port, desired.ip)) === false)
      throw new Error(`${desired.ip}:${port} is not open by the VM "${desired.name}"; another program may listen there`)
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

/** Until one end has said all and the other has heard it, or is gone, which is how most of them end. */
async function splice(tunnel: Duplex, socket: net.Socket, signal: AbortSignal): Promise<void> {
  const ways = [pipeline(tunnel, socket, { signal }), pipeline(socket, tunnel, { signal })]
  await Promise.race(ways).catch(() => undefined)
  socket.destroy()
  tunnel.destroy()
  await Promise.allSettled(ways)
}

async function sendLog(tunnel: Duplex, target: Target, dial: Dial, signal: AbortSignal): Promise<void> {
  const logFile = target.logFile()
  if (logFile === undefined) throw new Error(`the hypervisor keeps no log of "${target.desired.name}"`)
  const leaving = new AbortController()
  const leave = (): void => leaving.abort()
  tunnel.once('close', leave).once('end', leave).once('error', leave)
  tunnel.resume()
  const ending = AbortSignal.any([signal, leaving.signal])
  const lines = followConsoleLog(logFile, { follow: dial.follow ?? false, tail: dial.tail, signal: ending })
  // With the signal, because a tunnel whose other end has gone never says that it has taken everything.
  await pipeline(lines, tunnel, { signal: ending })
}

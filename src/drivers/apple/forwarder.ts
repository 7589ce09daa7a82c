// Forwards the ports of one VM. A guest of tart has an address behind the host, which is known after it booted and may
// change. Ports are held from before the start until the stop; a restarted agent opens them again.
import net from 'node:net'
import { PortTaken } from '../driver.ts'
import { requireDistinct } from '../refusals.ts'
import type { TartPorts } from './run.ts'
import { joinScreen } from './screen.ts'
import { type Closable, openUdp } from './udp.ts'

export interface ForwardedGuest {
  address(): Promise<string | undefined>
  /** Reports that no connection to the address was possible. */
  failed(address: string, error: NodeJS.ErrnoException): void
  /** Throws unless the guest at the address is this VM's. Called before anything is forwarded to it. */
  confirm(address: string): Promise<void>
  /** The address for datagrams. */
  confirmedAddress(): Promise<string | undefined>
  /** The address of its screen, with the password. */
  screen(): Promise<string | undefined>
}

const connectMs = 10_000
const handshakeMs = 20_000
const sshPort = 22

export function createForwarder(guest: ForwardedGuest) {
  let opened: { readonly key: string; readonly doors: TartPorts; readonly ports: readonly Closable[] } | undefined

  const close = async (): Promise<void> => {
    const ports = opened?.ports ?? []
    opened = undefined
    await Promise.all(ports.map((port) => port.close()))
  }

  return {
    /** Whether all requested ports are open. */
    get isOpen() {
      return opened !== undefined
    },
    holds(port: number, ip: string): boolean {
      const { forwards = [], screen, ip: own } = opened?.doors ?? {}
      const isDoor = port === screen || forwards.some((one) => one.protocol === 'tcp' && one.hostPort === port)
      return isDoor && own === ip
    },
    close,
    /** Opens the ports and closes those of an earlier call. Throws PortTaken with every port in use. */
    async open(doors: TartPorts): Promise<void> {
      const key = JSON.stringify(doors)
      if (opened?.key === key) return
      await close()
      requireDistinct([
        ...doors.forwards.map(({ protocol, hostPort }) => ({ protocol, port: hostPort })),
        ...(doors.screen === undefined ? [] : [{ protocol: 'tcp', port: doors.screen }]),
      ])
      const openings: [number, Promise<Closable>][] = doors.forwards.map(({ protocol, hostPort, guestPort }) => [
        hostPort,
        protocol === 'tcp'
          ? openTcp(doors.ip, hostPort, (client) => toGuest(client, guest, guestPort))
          : openUdp({ ip: doors.ip, port: hostPort, guestPort, address: () => guest.confirmedAddress() }),
      ])
      if (doors.screen !== undefined)
        openings.push([doors.screen, openTcp(doors.ip, doors.screen, (client) => toScreen(client, guest))])
      const settled = await Promise.allSettled(openings.map(([, opening]) => opening))
      const ports = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
      const failures = settled.flatMap((one, index) =>
        one.status === 'rejected'
          ? [{ port: openings[index]?.[0] ?? 0, error: one.reason as NodeJS.ErrnoException }]
          : [],
      )
      if (failures.length === 0) {
        opened = { key, doors, ports }
        return
      }
      await Promise.all(ports.map((port) => port.close()))
      const other = failures.find(({ error }) => error.code !== 'EADDRINUSE')
      // A foreign address or a privileged port is another problem than a port in use.
      if (other) throw new Error(`port ${other.port} cannot be opened on ${doors.ip}: ${other.error.message}`)
      throw new PortTaken(failures.map(({ port }) => port))
    },
  }
}

function openTcp(ip: string, port: number, serve: (client: net.Socket) => Promise<void>): Promise<Closable> {
  const clients = new Set<net.Socket>()
  // Half open: a client that has finished sending may still receive.
  const server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (client) => {
    clients.add(client)
    client.on('close', () => clients.delete(client))
    client.on('error', () => client.destroy())
    serve(client).catch(() => client.resetAndDestroy())
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: ip, port, exclusive: true }, () => {
      server.removeAllListeners('error').on('error', () => undefined)
      resolve({
        close: () =>
          new Promise<void>((closed) => {
            server.close(() => closed())
            for (const client of clients) client.destroy()
          }),
      })
    })
  })
}

async function toGuest(client: net.Socket, guest: ForwardedGuest, port: number): Promise<void> {
  const address = await guest.address()
  if (address === undefined) throw new Error('the guest has no address yet')
  const far = await connect(address, port).catch((error: NodeJS.ErrnoException) => {
    // A guest that refuses another port than that of SSH can be reached.
    if (error.code !== 'ECONNREFUSED' || port === sshPort) guest.failed(address, error)
    throw error
  })
  try {
    await guest.confirm(address)
  } catch (error) {
    far.destroy()
    throw error
  }
  join(client, far)
}

async function toScreen(client: net.Socket, guest: ForwardedGuest): Promise<void> {
  const url = await guest.screen()
  const place = url === undefined ? undefined : URL.parse(url)
  if (!place) throw new Error('the VM has no screen yet')
  const far = await connect(place.hostname, Number(place.port) || 5_900)
  const timer = setTimeout(() => {
    far.destroy()
    client.destroy()
  }, handshakeMs)
  try {
    if (place.password !== '') await joinScreen(client, far, decodeURIComponent(place.password))
    join(client, far)
  } catch (error) {
    far.destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

function connect(host: string, port: number): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host, port, allowHalfOpen: true, noDelay: true })
    const timer = setTimeout(() => socket.destroy(new Error(`no response from ${host}:${port}`)), connectMs)
    socket.once('error', reject)
    socket.once('connect', () => {
      clearTimeout(timer)
      socket.off('error', reject).on('error', () => socket.destroy())
      resolve(socket)
    })
    socket.once('close', () => clearTimeout(timer))
  })
}

/** Joins two connections until both ends have finished. If one breaks off, so does the other. */
function join(near: net.Socket, far: net.Socket): void {
  if (near.destroyed || far.destroyed) {
    far.destroy()
    near.resetAndDestroy()
    return
  }
  near.on('close', () => far.destroy())
  far.on('close', () => near.destroy())
  near.pipe(far)
  far.pipe(near)
}

// Checks whether the ports of a VM are free on its address, by binding them before the start.
import dgram from 'node:dgram'
import net from 'node:net'
import { PortTaken } from '../../driver.ts'
import { requireDistinct } from '../../refusals.ts'
import type { PortAccess } from './network.ts'

/** QEMU's message if another program took a port after the check. */
export const portTaken =
  /Could not set up host forwarding rule|Failed to (find an available port|bind)|Address already in use/

type Port = PortAccess['ports'][number]

export async function requireFreePorts({ ip, ports }: PortAccess): Promise<void> {
  requireDistinct(ports)
  const taken = (await Promise.all(ports.map(async (port) => ((await isFree(ip, port)) ? [] : [port.port])))).flat()
  if (taken.length > 0) throw new PortTaken(taken)
}

/** Only EADDRINUSE means in use: a foreign address or a privileged port is another problem. */
function isFree(address: string, { protocol, port }: Port): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false)
      else reject(new Error(`port ${port}/${protocol} cannot be opened on ${address}: ${error.message}`))
    }
    if (protocol === 'tcp') {
      const server = net.createServer()
      server.once('error', failed)
      server.listen({ host: address, port, exclusive: true }, () => server.close(() => resolve(true)))
    } else {
      const socket = dgram.createSocket('udp4')
      socket.once('error', failed)
      socket.bind({ address, port, exclusive: true }, () => socket.close(() => resolve(true)))
    }
  })
}

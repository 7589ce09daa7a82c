// Forwards a UDP port of one VM. Each sender gets a separate socket to the guest, so that answers find their way back.
// The socket is closed when the sender has been silent for a minute.
import dgram from 'node:dgram'

export interface Closable {
  close(): Promise<void>
}

interface UdpForward {
  readonly ip: string
  readonly port: number
  readonly guestPort: number
  address(): Promise<string | undefined>
}

const idleMs = 60_000
/** Beyond this number, the sender that was silent longest is dropped. */
const maxSenders = 512

interface Sender {
  readonly socket: dgram.Socket
  timer: NodeJS.Timeout
}

export function openUdp({ ip, port, guestPort, address }: UdpForward): Promise<Closable> {
  const listener = dgram.createSocket('udp4')
  /** In the order of their last packet. */
  const senders = new Map<string, Sender>()

  const forget = (key: string): void => {
    const sender = senders.get(key)
    if (!sender) return
    senders.delete(key)
    clearTimeout(sender.timer)
    sender.socket.close()
  }

  const senderFor = ({ address: host, port: from }: dgram.RemoteInfo): Sender => {
    const key = `${host}:${from}`
    const known = senders.get(key)
    const socket = known?.socket ?? dgram.createSocket('udp4')
    if (known) clearTimeout(known.timer)
    else {
      socket.on('error', () => forget(key))
      socket.on('message', (message) => listener.send(message, from, host, () => undefined))
    }
    const sender = { socket, timer: setTimeout(() => forget(key), idleMs).unref() }
    senders.delete(key)
    senders.set(key, sender)
    const [oldest] = senders.keys()
    if (senders.size > maxSenders && oldest !== undefined) forget(oldest)
    return sender
  }

  let isClosed = false
  listener.on('message', (message, from) => {
    address()
      .then((guest) => {
        if (guest !== undefined && !isClosed) senderFor(from).socket.send(message, guestPort, guest, () => undefined)
      })
      .catch(() => undefined)
  })

  return new Promise((resolve, reject) => {
    listener.once('error', reject)
    listener.bind({ address: ip, port, exclusive: true }, () => {
      listener.removeAllListeners('error').on('error', () => undefined)
      resolve({
        close: () =>
          new Promise((closed) => {
            isClosed = true
            for (const key of [...senders.keys()]) forget(key)
            listener.close(() => closed())
          }),
      })
    })
  })
}

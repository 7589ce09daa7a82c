// The client of this page: the same as the command line's, carried by fetch and one WebSocket.
import { createClient } from '../../src/client/client.ts'
import { connectionLost, connectionOpened } from './connection.ts'
import { fetchTransport } from './fetch-transport.ts'
import { serviceUrl } from './places.ts'
import { checkSession } from './session.ts'
import { watchingTransport } from './watch-socket.ts'

/** `crypto.randomUUID` is for https and localhost only; consoles in a closed network may have neither. */
const newKey = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('')

function onClose(): void {
  connectionLost()
  // Perhaps it was the session that ended.
  void checkSession()
}

export const client = createClient({
  baseUrl: serviceUrl,
  transport: watchingTransport({ serviceUrl, onOpen: connectionOpened, onClose }, fetchTransport),
  newKey,
  // Deployments and the like answer when they are done.
  timeoutMs: 660_000,
})

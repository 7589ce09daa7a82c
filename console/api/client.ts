// The client of this page: the same as the command line's, carried by fetch and one WebSocket.
import { createClient } from '../../src/client/client.ts'
import { connectionLost, connectionOpened } from './connection.ts'
import { pageTransport } from './page-transport.ts'
import { serviceUrl } from './places.ts'
import { checkSession } from './session.ts'
import { watchingTransport } from './watch-socket.ts'

function onClose(): void {
  connectionLost()
  // Perhaps it was the session that ended.
  void checkSession()
}

export const client = createClient({
  baseUrl: serviceUrl,
  transport: watchingTransport({ serviceUrl, onOpen: connectionOpened, onClose }, pageTransport),
  // Deployments and the like answer when they are done.
  timeoutMs: 660_000,
})
